"""What each sight of a consumer comes to, row by row."""

from dataclasses import replace

import pytest
from verdicts import AWAY, BROKER, CONNECTED, FINE, LATER, NOW, RUNNING, THEN, Story, a_consumer

from redrive.errors import SpecError
from redrive_operator.observation import BrokerSeen, Crashing, Deleting, Observation, Problem, TopologySeen, WorkersSeen
from redrive_operator.reasons import BrokerReason, PermissionsReason, Status, TopologyReason, WorkersReason

CRASHING = Crashing(2, "orders-7d-x", "exit code 2: no module named shop")
GOING = [("Deleting", "False"), ("Draining", "False"), ("DeletionBlocked", "False")]


def judged(seen, name, **story):
    told = Story(**story)
    told.see(seen)
    return told.says(name)


def troubles(reasons):
    return [reason for reason in reasons if reason.status != Status.TRUE]


def workers(**changes):
    return replace(FINE, workers=replace(RUNNING, **changes))


def test_a_consumer_whose_parts_are_all_well_is_ready():
    story = Story()
    story.see(FINE)
    assert [(one["type"], one["status"], one["reason"]) for one in story.status["conditions"]] == [
        ("Ready", "True", "Ready"),
        ("BrokerReachable", "True", "Connected"),
        ("TopologyReady", "True", "Provisioned"),
        ("WorkersPlaced", "True", "Placed"),
        ("WorkersAvailable", "True", "Available"),
        ("Paused", "False", "NotPaused"),
    ]


@pytest.mark.parametrize("reason", troubles(BrokerReason))
def test_a_broker_that_cannot_be_used_says_why_and_so_does_ready(reason):
    story = Story()
    story.see(Observation(replace(BROKER, problem=Problem(reason, "change this"))))
    assert story.says("BrokerReachable") == story.says("Ready") == ("False", reason)
    assert story.condition("Ready")["message"] == "change this"


def test_nobody_knows_the_topology_of_a_broker_that_is_away():
    assert judged(Observation(AWAY), "TopologyReady") == ("Unknown", "BrokerUnreachable")


def test_nobody_knows_the_topology_when_the_connection_breaks_while_it_is_made():
    seen = replace(FINE, topology=TopologySeen(Problem("Unreachable", "broke")))
    assert judged(seen, "TopologyReady") == ("Unknown", "BrokerUnreachable")


def test_nobody_knows_a_topology_that_was_not_looked_at():
    assert judged(Observation(BROKER), "TopologyReady") == ("Unknown", "NotChecked")


@pytest.mark.parametrize("reason", troubles(TopologyReason))
def test_a_topology_that_cannot_be_used_says_why_and_so_does_ready(reason):
    story = Story()
    story.see(replace(FINE, topology=TopologySeen(Problem(reason, "change this"))))
    assert story.says("TopologyReady") == story.says("Ready") == (reason.status, reason)


def test_what_is_missing_is_said_and_leaves_a_consumer_ready():
    story = Story()
    story.see(replace(FINE, topology=TopologySeen(missing=("no exchange 'a'", "no policies"))))
    assert story.says("TopologyReady") == ("True", "Incomplete")
    assert story.condition("TopologyReady")["message"] == "no exchange 'a'; no policies"
    assert story.says("Ready") == ("True", "Ready")


@pytest.mark.parametrize("reason", troubles(WorkersReason))
def test_workers_that_cannot_be_made_say_why(reason):
    assert judged(workers(problem=Problem(reason, "change this")), "WorkersAvailable") == ("False", reason)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (WorkersSeen(2, exist=2, available=2, updated=2), ("True", "Available")),
        (WorkersSeen(1, exist=3, available=3, updated=3), ("True", "Available")),
        (WorkersSeen(0, exist=2, available=2, updated=2), ("True", "NoneWanted")),
        (WorkersSeen(0, problem=Problem("TopologyNotReady", "")), ("True", "NoneWanted")),
        (WorkersSeen(0, problem=Problem("NameTaken", "")), ("False", "NameTaken")),
        (WorkersSeen(2), ("False", "RollingOut")),
        (WorkersSeen(2, exist=2, available=0, updated=2), ("False", "RollingOut")),
        (WorkersSeen(2, exist=3, available=2, updated=1), ("False", "RollingOut")),
        (WorkersSeen(1, exist=2, available=1, updated=1), ("False", "RollingOut")),
        (WorkersSeen(2, exist=1, available=1, updated=1, failure="quota"), ("False", "CannotCreatePods")),
        (WorkersSeen(2, exist=3, available=2, updated=1, stalled="late"), ("False", "RolloutStalled")),
        (WorkersSeen(2, exist=2, updated=2, crashing=CRASHING), ("False", "CrashLooping")),
        (WorkersSeen(2, exist=3, available=2, updated=1, crashing=CRASHING), ("False", "CrashLooping")),
        (WorkersSeen(2, exist=2, updated=2, crashing=CRASHING, stalled="late"), ("False", "CrashLooping")),
        (WorkersSeen(2, exist=1, updated=1, crashing=CRASHING, failure="quota"), ("False", "CannotCreatePods")),
        (WorkersSeen(0, exist=1, updated=1, crashing=CRASHING), ("True", "NoneWanted")),
    ],
    ids=str,
)
def test_workers_are_judged_by_their_deployment_and_their_crashes(seen, expected):
    assert judged(replace(FINE, workers=seen), "WorkersAvailable") == expected


