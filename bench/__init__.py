"""Measurements of Redrive beside what a team would pick instead, each on real brokers of this machine.

Run from the repository's folder: `uv run python -m bench.ladder`. Nothing here is part of the product, and nothing of
the product imports it.
"""
