"""The benches run to their end in small, lose nothing and fill every row. No figure of theirs is judged."""

import subprocess
import sys
from itertools import product

import pytest
from bench_runs import run_bench, write_page

from redrive_testbed.places import REPOSITORY

SLEEPERS = 50
CONTENDERS = ("plain", "hex", "celery", "nservicebus")
OUR_MODES = ("thread", "async", "process")
OUR_RUNNERS = (*OUR_MODES, "command", "http")
SCRIPTED = ("blocking", "select", *OUR_RUNNERS)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("bench"), "bench.ladder")


@pytest.fixture(scope="module")
def run(page):
    return run_bench("bench.ladder", page, "--sleepers", str(SLEEPERS))


@pytest.fixture(scope="module")
def worker_page(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("bench"), "bench.worker")


@pytest.fixture(scope="module")
def worker_run(worker_page):
    # Without the peers: test_bench_peers.
    return run_bench(
        "bench.worker", worker_page, "--contenders", ",".join(SCRIPTED), "--parts", "success,retry,sleepers,idle"
    )


@pytest.fixture(scope="module")
def crash_page(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("bench"), "bench.worker")


@pytest.fixture(scope="module")
def crash_run(crash_page):
    few = ("--sleep", "6", "--handler-ms", "0", "--bodies", "1024")
    return run_bench("bench.worker", crash_page, "--contenders", "thread", "--parts", "crash,sweep,growth", *few)


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
    assert_replaced(page, run)


def test_bench_of_the_worker_skips_nothing(worker_run):
    assert worker_run["skipped"] == []


def test_bench_of_the_worker_has_a_row_for_every_contender_and_workload(worker_run):
    rows = {part: [row["contender"] for row in worker_run[part]] for part in ("success", "retry", "sleepers", "idle")}
    assert rows == {
        "success": [*SCRIPTED],
        "retry": ["select", *OUR_RUNNERS],
        "sleepers": ["select", *OUR_MODES],
        "idle": ["blocking", "select", *OUR_MODES],
    }


def test_bench_of_the_worker_tells_the_memory_of_one_with_nothing_to_do_by_process(worker_run):
    generations = {row["contender"]: [share["generation"] for share in row["shares"]] for row in worker_run["idle"]}
    assert generations == {"blocking": [], "select": [], "thread": [0], "async": [0], "process": [0, 1, 2, 2, 2, 2]}
    assert all(0 < share["private"] <= share["pss"] for row in worker_run["idle"] for share in row["shares"])
    assert all(row["memory"] > 0 and row["seconds"] >= 1 for row in worker_run["idle"])


def test_bench_of_the_worker_loses_nothing_and_runs_nothing_twice(worker_run):
    rows = [row for part in ("success", "retry", "sleepers") for row in worker_run[part]]
    assert [
        (row["contender"], row["lost"], row["duplicated"]) for row in rows if row["lost"] or row["duplicated"]
    ] == []


def test_bench_of_the_worker_replaces_only_what_is_between_the_markers(worker_run, worker_page):
    assert_replaced(worker_page, worker_run)


def test_bench_of_the_worker_kills_one_whose_messages_sleep_and_none_notices(crash_run):
    (row,) = crash_run["crash"]
    assert row["asleep"] == row["sleepers"] > 0
    assert (row["lost"], row["duplicated"], row["overspent"]) == (0, 0, 0)


def test_bench_of_the_worker_sweeps_what_was_asked_for_and_loses_nothing(crash_run):
    rows = [(row["concurrency"], row["lost"], row["duplicated"]) for row in crash_run["sweep"]]
    assert rows == [(1, 0, 0), (4, 0, 0)]
    assert all(row["per_second"] > 0 and row["messages"] >= 100 for row in crash_run["sweep"])


def test_bench_of_the_worker_draws_what_a_message_costs_as_there_are_more(crash_run, crash_page):
    assert crash_run["skipped"] == []
    loads = [(row["messages"], row["concurrency"]) for row in crash_run["growth"]]
    assert loads == [(100, 4), (300, 4), (1500, 1), (1500, 4)]  # more of them where children have to be started
    assert "worker-growth.png" in crash_page.read_text()
    assert crash_page.with_name("worker-growth.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def letters_page(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("bench"), "bench.letters")


@pytest.fixture(scope="module")
def letters_run(letters_page):
    return run_bench("bench.letters", letters_page)


def test_bench_of_letters_has_a_row_for_every_contender_and_loses_nothing(letters_run, letters_page):
    assert letters_run["skipped"] == []
    assert [(row["part"], row["contender"], row["lost"]) for row in letters_run["figures"]] == [
        ("scan", "bare", 0),
        ("scan", "redrive", 0),
        ("requeue", "bare", 0),
        ("requeue", "pipelined", 0),
        ("requeue", "redrive", 0),
    ]
    assert_replaced(letters_page, letters_run)


def test_bench_of_the_hot_path_times_every_step():
    words = [sys.executable, "-m", "bench.hot_path", "--quick"]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "the whole loop, retry" in done.stdout


def assert_replaced(page, run):
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "FORMER" not in text
    assert run["facts"]["command"] in text
