"""Targets of the worker: what a run shows of each, and nothing of what it did not measure."""

import math
from dataclasses import fields

import pytest

from bench.worker_figures import Crash, Growth, Retry, Run, Sleepers, Success
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


@pytest.mark.parametrize(("cpu", "enough"), [(25.0, True), (25.1, False)])
def test_cpu_of_process_is_compared_with_the_cheapest_peer_as_well(cpu, enough):
    rows = [success("celery", 1, 400.0), success("faststream", 1, 100.0), success("process", 1, cpu)]
    assert held(Run({}, success=rows))["worker CPU of process ≤ 0.25 × the best peer's"] is enough


@pytest.mark.parametrize(
    ("found", "lost", "overspent"),
    [
        ({"asleep": 2000}, True, True),
        ({"asleep": 2000, "lost": 1}, False, True),
        ({"asleep": 2000, "overspent": 1}, True, False),
        ({"asleep": 1999, "overspent": 1}, True, None),  # killed at its work
    ],
)
def test_crash_is_to_cost_neither_a_message_nor_an_attempt(found, lost, overspent):
    crashes = [row(Crash, "process", sleepers=2000, **found), row(Crash, "celery", sleepers=2000, asleep=2000, lost=9)]
    assert held(Run({}, crash=crashes)) == {
        "process killed while messages sleep: none lost": lost,
        "process killed while messages sleep: no attempt overspent": overspent,
    }


def growth(contender, messages, concurrency, worker_cpu):
    return row(Growth, contender, messages=messages, concurrency=concurrency, worker_cpu=worker_cpu)


@pytest.mark.parametrize(("last", "enough"), [(40.0, True), (125.0, True), (126.0, False)])
def test_message_is_to_cost_no_more_among_a_million_than_among_a_thousand(last, enough):
    costs = {1000: 100.0, 100_000: 160.0, 1_000_000: last}
    rows = [growth("thread", count, 4, cost) for count, cost in costs.items()]
    verdict = only(Run({}, growth=rows))
    assert verdict.target == "CPU of a message of thread at 1,000,000 messages ≤ 1.25 × at 1,000"
    assert verdict.held is enough
    assert verdict.measured == f"{last / 100:.2f}; highest {160 / min(last, 100):.2f} × lowest"


@pytest.mark.parametrize(("last", "enough"), [(125.0, True), (126.0, False)])
def test_message_is_to_cost_no_more_where_many_run_at_once(last, enough):
    rows = [growth("process", 100_000, at_once, cost) for at_once, cost in ((1, 100.0), (4, 100.0), (64, last))]
    assert held(Run({}, growth=rows)) == {"CPU of a message of process at concurrency 64 ≤ 1.25 × at 1": enough}


def test_curve_that_does_not_reach_so_far_says_nothing_of_it():
    assert judge(Run({}, growth=[growth("thread", count, 4, 10.0) for count in (1000, 100_000)])) == []


def test_end_of_a_curve_without_a_figure_is_told():
    rows = [growth("thread", 1000, 4, math.nan), growth("thread", 1_000_000, 4, 10.0)]
    assert only(Run({}, growth=rows)).measured == "not measured"


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


@pytest.mark.parametrize(("own", "enough"), [(38.1, True), (38.2, False)])
def test_worker_s_own_process_is_judged_and_its_children_are_told_beside_it(own, enough):
    found = {"sleepers": 10_000, "asleep": 10_000, "memory_asleep": 65.0, "own_asleep": own}
    verdict = only(Run({}, sleepers=[row(Sleepers, "process", **found)]))
    assert verdict.held is enough
    assert verdict.measured.endswith(" MB (68.2 MB with its children)")


def test_older_run_says_nothing_of_a_worker_without_its_children():
    found = {"sleepers": 10_000, "asleep": 10_000, "memory_asleep": 30.0, "own_asleep": math.nan}
    assert only(Run({}, sleepers=[row(Sleepers, "process", **found)])).held is None
    assert only(Run({}, sleepers=[row(Sleepers, "async", **found)])).held is True


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
