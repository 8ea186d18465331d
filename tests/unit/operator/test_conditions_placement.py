"""Whether the workers have their places: what is said of it, since when, and until when."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verdicts import AWAY, BROKER, FINE, LATER, RUNNING, THEN, Story, a_consumer

from redrive_operator.causes import PlacementCause
from redrive_operator.conditions import read_causes
from redrive_operator.observation import Observation, Problem, TopologySeen, Unplaced, WorkersSeen

CPU, IMAGE, CONFIG = PlacementCause.INSUFFICIENT_CPU, PlacementCause.IMAGE, PlacementCause.CONFIG
FULL = Unplaced(CPU, 2, "0/1 nodes are available: 1 Insufficient cpu.")
PULLING = Unplaced(IMAGE, 1, "no such image: shop/orders:1.5")
FAILED = ("False", "FailedWorkerPlacement")
PLACED = ("True", "Placed")


def workers(*unplaced, wanted=3, exist=3, **changes):
    return replace(
        FINE, workers=replace(RUNNING, wanted=wanted, exist=exist, updated=exist, unplaced=unplaced, **changes)
    )


def placed(*sights, **story):
    told = Story(**story)
    for seen in sights:
        told.see(seen)
    return told.says("WorkersPlaced")


def message(*sights):
    told = Story()
    for seen in sights:
        told.see(seen)
    return told.condition("WorkersPlaced")["message"]


def test_workers_without_a_place_are_said_and_ready_says_so_before_the_rollout():
    story = Story()
    story.see(workers(FULL, available=1))
    assert story.says("WorkersPlaced") == story.says("Ready") == FAILED
    assert story.condition("Ready")["message"] == story.condition("WorkersPlaced")["message"]
    assert story.says("WorkersAvailable") == ("False", "RollingOut")


def test_what_is_wrong_with_the_queues_is_summed_up_before_what_is_wrong_with_the_places():
    story = Story()
    story.see(replace(workers(FULL), topology=TopologySeen(Problem("QueueRefused", "a stream"))))
    assert story.says("WorkersPlaced") == FAILED
    assert story.says("Ready") == ("False", "QueueRefused")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (
            workers(FULL),
            f"2 of 3 workers have no place: InsufficientCPU: 0/1 nodes are available: 1 Insufficient cpu; {CPU.advice}",
        ),
        (
            workers(PULLING),
            f"1 of 3 workers has no place: Image: no such image: shop/orders:1.5; {IMAGE.advice}",
        ),
        (
            workers(FULL, PULLING),
            "3 of 3 workers have no place: 2 InsufficientCPU, 1 Image. "
            f"InsufficientCPU: 0/1 nodes are available: 1 Insufficient cpu; {CPU.advice}. "
            f"Image: no such image: shop/orders:1.5; {IMAGE.advice}",
        ),
        (
            workers(replace(PULLING, message=""), wanted=1, exist=1),
            f"1 of 1 worker has no place: Image: {IMAGE.advice}",
        ),
        (
            workers(replace(PULLING, message=" two\nlines. "), wanted=1, exist=2),
            f"1 of 2 workers has no place: Image: two lines; {IMAGE.advice}",
        ),
        (
            workers(Unplaced(PlacementCause.QUOTA, 3, "exceeded quota: pods=0"), exist=0),
            f"3 of 3 workers have no place: Quota: exceeded quota: pods=0; {PlacementCause.QUOTA.advice}",
        ),
    ],
    ids=["one cause", "one worker", "two causes", "no words", "during a rollout", "not even made"],
)
def test_message_says_how_many_why_and_what_to_do(seen, expected):
    assert message(seen) == expected


def test_message_of_every_cause_at_once_explains_the_first_and_names_all():
    said = message(workers(*(Unplaced(cause, 1000, "ü" * 5000) for cause in PlacementCause)))
    assert len(said.encode()) <= 1024
    assert read_causes(said) == {*PlacementCause}
    first = list(PlacementCause)[:3]
    assert [said.count(f"; {cause.advice}") for cause in first] == [1, 1, 1]


@given(st.text(st.characters(codec=None)) | st.just("x" * 5000), st.sampled_from(PlacementCause))
def test_long_words_of_kubernetes_leave_room_for_the_advice(words, cause):
    said = message(workers(Unplaced(cause, 1, words)))
    assert len(said.encode()) <= 1024
    assert said.endswith(cause.advice)


@given(
    st.lists(st.sampled_from(PlacementCause), min_size=1, unique=True),
    st.sets(st.sampled_from(PlacementCause), min_size=1),
    st.text() | st.sampled_from(["Image: no", "(before: Quota): ", "2 of 3 workers have no place: Taint: "]),
)
def test_causes_are_read_back_whatever_the_words_of_kubernetes_are(now, before, words):
    earlier = workers(*(Unplaced(cause, 1, words) for cause in before))
    said = message(earlier, workers(*(Unplaced(cause, 1, words) for cause in now)))
    assert read_causes(said) == {*now, *before}


@pytest.mark.parametrize(
    "text", ["", "Image", "no place", "3 of 3 workers have no place: Nonsense: Image", "🙂: Image"]
)
def test_what_is_no_such_message_has_no_causes(text):
    assert read_causes(text) == set()


def test_a_cause_that_came_before_is_named_as_long_as_the_trouble_lasts():
    told = [workers(FULL), workers(PULLING), workers(replace(PULLING, cause=CONFIG))]
    assert message(*told).startswith("1 of 3 workers has no place: Config (before: InsufficientCPU, Image): no such")
    assert "before" not in message(*told, workers(), workers(PULLING))


@pytest.mark.parametrize(
    ("sights", "expected"),
    [
        ([workers()], PLACED),
        ([workers(waiting=3)], PLACED),
        ([workers(exist=0)], PLACED),
        ([workers(FULL, waiting=1)], FAILED),
        ([workers(FULL), workers(waiting=1)], FAILED),
        ([workers(FULL), workers(waiting=1), workers(waiting=1)], FAILED),
        ([workers(FULL), workers(exist=2)], FAILED),
        ([workers(FULL), workers(waiting=1), workers()], PLACED),
        ([workers(FULL), workers(), workers(waiting=1)], PLACED),
        ([workers(FULL), workers(exist=0, problem=Problem("NameTaken", "a Deployment"))], PLACED),
        ([workers(FULL), replace(FINE, workers=None)], FAILED),
        ([workers(FULL), Observation(AWAY)], FAILED),
        ([workers(), replace(FINE, workers=None)], ("Unknown", "NotChecked")),
        ([Observation(BROKER)], ("Unknown", "NotChecked")),
        ([workers(FULL), workers(FULL, wanted=0)], PLACED),
    ],
    ids=[
        "all have one",
        "within the grace",
        "none made yet",
        "some within the grace",
        "made anew",
        "made anew and looked at twice",
        "taken away and not made anew yet",
        "placed at last",
        "placed, and others within the grace",
        "not to be made",
        "nobody looked",
        "broker away",
        "nobody looked, and there was no trouble",
        "nobody ever looked",
        "scaled to zero",
    ],
)
def test_trouble_begins_after_the_grace_and_lasts_until_all_have_their_places(sights, expected):
    assert placed(*sights) == expected


def test_message_stays_while_pods_that_were_made_anew_have_their_grace():
    assert message(workers(FULL), workers(waiting=2)) == message(workers(FULL))


def test_time_of_the_trouble_is_that_of_its_beginning():
    story = Story()
    story.see(workers(FULL))
    for seen in (workers(waiting=2), workers(PULLING), workers(FULL, PULLING)):
        story.see(seen, now=LATER)
    assert story.condition("WorkersPlaced")["lastTransitionTime"] == THEN


@pytest.mark.parametrize(
    ("spec", "deleting", "why"),
    [
        ({}, False, "no worker is wanted: it is scaled to zero"),
        ({"paused": True}, False, "no worker is wanted: it is paused"),
        ({}, True, "no worker is wanted: it is being deleted"),
    ],
)
def test_workers_that_nobody_wants_need_no_place(spec, deleting, why):
    story = Story(consumer=a_consumer(**spec))
    story.deleting = deleting
    story.see(workers(FULL, wanted=3 if deleting else 0))
    assert story.says("WorkersPlaced") == PLACED
    assert story.condition("WorkersPlaced")["message"] == why


def test_workers_that_work_the_queue_off_during_a_deletion_need_their_places():
    story = Story(consumer=a_consumer(deletionPolicy="DeleteIfEmpty"))
    story.deleting = True
    story.see(workers(FULL))
    assert story.says("WorkersPlaced") == FAILED


def test_a_consumer_that_runs_elsewhere_now_has_no_trouble_with_places():
    story = Story()
    story.see(workers(FULL))
    story.consumer = a_consumer(worker=None)
    story.see(replace(FINE, workers=None))
    assert story.says("WorkersPlaced") == ("True", "RunElsewhere")


def test_number_of_those_that_have_no_place_is_in_the_status():
    story = Story()
    story.see(workers(FULL, PULLING))
    assert story.status["workers"] == {"wanted": 3, "available": 2, "unplaced": 3}
    story.see(Observation(AWAY))
    assert story.status["workers"]["unplaced"] == 3
    story.see(replace(FINE, workers=WorkersSeen(3)))
    assert story.status["workers"]["unplaced"] == 0
