"""The soak with pods: what is broken when, which samples are of a time in which nothing happens, and the verdict."""

import os

import pytest
from faults import kubernetes_soak
from faults.event_counts import NAMESPACE, OBJECTS, REDRIVE, TOLD, Sample
from faults.kubernetes_catalogue import KUBERNETES_CATALOGUE
from faults.kubernetes_soak import FAULTS, Watch, due, judge_all
from faults.sampling import MEMORY, OPEN_FILES

KEYS = [(who, what) for who in (REDRIVE, NAMESPACE) for what in (OBJECTS, TOLD)]


def test_operator_is_killed_in_the_first_third_and_then_grows_old():
    assert due(FAULTS, 0.1) == ["operator-killed"]
    assert due(FAULTS, 0.4) == ["pod-deleted", "pod-evicted", "rolling-update"]
    assert due(["pod-deleted"], 0.1) == ["pod-deleted"]
    assert due(["operator-killed"], 0.4) == []


def test_faults_that_are_broken_unless_others_are_asked_for_exist():
    assert set(FAULTS) <= set(KUBERNETES_CATALOGUE)


class Stage:
    """As much of a stage as is looked at: an event that was told so often, and an operator."""

    def __init__(self, *, meanwhile=lambda: None):
        self.namespace = self.kubernetes = self.operator = self
        self.meanwhile = meanwhile

    def get(self, what):
        assert what == "events"
        self.meanwhile()
        return {"items": [{"count": 3, "reportingComponent": "redrive"}]}

    def pods(self):
        return [{"metadata": {"uid": "1"}}]


@pytest.fixture
def watch(tmp_path, monkeypatch):
    monkeypatch.setattr(kubernetes_soak, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(kubernetes_soak, "pids_of", lambda uid: [os.getpid()])
    return lambda stage: Watch(stage, tmp_path / "samples")


def test_look_keeps_events_and_the_operators_process(watch):
    looking = watch(Stage())
    told = looking.look()
    [sample] = looking.samples
    assert (sample.figures[REDRIVE, TOLD], sample.quiet) == (3.0, 0)
    assert {what for _, what in looking.lives} == {MEMORY, OPEN_FILES}
    assert told["Redrive's events / times told"] == 3.0


def test_time_after_a_fault_is_another_one_in_which_nothing_happens(watch):
    looking = watch(Stage())
    with looking.disturbed():
        looking.look()
    looking.look()
    assert [sample.quiet for sample in looking.samples] == [None, 1]


def test_look_during_which_something_was_broken_is_of_no_such_time(watch):
    stage = Stage()
    looking = watch(stage)

    def break_something():
        with looking.disturbed():
            pass

    stage.meanwhile = break_something
    looking.look()
    assert looking.samples[0].quiet is None


def test_time_right_after_a_fault_is_no_such_time(watch, monkeypatch):
    monkeypatch.setattr(kubernetes_soak, "GRACE_SECONDS", 20.0)
    looking = watch(Stage())
    looking.look()
    assert looking.samples[0].quiet is None


def minutes(told, *, operator=lambda _: 60.0):
    """Give a quarter of an hour in which nothing is broken: 90 samples, and an operator that replaced another."""
    times = [float(at) for at in range(0, 900, 10)]
    samples = [Sample(at, dict.fromkeys(KEYS, told(at)), 0) for at in times]
    life = [(at, operator(at)) for at in times[20:]]
    lives = {(1, MEMORY): [(0.0, 500.0)], (2, MEMORY): life, (2, OPEN_FILES): [(at, 9.0) for at, _ in life]}
    return judge_all(samples, lives)


def test_quarter_of_an_hour_in_which_nothing_grew_is_flat():
    courses = minutes(lambda _: 5.0)
    assert set(courses) == {*KEYS, ("operator", MEMORY), ("operator", OPEN_FILES)}
    assert all(course.is_flat for course in courses.values())


def test_events_that_are_told_every_minute_are_not_flat():
    courses = minutes(lambda at: at // 60)
    assert {key for key, course in courses.items() if not course.is_flat} == set(KEYS)


def test_operator_whose_memory_grows_is_not_flat():
    courses = minutes(lambda _: 5.0, operator=lambda at: 60.0 + at / 60)
    assert [key for key, course in courses.items() if not course.is_flat] == [("operator", MEMORY)]


def test_operator_that_was_hardly_seen_is_not_judged():
    assert judge_all([], {})["operator", MEMORY] is None