def test_workers_that_were_available_and_are_not_are_unavailable_until_they_are_again():
    story, lost = Story(), workers(available=1)
    story.see(FINE)
    story.see(lost)
    assert story.says("WorkersAvailable") == ("False", "Unavailable")
    story.see(lost)
    assert story.says("WorkersAvailable") == ("False", "Unavailable")
    story.see(FINE)
    assert story.says("WorkersAvailable") == ("True", "Available")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (2, "1 of 3 workers available; 2 crash again and again: pod orders-7d-x: exit code 2: no module named shop"),
        (1, "1 of 3 workers available; 1 crashes again and again: pod orders-7d-x: exit code 2: no module named shop"),
    ],
)
def test_a_crash_loop_says_how_many_and_how_one_of_them_ended(number, message):
    story = Story()
    story.see(workers(wanted=3, exist=3, available=1, crashing=replace(CRASHING, count=number)))
    assert story.condition("WorkersAvailable")["message"] == message


def test_more_workers_than_before_are_rolled_out_and_not_unavailable():
    story = Story()
    story.see(FINE)
    story.see(workers(wanted=5, exist=5, updated=5))
    assert story.says("WorkersAvailable") == ("False", "RollingOut")


def test_a_consumer_without_a_worker_runs_elsewhere_and_is_ready():
    story = Story(consumer=a_consumer(worker=None))
    story.see(Observation(BROKER, TopologySeen()))
    assert story.says("WorkersAvailable") == story.says("WorkersPlaced") == ("True", "RunElsewhere")
    assert story.says("Ready") == ("True", "Ready")


def test_workers_wait_for_a_topology_that_failed():
    seen = Observation(BROKER, TopologySeen(Problem("QueueRefused", "a stream")))
    assert judged(seen, "WorkersAvailable") == ("False", "TopologyNotReady")


def test_nobody_knows_workers_that_were_not_looked_at():
    seen = Observation(BROKER, TopologySeen())
    assert judged(seen, "WorkersAvailable") == judged(seen, "Ready") == ("Unknown", "NotChecked")


def test_a_paused_consumer_is_ready_and_says_that_it_is_paused():
    story = Story(consumer=a_consumer(paused=True))
    story.see(replace(FINE, workers=WorkersSeen(0)))
    assert story.says("Paused") == story.says("Ready") == ("True", "Paused")


def test_a_paused_consumer_whose_broker_is_away_is_not_ready():
    assert judged(Observation(AWAY), "Ready", consumer=a_consumer(paused=True)) == ("False", "Unreachable")


def test_what_failed_is_summed_up_before_what_nobody_knows():
    seen = Observation(BROKER, None, WorkersSeen(1, problem=Problem("NameTaken", "a Deployment 'orders'")))
    assert judged(seen, "Ready") == ("False", "NameTaken")


def test_a_reason_that_is_not_one_of_its_condition_is_replaced_and_its_message_kept():
    story = Story()
    story.see(replace(FINE, topology=TopologySeen(Problem("Provisioned", "no such place"))))
    assert story.says("TopologyReady") == ("False", "Broken")
    assert story.condition("TopologyReady")["message"] == "no such place"


@pytest.mark.parametrize(("reason", "status"), [*GOING, ("Anything", "False")])
def test_an_object_that_is_being_deleted_is_not_ready_and_says_what_it_waits_for(reason, status):
    story = Story()
    story.deleting = True
    story.see(replace(FINE, deleting=Deleting("3 messages", reason)))
    assert story.says("Ready") == (status, reason if (reason, status) in GOING else "Deleting")
    assert story.condition("Ready")["message"] == "it is being deleted, and waits for 3 messages"


