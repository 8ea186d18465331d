"""Targets of the worker: what a run shows of each, and nothing of what it did not measure."""

import math
from dataclasses import fields

import pytest

from bench.worker_figures import Retry, Run, Sleepers, Success
from bench.worker_targets import judge, show_targets


def row(kind, contender, **known):
    values = {field.name: 0 for field in fields(kind)} | {"version": "4.3.6", "contender": contender}
    return kind(**values | known)


def success(contender, per_second, worker_cpu=100.0):
    return row(Success, contender, per_second=per_second, worker_cpu=worker_cpu)


def held(run):
    return {verdict.target: verdict.held for verdict in judge(run)}


def only(run):
    (verdict,) = judge(run)
    return verdict


@pytest.mark.parametrize(("rate", "enough"), [(6000, True), (5999, False)])
def test_six_times_dramatiq_is_what_the_faster_of_two_modes_must_reach(rate, enough):
    run = Run({}, success=[success("dramatiq", 1000, 0), success("thread", 10), success("async", rate)])
    assert held(run)["messages/s of thread or async ≥ 6 × dramatiq"] is enough


@pytest.mark.parametrize(("rate", "enough"), [(4000, True), (3999, False)])
def test_process_is_measured_beside_the_better_of_celery_s_two_preforks(rate, enough):
    rows = [success("celery", 500), success("celery-quorum", 1000), success("process", rate)]
    assert held(Run({}, success=rows))["messages/s of process ≥ 4 × celery or celery-quorum"] is enough


@pytest.mark.parametrize(("cpu", "enough"), [(25.0, True), (25.1, False)])
def test_cpu_is_compared_with_the_cheapest_peer(cpu, enough):
    rows = [success("taskiq", 1, 400.0), success("faststream", 1, 100.0), success("thread", 1, cpu)]
    verdict = only(Run({}, success=rows))
    assert (verdict.held, "thread to faststream" in verdict.measured) == (enough, True)


def test_rounds_count_by_their_median():
    rows = [success("select", rate) for rate in (100, 1000, 1001)] + [success("thread", 600)]
    assert held(Run({}, success=rows)) == {"messages/s of thread or async ≥ 0.6 × select": True}


def test_retries_and_lateness_are_judged_for_every_mode_that_was_measured():
    retries = [row(Retry, name, per_second=rate, late_p99=99) for name, rate in (("select", 10), ("process", 7))]
    assert held(Run({}, retry=retries)) == {
        "retries/s of process ≥ 0.8 × select": False,
        "p99 lateness of process < 100 ms": True,
    }


@pytest.mark.parametrize(
    ("found", "enough"),
    [
        ({"asleep": 10_000, "memory_asleep": 38.1}, True),
        ({"asleep": 10_000, "memory_asleep": 38.2}, False),
        ({"asleep": 10_000, "memory_asleep": 38.1, "unacked": 1}, False),
        ({"asleep": 9_999, "memory_asleep": 38.1}, False),
    ],
)
def test_sleepers_are_enough_only_if_all_sleep_and_none_is_held(found, enough):
    assert only(Run({}, sleepers=[row(Sleepers, "thread", sleepers=10_000, **found)])).held is enough


def test_bound_of_forty_megabytes_is_one_of_a_million_bytes_each():
    verdict = only(Run({}, sleepers=[row(Sleepers, "thread", sleepers=10_000, asleep=10_000, memory_asleep=38.2)]))
    assert (verdict.held, verdict.measured) == (False, "0 of 10,000, 40.1 MB")


def test_fewer_sleepers_than_the_target_names_say_nothing_of_it():
    assert judge(Run({}, sleepers=[row(Sleepers, "thread", sleepers=100, asleep=100)])) == []


def test_run_without_the_peer_says_nothing_of_the_target():
    run = Run({}, success=[success("thread", 10)])
    assert (judge(run), show_targets(run)) == ([], "")


@pytest.mark.parametrize("nothing", [0, math.nan])
def test_target_of_which_a_figure_is_missing_is_neither_held_nor_missed(nothing):
    run = Run({}, success=[success("select", nothing), success("thread", 600)])
    verdict = only(run)
    assert (verdict.measured, verdict.held) == ("not measured", None)
    assert show_targets(run).splitlines()[-1].split("|")[-2].strip() == "–"


def test_figure_of_one_name_is_enough_where_several_stand_for_a_target():
    run = Run({}, success=[success("select", 1000), success("thread", math.nan), success("async", 700)])
    assert only(run).measured == "0.70 (async to select)"


def test_lateness_and_memory_that_were_not_measured_are_told():
    run = Run(
        {},
        retry=[row(Retry, "thread", late_p99=math.nan)],
        sleepers=[row(Sleepers, "thread", sleepers=10_000, asleep=10_000, memory_asleep=math.nan)],
    )
    assert set(held(run).values()) == {None}


def test_message_that_came_back_at_its_very_moment_was_not_late():
    assert only(Run({}, retry=[row(Retry, "thread", late_p99=0.0)])).held is True


def test_each_release_is_judged_by_its_own_rows():
    rows = [success("dramatiq", 1), success("thread", 9), row(Success, "thread", version="3.10.8", per_second=1)]
    assert {verdict.version for verdict in judge(Run({}, success=rows))} == {"4.3.6"}
