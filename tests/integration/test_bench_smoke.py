"""The bench of the ladder runs to its end in small, loses nothing and fills every row. No figure of it is judged."""

import json
import os
import subprocess
import sys
from itertools import product

import pytest

from redrive_testbed.places import REPOSITORY
from redrive_testbed.rabbitmq_release import TESTED

SLEEPERS = 50
CONTENDERS = ("plain", "hex", "celery", "nservicebus")
REFUSED = 2  # the exit code when no broker can run on this machine


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    page = tmp_path_factory.mktemp("bench") / "page.md"
    page.write_text("before\n<!-- bench.ladder: begin; written by the bench, edits are lost -->\nold\n")
    with page.open("a") as more:
        more.write("<!-- bench.ladder: end -->\nafter\n")
    return page


@pytest.fixture(scope="module")
def run(page):
    figures = page.with_name("run.json")
    words = ("--quick", "--release", TESTED[-1], "--sleepers", str(SLEEPERS), "--json", figures, "--markdown", page)
    done = subprocess.run(
        [sys.executable, "-m", "bench.ladder", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if done.returncode == REFUSED and not os.environ.get("CI"):
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return json.loads(figures.read_text())


def test_bench_skips_nothing(run):
    assert run["skipped"] == []


def test_bench_has_a_row_for_every_contender_and_workload(run):
    rows = sorted((row["contender"], row["workload"], row["sleepers"]) for row in run["figures"])
    assert rows == sorted(product(CONTENDERS, ("random to 0.5 s", "fixed 0.25 s"), (SLEEPERS,)))


def test_bench_brings_every_contender_s_sleepers_home(run):
    assert sorted(row["contender"] for row in run["homecomings"]) == sorted(CONTENDERS)


def test_bench_loses_nothing(run):
    assert [row["lost"] for row in (*run["figures"], *run["homecomings"])] == [0] * 3 * len(CONTENDERS)


def test_bench_looks_at_the_bare_broker_and_at_an_idle_ladder(run):
    assert [(row["ladders"], row["queues"]) for row in run["idle"]] == [(0, 0), (1, 46)]


def test_bench_replaces_only_what_is_between_the_markers(run, page):
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert run["facts"]["command"] in text
