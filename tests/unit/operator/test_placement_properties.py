"""Whatever a pod's body holds, it can be read; however pods are hindered, they are counted once, and not too early."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from pod_bed import NAMES, real
from rearranging import places, put

from redrive_operator.causes import PlacementCause
from redrive_operator.placement import Note, Refusal, judge_placement
from redrive_operator.pods import Crash, Hindrance, PodSeen, read_pod
from redrive_operator.subject import Key

REAL = [real(name) for name in NAMES]
NOW = datetime(2026, 11, 16, 16, tzinfo=UTC)

TEXT = st.text(alphabet=st.characters(codec=None), max_size=20) | st.sampled_from(
    [
        "True",
        "False",
        "Failed",
        "PodScheduled",
        "ImagePullBackOff",
        "CrashLoopBackOff",
        "0/1 nodes are available: 99999999999 Insufficient cpu. preemption: x",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59.999999999-23:59",
        "x\n" * 2000,
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "status", "state", "lastState", "waiting", "running", "terminated", "exitCode"])
            | TEXT,
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def judge(pods, *, wanted=3, exist=3, refusal=None, grace=timedelta(0), now=NOW, notes=None):
    return judge_placement(pods, wanted=wanted, exist=exist, refusal=refusal, grace=grace, now=now, notes=notes or {})


def is_told_well(message, limit):
    return 0 < len(message) <= limit and message.isprintable() and message == message.strip()


@settings(max_examples=500)
@given(data=st.data(), body=st.sampled_from(REAL), new=VALUES)
def test_anything_in_the_place_of_anything_in_a_pod_can_be_read_and_judged(data, body, new):
    seen = read_pod(put(body, data.draw(st.sampled_from([*places(body)])), new))
    if seen is None:
        return
    judge([seen])
    if seen.hindrance is not None:
        assert is_told_well(seen.hindrance.message, 400)
    if seen.crash is not None:
        assert is_told_well(seen.crash.message, 300)


@given(VALUES)
def test_what_is_no_pod_is_none_of_ours(body):
    assert read_pod(body) is None


TIMES = st.integers(-7200, 7200).map(lambda seconds: NOW + timedelta(seconds=seconds))
MAYBE_TIMES = st.none() | TIMES
HINDRANCES = st.builds(Hindrance, st.none() | st.sampled_from(PlacementCause), st.sampled_from(["x", "y"]), TIMES)
CRASHES = st.builds(Crash, st.just("crash"), MAYBE_TIMES, MAYBE_TIMES, st.booleans(), MAYBE_TIMES)
PODS = st.lists(
    st.builds(
        PodSeen,
        key=st.builds(Key, st.just("shop"), st.text("abc", min_size=1, max_size=3)),
        uid=st.uuids().map(str),
        consumer=st.just(Key("shop", "orders")),
        ip=st.just(""),
        ready=st.booleans(),
        deleting=st.booleans(),
        ended=st.booleans(),
        restarts=st.integers(0, 4),
        hindrance=st.none() | HINDRANCES,
        crash=st.none() | CRASHES,
    ),
    max_size=8,
    unique_by=lambda pod: pod.uid,
)
NOTES = st.builds(Note, st.sampled_from(["FailedMount", "FailedCreatePodSandBox", "Failed", "BackOff", "Odd"]), TEXT)
CIRCUMSTANCES = st.fixed_dictionaries(
    {
        "wanted": st.integers(0, 10),
        "exist": st.integers(0, 10),
        "refusal": st.none() | st.builds(Refusal, TEXT, TIMES),
        "grace": st.integers(0, 3600).map(lambda seconds: timedelta(seconds=seconds)),
    }
)


def draw_notes(data, pods):
    return {pod.uid: note for pod in pods if (note := data.draw(st.none() | NOTES)) is not None}


@given(data=st.data(), pods=PODS, given=CIRCUMSTANCES)
def test_no_pod_is_counted_twice_and_none_that_is_going_at_all(data, pods, given):
    seen = judge(pods, **given, notes=draw_notes(data, pods))
    counted = sum(one.count for one in seen.unplaced) + seen.waiting
    crashing = seen.crashing.count if seen.crashing else 0
    alive = sum(not (pod.deleting or pod.ended) for pod in pods)
    missing = max(1, given["wanted"] - given["exist"]) if given["refusal"] and given["wanted"] else 0
    assert counted + crashing <= alive + missing
    assert all(one.count > 0 for one in seen.unplaced)
    assert len({one.cause for one in seen.unplaced}) == len(seen.unplaced)


@given(data=st.data(), pods=PODS, given=CIRCUMSTANCES)
def test_order_of_the_pods_changes_nothing(data, pods, given):
    notes = draw_notes(data, pods)
    again = data.draw(st.permutations(pods))
    assert judge(pods, **given, notes=notes) == judge(again, **given, notes=notes)


@given(data=st.data(), pods=PODS, given=CIRCUMSTANCES)
def test_nothing_is_unplaced_or_unexplained_before_the_grace_is_over(data, pods, given):
    times = [pod.hindrance.since for pod in pods if pod.hindrance]
    times += [given["refusal"].since] if given["refusal"] else []
    early = min(times, default=NOW) + given["grace"]
    seen = judge(pods, **given, now=early, notes=draw_notes(data, pods))
    assert (seen.unplaced, seen.unexplained) == ((), ())


@given(data=st.data(), pods=PODS, given=CIRCUMSTANCES)
def test_pod_alone_is_unplaced_or_crashing_or_waiting_or_none_of_it(data, pods, given):
    notes = draw_notes(data, pods)
    for pod in pods:
        seen = judge([pod], grace=given["grace"], notes=notes)
        assert [bool(seen.unplaced), bool(seen.crashing), bool(seen.waiting)].count(True) <= 1
        assert not (seen.unexplained and (seen.crashing or seen.waiting))


@given(data=st.data(), pods=PODS, given=CIRCUMSTANCES)
def test_notes_change_neither_whose_events_are_asked_for_nor_who_waits_or_crashes(data, pods, given):
    silent, told = judge(pods, **given), judge(pods, **given, notes=draw_notes(data, pods))
    assert (told.unexplained, told.waiting, told.crashing) == (silent.unexplained, silent.waiting, silent.crashing)


@given(data=st.data(), pods=PODS, given=CIRCUMSTANCES)
def test_pods_judged_together_are_what_they_are_alone(data, pods, given):
    notes, grace = draw_notes(data, pods), given["grace"]
    alone = [judge([pod], grace=grace, notes=notes) for pod in pods]
    together = judge(pods, grace=grace, notes=notes)
    assert together.waiting == sum(one.waiting for one in alone)
    assert sum(one.count for one in together.unplaced) == sum(len(one.unplaced) for one in alone)
    assert len(together.unexplained) == sum(len(one.unexplained) for one in alone)
    assert (together.crashing.count if together.crashing else 0) == sum(one.crashing is not None for one in alone)
