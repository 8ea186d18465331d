"""Events in a long trial: what is told while nothing changes is found, and what a fault has told is bounded."""

import pytest
from faults.event_counts import (
    NAMESPACE,
    OBJECTS,
    QUIET_ALLOWANCES,
    REDRIVE,
    TOLD,
    TOLD_OF_A_FAULT,
    Sample,
    count_events,
    longest,
    quiet_growth,
    told_too_much,
)
from faults.flatness import judge

KEY = (REDRIVE, TOLD)


def event(**facts):
    return {"source": {}, **facts}


def test_events_are_counted_by_who_told_them_and_how_often():
    counts = count_events(
        [
            event(count=3, source={"component": "redrive"}),
            event(reportingComponent="redrive"),
            event(count=5, source={"component": "kubelet"}),
            event(count=None, reportingComponent="default-scheduler", series={"count": 7}),
        ]
    )
    assert counts == {(REDRIVE, OBJECTS): 2, (REDRIVE, TOLD): 4, (NAMESPACE, OBJECTS): 4, (NAMESPACE, TOLD): 16}


def test_nothing_that_was_told_is_counted_as_nothing():
    assert set(count_events([]).values()) == {0}


def samples(value, *, cycles=6, every=10):
    """Give samples of some minutes: every 150 seconds a fault, of 60 seconds, and then nothing happens."""
    return [
        Sample(float(at), {KEY: value(at)}, None if at % 150 < 60 else at // 150)
        for at in range(0, cycles * 150, every)
    ]


def verdict(value):
    return judge(quiet_growth(samples(value), KEY), QUIET_ALLOWANCES[REDRIVE])


def test_only_what_grew_while_nothing_happened_counts():
    series = quiet_growth(samples(lambda at: float(at // 150)), KEY)
    assert {grown for _, grown in series} == {0.0}
    assert series[-1][0] == 6 * 80.0


def test_events_of_every_fault_are_flat():
    assert verdict(lambda at: 4.0 * (1 + at // 150)).is_flat


@pytest.mark.parametrize("seconds", [10, 30, 60])
def test_events_that_are_told_again_and_again_are_not_flat(seconds):
    assert not verdict(lambda at: float(at // seconds)).is_flat


def test_event_that_is_told_once_while_nothing_happens_is_no_growth():
    assert verdict(lambda at: float(at > 500)).is_flat


def test_what_kubernetes_forgets_hides_nothing():
    assert not verdict(lambda at: at // 10 - 100.0 * (at > 500)).is_flat


def test_faults_of_which_too_much_is_told_are_told():
    six = samples(lambda at: float(TOLD_OF_A_FAULT * (at // 150)), cycles=7)
    assert told_too_much(six, 6) == []
    [complaint] = told_too_much(six, 5)
    assert "24 times of 5 faults, not 20" in complaint


def test_operator_is_judged_by_the_process_that_lived_longest():
    assert longest({1: [(0.0, 1.0)], 2: [(1.0, 2.0), (2.0, 3.0)]}) == [(1.0, 2.0), (2.0, 3.0)]
    assert longest({}) == ()
