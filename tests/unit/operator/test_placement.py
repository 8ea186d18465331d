"""The pods of a consumer, judged together: who has no place and why, and who crashes in a loop."""

from datetime import datetime, timedelta

import pytest
from pod_bed import NAMES, real

from redrive_operator.causes import PlacementCause
from redrive_operator.observation import Crashing, Unplaced
from redrive_operator.placement import Note, PlacementSeen, Refusal, judge_placement
from redrive_operator.pods import Crash, Hindrance, PodSeen, read_pod
from redrive_operator.subject import Key

NOON = datetime.fromisoformat("2026-11-16T12:00:00Z")
GRACE = timedelta(seconds=60)
CPU, IMAGE = PlacementCause.INSUFFICIENT_CPU, PlacementCause.IMAGE
QUOTA = 'pods "orders-7f8d-abcde" is forbidden: exceeded quota: small'


def ago(**time):
    return NOON - timedelta(**time)


def pod(name="a", *, hindrance=None, crash=None, ready=False, deleting=False, ended=False, restarts=0):
    return PodSeen(
        key=Key("shop", name),
        uid=f"u-{name}",
        consumer=Key("shop", "orders"),
        ip="",
        ready=ready,
        deleting=deleting,
        ended=ended,
        restarts=restarts,
        hindrance=hindrance,
        crash=crash,
    )


def hindered(name="a", cause=CPU, *, message="full", seconds=61, **more):
    return pod(name, hindrance=Hindrance(cause, message, ago(seconds=seconds)), **more)


def crash(message="exit code 1 (Error)", *, ran=1, ended=30, waiting=False, resumed=None):
    """A crash `ended` seconds ago, after it had run for so many; `resumed` is how long it runs again."""
    return Crash(
        message,
        started=None if ran is None else ago(seconds=ended + ran),
        ended=ago(seconds=ended),
        waiting=waiting,
        resumed=None if resumed is None else ago(seconds=resumed),
    )


def judge(*pods, wanted=3, exist=3, refusal=None, notes=None, now=NOON):
    return judge_placement(pods, wanted=wanted, exist=exist, refusal=refusal, grace=GRACE, now=now, notes=notes or {})


def test_pods_that_are_well_have_nothing_to_tell():
    assert judge(pod("a", ready=True), pod("b")) == PlacementSeen()


@pytest.mark.parametrize(
    ("seconds", "unplaced", "waiting"),
    [(59, (), 1), (60, (), 1), (61, (Unplaced(CPU, 1, "full"),), 0)],
)
def test_pod_is_unplaced_when_it_has_waited_for_longer_than_the_grace(seconds, unplaced, waiting):
    assert judge(hindered(seconds=seconds)) == PlacementSeen(unplaced, waiting)


def test_unplaced_are_counted_by_cause_and_the_most_frequent_comes_first():
    seen = judge(
        hindered("a", IMAGE, message="no image"),
        hindered("b", PlacementCause.TAINT, message="tainted"),
        hindered("c"),
        hindered("d"),
    )
    assert seen.unplaced == (
        Unplaced(CPU, 2, "full"),
        Unplaced(PlacementCause.TAINT, 1, "tainted"),
        Unplaced(IMAGE, 1, "no image"),
    )


def test_unplaced_of_one_cause_speak_with_the_words_of_who_has_waited_longest():
    seen = judge(hindered("a", message="new", seconds=70), hindered("b", message="old", seconds=90))
    assert seen.unplaced == (Unplaced(CPU, 2, "old"),)


@pytest.mark.parametrize("gone", [{"deleting": True}, {"ended": True}], ids=["deleting", "ended"])
def test_pod_that_is_going_or_gone_is_not_counted(gone):
    assert judge(hindered("a", **gone), pod("b", crash=crash(waiting=True), **gone)) == PlacementSeen()


@pytest.mark.parametrize(
    ("wanted", "exist", "missing"),
    [(3, 1, 2), (3, 0, 3), (3, 3, 1), (3, 4, 1)],
    ids=["some", "all", "rollout", "surge"],
)
def test_pods_that_are_refused_are_as_many_as_are_missing_and_at_least_one(wanted, exist, missing):
    seen = judge(wanted=wanted, exist=exist, refusal=Refusal(QUOTA, ago(seconds=61)))
    assert seen == PlacementSeen((Unplaced(PlacementCause.QUOTA, missing, "exceeded quota: small"),))


def test_pods_that_are_refused_wait_until_the_grace_is_over():
    assert judge(exist=1, refusal=Refusal(QUOTA, ago(seconds=60))) == PlacementSeen(waiting=2)


def test_refusal_is_nothing_where_no_worker_is_wanted():
    assert judge(wanted=0, exist=0, refusal=Refusal(QUOTA, ago(hours=1))) == PlacementSeen()


def test_refused_pods_are_counted_beside_those_that_exist():
    seen = judge(hindered(), exist=1, refusal=Refusal(QUOTA, ago(seconds=61)))
    assert {one.cause: one.count for one in seen.unplaced} == {CPU: 1, PlacementCause.QUOTA: 2}


def test_pod_that_is_set_up_without_a_word_waits_and_is_then_unexplained():
    early, late = hindered(cause=None, seconds=60), hindered(cause=None, seconds=61)
    assert judge(early) == PlacementSeen(waiting=1)
    assert judge(late) == PlacementSeen(unexplained=(late,))


