"""The frameworks that a team would pick instead of Redrive, each as its documentation says to run it.

The modules `on_…` are imported by the Python of the peers' own environment only (`bench/peers/.venv`, made by
`make peers` from the lock beside this file), which has no Redrive in it. The others need neither.
"""
