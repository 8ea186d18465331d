"""What is told of places, crashes and scaling: once each, whatever goes on meanwhile."""

from dataclasses import replace

import pytest
from verdicts import AWAY, FINE, LATER, RUNNING, Story, a_consumer

from redrive.errors import SpecError
from redrive_operator.causes import PlacementCause
from redrive_operator.observation import Crashing, Observation, Problem, Unplaced, WorkersSeen

FULL = Unplaced(PlacementCause.INSUFFICIENT_CPU, 1, "0/1 nodes are available: 1 Insufficient cpu")
PULLING = Unplaced(PlacementCause.IMAGE, 1, "no such image")
CRASHING = Crashing(1, "orders-7d-x", "exit code 2: no module named shop")
PAUSED = a_consumer(paused=True)
ELSEWHERE = a_consumer(worker=None)


def workers(*unplaced, **changes):
    return replace(FINE, workers=replace(RUNNING, unplaced=unplaced, **changes))


NONE_PLACED = workers(FULL, available=0)
AGAIN = workers(waiting=1, available=0)
LOST = workers(available=0)


def crashing(**changes):
    return workers(crashing=replace(CRASHING, **changes), available=1)


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ([FINE], NONE_PLACED, ["FailedWorkerPlacement"]),
        ([], workers(FULL, available=0, updated=1), ["Provisioned", "FailedWorkerPlacement"]),
        ([FINE, AGAIN], workers(FULL, available=0), ["FailedWorkerPlacement"]),
        ([FINE, NONE_PLACED], workers(FULL, PULLING, available=0), ["FailedWorkerPlacement"]),
        ([FINE, NONE_PLACED], workers(PULLING, available=0), ["FailedWorkerPlacement"]),
        ([FINE, workers(FULL, PULLING)], workers(FULL), []),
        ([FINE, NONE_PLACED], workers(replace(FULL, count=2, message="0/2 nodes"), available=0), []),
        ([FINE, NONE_PLACED], AGAIN, []),
        ([FINE, NONE_PLACED, AGAIN], NONE_PLACED, []),
        ([FINE, workers(FULL), workers(PULLING)], workers(FULL), []),
        ([FINE, workers(FULL, PULLING), workers(FULL, waiting=1)], workers(FULL, PULLING), []),
        ([FINE, NONE_PLACED, Observation(AWAY)], workers(FULL, available=0), ["BrokerReachable"]),
        ([FINE, workers(FULL)], FINE, ["WorkersPlaced"]),
        ([FINE, workers(FULL)], workers(waiting=1), []),
        ([FINE, workers(FULL), workers(waiting=1)], FINE, ["WorkersPlaced"]),
        ([FINE, workers(FULL), FINE], workers(FULL), ["FailedWorkerPlacement"]),
        ([FINE, workers(FULL)], workers(wanted=0, exist=0, available=0, updated=0), []),
        ([FINE, workers(FULL)], workers(problem=Problem("NameTaken", "a Deployment")), ["NameTaken"]),
        ([FINE, workers(FULL)], crashing(), ["WorkersPlaced", "CrashLooping"]),
        ([FINE, workers(waiting=1)], FINE, []),
        ([FINE], workers(failure="exceeded quota", available=1), []),
        ([FINE, workers(failure="quota")], workers(FULL, failure="quota"), ["FailedWorkerPlacement"]),
        ([FINE, NONE_PLACED], workers(FULL, available=0, stalled="late"), []),
        ([FINE], workers(FULL, stalled="late"), ["FailedWorkerPlacement"]),
        ([FINE, LOST], workers(FULL, available=0), ["FailedWorkerPlacement"]),
        ([FINE, workers(FULL)], workers(FULL, problem=Problem("Refused", "no")), ["WorkersUnavailable"]),
        ([FINE], crashing(), ["CrashLooping"]),
        ([FINE, crashing()], crashing(count=2, pod="orders-7d-y", message="exit code 137 (OOMKilled)"), []),
        ([FINE, crashing()], FINE, ["WorkersAvailable"]),
        ([FINE, crashing(), FINE], crashing(), ["CrashLooping"]),
        ([FINE], workers(FULL, crashing=CRASHING), ["FailedWorkerPlacement", "CrashLooping"]),
        ([FINE], workers(scaled="from 2 to 5 workers: 400 messages wait"), ["Scaled"]),
    ],
)  # fmt: skip
def test_what_is_told_follows_from_what_was_and_what_is(before, now, told):
    story = Story()
    for seen in before:
        story.see(seen)
    assert story.see(now) == told


def test_event_says_what_the_condition_says():
    story = Story()
    story.see(FINE)
    story.see(workers(replace(FULL, message="ü" * 3000), PULLING))
    assert [(one.type, one.message) for one in story.events] == [
        ("Warning", story.condition("WorkersPlaced")["message"])
    ]


def test_an_hour_of_pods_that_are_made_anew_tells_of_two_causes_twice():
    story, told = Story(), []
    story.see(replace(FINE, workers=WorkersSeen(2)))
    for _ in range(60):
        for unplaced, waiting in (((FULL,), 0), ((FULL,), 1), ((FULL, PULLING), 0), ((PULLING,), 0), ((), 1)):
            told += story.see(workers(*unplaced, waiting=waiting, available=0), now=LATER)
    assert told == ["FailedWorkerPlacement"] * 2


@pytest.mark.parametrize(("consumer", "told"), [(PAUSED, ["Paused"]), (ELSEWHERE, [])], ids=["paused", "elsewhere"])
def test_workers_that_are_no_longer_wanted_have_not_found_their_places(consumer, told):
    story = Story()
    story.see(workers(FULL))
    story.consumer = consumer
    assert story.see(replace(FINE, workers=replace(RUNNING, wanted=0) if consumer is PAUSED else None)) == told


def test_a_deletion_is_no_recovery():
    story = Story()
    story.see(workers(FULL))
    story.deleting = True
    assert story.see(FINE) == ["Deleting"]


def test_a_spec_that_cannot_be_used_is_no_recovery():
    story = Story()
    story.see(workers(FULL))
    assert story.see(SpecError("spec.replicas", "must be at most 1000")) == ["InvalidSpec"]


def test_scaling_is_told_in_the_words_of_who_scaled():
    story = Story()
    story.see(FINE)
    story.see(workers(scaled="from 2 to 5 workers: 400 messages wait"))
    assert [(one.type, one.message) for one in story.events] == [("Normal", "from 2 to 5 workers: 400 messages wait")]