@pytest.mark.parametrize(
    ("policy", "reason"), [("Retain", "NoneWanted"), ("Delete", "NoneWanted"), ("DeleteIfEmpty", "RollingOut")]
)
def test_workers_are_wanted_during_a_deletion_only_to_work_the_queue_off(policy, reason):
    story = Story(consumer=a_consumer(deletionPolicy=policy))
    story.deleting = True
    story.see(replace(FINE, workers=WorkersSeen(1)))
    assert story.says("WorkersAvailable")[1] == reason


def test_of_a_spec_that_cannot_be_used_nothing_else_is_judged():
    story = Story()
    story.see(SpecError("spec.retry.maxAttempts", "must be at least 1, got 0"))
    assert [(one["type"], one["status"], one["reason"]) for one in story.status["conditions"]] == [
        ("Ready", "False", "InvalidSpec"),
        ("BrokerReachable", "Unknown", "InvalidSpec"),
        ("TopologyReady", "Unknown", "InvalidSpec"),
        ("WorkersPlaced", "Unknown", "InvalidSpec"),
        ("WorkersAvailable", "Unknown", "InvalidSpec"),
        ("Paused", "Unknown", "InvalidSpec"),
    ]
    assert story.condition("Ready")["message"] == "spec.retry.maxAttempts: must be at least 1, got 0"


def test_a_connection_whose_broker_answers_and_whose_credentials_suffice_is_ready():
    story = Story(kind="BrokerConnection")
    story.see(CONNECTED)
    assert [(one["type"], one["status"], one["reason"]) for one in story.status["conditions"]] == [
        ("Ready", "True", "Ready"),
        ("BrokerReachable", "True", "Connected"),
        ("PermissionsSufficient", "True", "Sufficient"),
    ]


def test_a_connection_whose_credentials_do_not_suffice_is_not_ready():
    story = Story(kind="BrokerConnection")
    story.see(replace(CONNECTED, permissions=Problem(PermissionsReason.INSUFFICIENT, "give it the tag administrator")))
    assert story.says("PermissionsSufficient") == story.says("Ready") == ("False", "Insufficient")


def test_nobody_knows_what_the_credentials_of_a_broker_that_is_away_may_do():
    story = Story(kind="BrokerConnection")
    story.see(replace(CONNECTED, problem=Problem("Unreachable", "nobody answers")))
    assert story.says("PermissionsSufficient") == ("Unknown", "BrokerUnreachable")
    assert story.says("Ready") == ("False", "Unreachable")


def test_a_connection_that_is_being_deleted_says_who_still_uses_it():
    story = Story(kind="BrokerConnection")
    story.deleting = True
    story.see(CONNECTED)
    assert story.says("Ready") == ("False", "DeletionBlocked")
    assert "3 RetryingConsumers" in story.condition("Ready")["message"]


def test_the_time_of_a_condition_changes_with_its_status_alone():
    story = Story()
    story.see(replace(FINE, topology=TopologySeen(missing=("no exchange",))), now=NOW)
    story.see(FINE, now=LATER)
    assert story.condition("TopologyReady")["lastTransitionTime"] == THEN
    story.see(Observation(AWAY), now=LATER)
    assert story.condition("TopologyReady")["lastTransitionTime"] == "2026-05-01T12:05:00Z"


def test_every_condition_and_the_status_name_the_generation_that_was_judged():
    story = Story()
    story.generation = 7
    story.see(FINE)
    assert (
        {one["observedGeneration"] for one in story.status["conditions"]} == {story.status["observedGeneration"]} == {7}
    )


def test_conditions_that_somebody_else_wrote_are_kept():
    theirs = {
        "type": "Blessed",
        "status": "True",
        "lastTransitionTime": THEN,
        "reason": "ByHand",
        "message": "so be it",
    }
    story = Story({"conditions": [theirs]})
    story.see(FINE)
    assert story.condition("Blessed") == theirs


def test_conditions_of_others_give_way_to_ours_where_there_is_no_room_for_all():
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    theirs = [
        {"type": f"By{letter}", "status": "True", "lastTransitionTime": THEN, "reason": "ByHand", "message": ""}
        for letter in letters
    ]
    story = Story({"conditions": theirs})
    story.see(FINE)
    assert len(story.status["conditions"]) == 16
    assert story.says("Paused") == ("False", "NotPaused")


def test_a_message_that_is_too_long_is_cut_and_says_so():
    story = Story()
    story.see(Observation(BrokerSeen("/", "Secret", problem=Problem("Unreachable", "ü" * 40_000))))
    message = story.condition("Ready")["message"]
    assert len(message) <= 32768
    assert message.endswith("…")
