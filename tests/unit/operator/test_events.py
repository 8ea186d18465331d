"""What is told, and that it is told once."""

from dataclasses import replace

import pytest
from verdicts import AWAY, BROKER, CONNECTED, FINE, RUNNING, Story, a_consumer

from redrive.errors import SpecError
from redrive_operator.observation import BrokerSeen, Deleting, Observation, Problem, TopologySeen, WorkersSeen

WRONG = SpecError("spec.replicas", "must be at most 1000")
LACKING = replace(FINE, topology=TopologySeen(missing=("no exchange 'a'",)))
WAITING = Observation(BROKER, TopologySeen(Problem("QueueRefused", "a stream")))
MENDED = replace(FINE, topology=TopologySeen(repaired=("queue 'orders' is missing",)))


def topology(**changes):
    return replace(FINE, topology=TopologySeen(**changes))


def workers(**changes):
    return replace(FINE, workers=replace(RUNNING, **changes))


def trouble(reason):
    return Problem(reason, f"{reason}: change this")


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ([], FINE, ["Provisioned", "WorkersAvailable"]),
        ([], replace(FINE, workers=WorkersSeen(2)), ["Provisioned"]),
        ([], Observation(AWAY), ["BrokerUnreachable"]),
        ([FINE], Observation(AWAY), ["BrokerUnreachable"]),
        ([FINE], Observation(AWAY, workers=replace(RUNNING, available=0)), ["BrokerUnreachable"]),
        ([Observation(AWAY)], Observation(BrokerSeen("/", "Secret", trouble("AccessRefused"))), ["BrokerUnreachable"]),
        ([FINE, Observation(AWAY, workers=RUNNING)], FINE, ["BrokerReachable"]),
        ([Observation(AWAY)], MENDED, ["BrokerReachable", "Provisioned", "WorkersAvailable"]),
        ([], LACKING, ["Provisioned", "Incomplete", "WorkersAvailable"]),
        ([LACKING], topology(missing=("no exchange 'a'", "no policies")), ["Incomplete"]),
        ([LACKING], FINE, ["Provisioned"]),
        ([LACKING, Observation(AWAY, workers=RUNNING)], LACKING, ["BrokerReachable"]),
        ([FINE], topology(problem=trouble("QueueRefused")), ["TopologyNotReady"]),
        ([FINE], topology(problem=trouble("QueueConflict")), ["QueueConflict"]),
        ([topology(problem=trouble("QueueConflict"))], topology(problem=trouble("Broken")), ["TopologyNotReady"]),
        ([topology(problem=trouble("Broken"))], FINE, ["Provisioned"]),
        ([FINE], workers(available=1), ["WorkersUnavailable"]),
        ([FINE, workers(available=1)], FINE, ["WorkersAvailable"]),
        ([FINE], workers(wanted=5, exist=5, updated=5), []),
        ([FINE], workers(wanted=0), []),
        ([FINE], workers(failure="exceeded quota"), []),
        ([workers(failure="exceeded quota")], workers(stalled="late"), ["WorkersUnavailable"]),
        ([FINE], workers(problem=trouble("Refused")), ["WorkersUnavailable"]),
        ([FINE], workers(problem=trouble("NameTaken")), ["NameTaken"]),
        ([FINE], MENDED, ["DriftRepaired"]),
        ([FINE], workers(repaired=("Deployment orders was updated",)), ["DriftRepaired"]),
        ([], workers(repaired=("Deployment orders was created",)), ["Provisioned", "WorkersAvailable"]),
        ([WAITING], workers(repaired=("Deployment orders was created",)), ["Provisioned", "WorkersAvailable"]),
        ([FINE], replace(FINE, reclaimed=2), ["OrphansReclaimed"]),
        ([FINE], replace(FINE, password_rotated=True), ["PasswordRotated"]),
        ([FINE], WRONG, ["InvalidSpec"]),
        ([WRONG], SpecError("spec.paused", "must be true or false"), ["InvalidSpec"]),
        ([WRONG], WRONG, []),
        ([FINE], replace(FINE, deleting=Deleting("its workers", "Deleting")), ["Deleting"]),
        ([FINE], replace(FINE, deleting=Deleting("5 dead letters", "DeletionBlocked")), ["DeletionBlocked"]),
        ([replace(FINE, deleting=Deleting("7", "Draining"))], replace(FINE, deleting=Deleting("6", "Draining")), []),
    ],
)  # fmt: skip
def test_what_is_told_follows_from_what_was_and_what_is(before, now, told):
    story = Story()
    for seen in before:
        story.see(seen)
    assert story.see(now) == told


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ([], CONNECTED, []),
        ([CONNECTED], replace(CONNECTED, problem=trouble("Unreachable")), ["BrokerUnreachable"]),
        ([replace(CONNECTED, problem=trouble("Unreachable"))], CONNECTED, ["BrokerReachable"]),
        ([CONNECTED], replace(CONNECTED, permissions=trouble("Insufficient")), ["PermissionsInsufficient"]),
        ([replace(CONNECTED, permissions=trouble("Insufficient"))], CONNECTED, ["PermissionsSufficient"]),
        ([CONNECTED], WRONG, ["InvalidSpec"]),
    ],
)
def test_what_is_told_of_a_connection_follows_from_what_was_and_what_is(before, now, told):
    story = Story(kind="BrokerConnection")
    for seen in before:
        story.see(seen)
    assert story.see(now) == told


def test_pausing_and_going_on_are_told():
    story, idle = Story(), replace(FINE, workers=WorkersSeen(0))
    story.see(FINE)
    story.consumer = a_consumer(paused=True)
    assert story.see(idle) == ["Paused"]
    story.consumer = a_consumer()
    assert story.see(idle) == ["Resumed"]


def test_what_is_made_for_a_changed_spec_was_not_repaired():
    story = Story()
    story.see(FINE)
    story.generation = 2
    changed = replace(
        workers(repaired=("Deployment orders was updated",)), topology=TopologySeen(repaired=("a binding",))
    )
    assert story.see(changed) == []


def test_a_repair_names_a_few_things_and_counts_the_others():
    story = Story()
    story.see(FINE)
    story.see(topology(repaired=tuple(f"queue 'q{number}' is missing" for number in range(9))))
    assert story.events[0].message == (
        "queue 'q0' is missing; queue 'q1' is missing; queue 'q2' is missing; queue 'q3' is missing; "
        "queue 'q4' is missing; and 4 more"
    )


def test_a_long_list_of_long_things_still_counts_the_others():
    story = Story()
    story.see(FINE)
    story.see(topology(repaired=("ü" * 2000,) * 9))
    message = story.events[0].message
    assert len(message.encode()) <= 1024
    assert message.endswith("…; and 4 more")


def test_a_message_is_no_longer_than_kubernetes_takes():
    story = Story()
    story.see(Observation(BrokerSeen("/", "Secret", Problem("Unreachable", "ü" * 2000))))
    assert len(story.events[0].message.encode()) <= 1024


def test_warnings_are_told_from_what_nobody_needs_to_look_at():
    story = Story()
    story.see(Observation(AWAY))
    assert story.events[0].type == "Warning"
    story.see(FINE)
    assert {event.type for event in story.events} == {"Normal"}