def test_pod_of_which_an_event_tells_a_failure_is_unplaced_after_the_grace():
    notes = {"u-a": Note("FailedMount", 'MountVolume.SetUp failed for volume "v" :\nsecret "ghost" not found')}
    told = 'FailedMount: MountVolume.SetUp failed for volume "v" : secret "ghost" not found'
    assert judge(hindered(cause=None, seconds=60), notes=notes) == PlacementSeen(waiting=1)
    assert judge(hindered(cause=None), notes=notes).unplaced == (Unplaced(PlacementCause.MOUNT, 1, told),)


def test_pod_that_an_event_explains_is_still_to_be_asked_for_its_events():
    late = hindered(cause=None)
    assert judge(late, notes={"u-a": Note("FailedMount", "")}).unexplained == (late,)


@pytest.mark.parametrize("notes", [{"u-a": Note("DNSConfigForming", "")}, {"u-b": Note("FailedMount", "")}])
def test_event_that_is_no_failure_or_of_another_pod_explains_nothing(notes):
    late = hindered(cause=None)
    assert judge(late, notes=notes) == PlacementSeen(unexplained=(late,))


def test_event_does_not_speak_over_the_status():
    assert judge(hindered(), notes={"u-a": Note("FailedMount", "old")}).unplaced == (Unplaced(CPU, 1, "full"),)


@pytest.mark.parametrize(
    ("restarts", "ready", "last", "is_loop"),
    [
        (1, False, crash(waiting=True), True),
        (1, False, crash(), False),
        (2, False, crash(), True),
        (2, False, crash(ran=None), True),
        (2, False, crash(resumed=5), True),
        (2, False, crash(ended=200, resumed=190), True),
        (2, True, crash(ended=70, resumed=59), True),
        (2, True, crash(ended=70, resumed=60), False),
        (2, True, crash(ran=90, ended=190, resumed=179), True),
        (2, True, crash(ran=90, ended=190, resumed=180), False),
        (2, False, crash(ran=610, ended=600, resumed=590), True),
        (9, False, crash(ran=3600, ended=5, resumed=3), False),
        (9, False, crash(ended=3600, resumed=3590), False),
        (9, False, Crash("", started=None, ended=None, waiting=False), False),
    ],
    ids=[
        "waits for its next start",
        "crashed once",
        "crashed again",
        "never ran",
        "runs again and is not ready",
        "runs again for long and is not ready",
        "has been ready for a moment",
        "has been ready for a minute",
        "has not run for twice as long as before",
        "has run for twice as long as before",
        "is ended by its startup probe",
        "crashed after an hour",
        "crashed long ago and is not ready now",
        "nobody knows when it crashed",
    ],
)
def test_crash_loop_is_told_from_a_crash(restarts, ready, last, is_loop):
    seen = judge(pod(crash=last, restarts=restarts, ready=ready))
    assert seen == PlacementSeen(crashing=Crashing(1, "a", last.message) if is_loop else None)


def test_crashing_pods_are_counted_and_the_first_by_name_says_how():
    pods = [pod(name, crash=crash(f"exit code {name}", waiting=True)) for name in "bca"]
    assert judge(*pods).crashing == Crashing(3, "a", "exit code a")


def test_pod_that_cannot_be_started_again_is_unplaced_and_not_crashing():
    seen = judge(hindered(crash=crash(waiting=True), restarts=5))
    assert seen == PlacementSeen((Unplaced(CPU, 1, "full"),))


def test_pod_that_crashes_while_it_is_set_up_is_crashing_and_not_unexplained():
    seen = judge(hindered(cause=None, crash=crash(waiting=True)), notes={"u-a": Note("FailedMount", "")})
    assert seen == PlacementSeen(crashing=Crashing(1, "a", "exit code 1 (Error)"))


@pytest.mark.parametrize("name", NAMES)
def test_each_real_pod_is_a_minute_later_what_its_name_says(name):
    seen = read_pod(real(name))
    since = seen.hindrance.since if seen.hindrance else seen.crash.ended if seen.crash else NOON
    judged = judge(seen, now=since + timedelta(seconds=61))
    if name == "healthy":
        assert judged == PlacementSeen()
    elif "crash" in name:
        assert (judged.crashing.count, judged.crashing.pod) == (1, seen.key.name)
        assert (judged.unplaced, judged.waiting, judged.unexplained) == ((), 0, ())
    elif name in ("sandbox", "mount-secret-missing"):
        assert judged == PlacementSeen(unexplained=(seen,))
    else:
        assert judged == PlacementSeen((Unplaced(seen.hindrance.cause, 1, seen.hindrance.message),))


@pytest.mark.parametrize(
    ("name", "note", "cause"),
    [
        (
            "mount-secret-missing",
            Note("FailedMount", 'MountVolume.SetUp failed for volume "v" : secret "ghost" not found'),
            PlacementCause.MOUNT,
        ),
        (
            "sandbox",
            Note("FailedCreatePodSandBox", 'Failed to create pod sandbox: no runtime for "ghost" is configured'),
            PlacementCause.SANDBOX,
        ),
    ],
)
def test_real_pod_that_only_its_events_explain_is_unplaced_by_them(name, note, cause):
    seen = read_pod(real(name))
    judged = judge(seen, now=seen.hindrance.since + timedelta(seconds=61), notes={seen.uid: note})
    assert judged.unplaced == (Unplaced(cause, 1, f"{note.reason}: {note.message}"),)
