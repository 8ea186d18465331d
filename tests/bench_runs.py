"""A bench run in small as a process of its own, as a person runs it, and the figures that it kept."""

import json
import os
import subprocess
import sys

import pytest

from redrive_testbed.places import REPOSITORY
from redrive_testbed.rabbitmq_release import TESTED

REFUSED = 2  # the exit code when no broker can run on this machine


def write_page(folder, bench):
    page = folder / f"{bench}.md"
    page.write_text(f"before\n<!-- {bench}: begin; written by the bench, edits are lost -->\nFORMER\n")
    with page.open("a") as more:
        more.write(f"<!-- {bench}: end -->\nafter\n")
    return page


def run_bench(bench, page, *options):
    """Run it, which leaves the page as it is, and write the page from what it kept."""
    figures = page.with_suffix(".json")
    done = _run(bench, "--quick", "--release", TESTED[-1], *options, "--json", figures, "--markdown", page)
    if done.returncode == REFUSED and not os.environ.get("CI"):
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert "FORMER" in page.read_text()
    written = _run(bench, "--from", figures, "--markdown", page)
    assert written.returncode == 0, written.stderr
    return json.loads(figures.read_text())


def _run(bench, *words):
    return subprocess.run(
        [sys.executable, "-m", bench, *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
