"""What a Redrive does next: one table, and what each step makes of its progress."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from redrive_bed import redrive_body

from redrive.spec import parse_redrive
from redrive_operator.reasons import CompleteReason
from redrive_operator.redriving.course import (
    CHUNK_SECONDS,
    MOST_AT_ONCE,
    Count,
    End,
    Move,
    Watch,
    begin,
    find_next,
    next_step,
    pause_between_looks,
    settle,
    watched,
)
from redrive_operator.redriving.progress import Canaries, Progress

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CANARY = {"count": 5, "timeout": "1m"}
LIMIT_REACHED = End(CompleteReason.LIMIT_REACHED)


def redrive(**spec):
    return parse_redrive(redrive_body(spec={"rate": 100, **spec}))


def at(**known):
    return Progress(**{"started": NOW, "matched": 1000, **known})


def canaries(sent, *, died=0, decided=None):
    return Canaries(sent, died, since=NOW, decided=decided)


def sent(number):
    return at(done=number, begun=number, canaries=canaries(number))


CASES = [
    ("nobody has looked", {}, Progress(), False, Count()),
    ("a dry run was counted", {"dryRun": True}, at(), False, End(CompleteReason.COUNTED)),
    ("a dry run counted none", {"dryRun": True}, at(matched=0), False, End(CompleteReason.COUNTED)),
    ("nothing fits", {}, at(matched=0), False, End(CompleteReason.NOTHING_MATCHED)),
    ("the rate says how many", {}, at(), False, Move(100 * CHUNK_SECONDS)),
    ("no rate is beyond all measure", {"rate": 100_000}, at(), False, Move(MOST_AT_ONCE)),
    ("a twentieth of the limit at once", {"limit": 100}, at(), False, Move(5)),
    ("a small limit goes one by one", {"limit": 3}, at(), False, Move(1)),
    ("what is left of the limit", {"limit": 100}, at(done=97, begun=97), False, Move(3)),
    ("the limit is reached", {"limit": 100}, at(done=100, begun=100), False, LIMIT_REACHED),
    (
        "what may have been moved counts",
        {"limit": 100},
        at(done=90, begun=100),
        False,
        LIMIT_REACHED,
    ),
    ("none is left", {}, at(done=1000, begun=1000), True, End(CompleteReason.FINISHED)),
    ("canaries go first", {"canary": CANARY}, at(), False, Move(5, canary=True)),
    (
        "some canaries are back",
        {"canary": CANARY},
        sent(2),
        False,
        Move(3, canary=True),
    ),
    (
        "all canaries are back",
        {"canary": CANARY},
        sent(5),
        False,
        Watch(NOW + MINUTE),
    ),
    ("fewer than canaries", {"canary": CANARY}, sent(2), True, Watch(NOW + MINUTE)),
    ("canaries may have left", {"canary": CANARY}, at(begun=5, canaries=canaries(0)), True, Watch(NOW + MINUTE)),
    ("no canary was there any more", {"canary": CANARY}, at(), True, End(CompleteReason.FINISHED)),
    (
        "a canary died",
        {"canary": CANARY},
        at(done=5, begun=5, canaries=canaries(5, died=1, decided=NOW)),
        False,
        End(CompleteReason.CANARY_DIED),
    ),
    (
        "canaries live",
        {"canary": CANARY},
        at(done=5, begun=5, canaries=canaries(5, decided=NOW)),
        False,
        Move(100 * CHUNK_SECONDS),
    ),
    (
        "canaries were all that the limit allows",
        {"canary": CANARY, "limit": 5},
        at(done=5, begun=5, canaries=canaries(5, decided=NOW)),
        False,
        LIMIT_REACHED,
    ),
]


@pytest.mark.parametrize(
    ("spec", "progress", "exhausted", "step"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_next_step(spec, progress, exhausted, step):
    assert next_step(redrive(**spec), progress, exhausted=exhausted) == step


def test_what_was_begun_and_not_done_is_given_back_unless_nobody_knows():
    step = Move(10)
    begun = begin(at(done=5, begun=5), step, now=NOW)
    assert (begun.done, begun.begun) == (5, 15)
    settled = settle(begun, step, moved=3, failed=1, unknown=0, now=NOW)
    assert (settled.done, settled.begun, settled.failed) == (8, 8, 1)
    lost = settle(begun, step, moved=3, failed=0, unknown=4, now=NOW)
    assert (lost.done, lost.begun, lost.unknown) == (8, 12, 4)


def test_canaries_are_decided_when_one_died_or_the_time_is_over_and_somebody_could_have_run_them():
    before = sent(5)
    until = NOW + MINUTE

    def look(**seen):
        usual = {"died": 0, "now": until, "until": until, "idle": False, "whole": True}
        return watched(before, **{**usual, **seen}).canaries

    assert look() == canaries(5, decided=until)
    assert look(now=NOW + MINUTE / 2) == canaries(5)
    assert look(whole=False) == canaries(5)
    assert look(idle=True) == replace(canaries(5), since=until)
    assert look(died=2, now=NOW, idle=True, whole=False) == canaries(5, died=2, decided=NOW)


def test_looking_at_canaries_is_a_small_part_of_the_time():
    canary = redrive(canary={"count": 1, "timeout": "10m"}).canary
    assert pause_between_looks(canary, cost=timedelta(0)) == timedelta(seconds=15)
    assert pause_between_looks(canary, cost=timedelta(seconds=30)) == timedelta(minutes=5)
    short = redrive(canary={"count": 1, "timeout": "1s"}).canary
    assert pause_between_looks(short, cost=timedelta(0)) == timedelta(seconds=2)


@pytest.mark.parametrize(
    ("waiting", "chosen"),
    [
        ([(False, NOW, "b")], 0),
        ([(False, NOW + MINUTE, "a"), (False, NOW, "b")], 1),
        ([(False, NOW, "b"), (False, NOW, "a")], 1),
        ([(False, NOW, "a"), (True, NOW + MINUTE, "b")], 1),
    ],
    ids=["alone", "the older", "the first by name", "who has begun"],
)
def test_whose_turn_it_is(waiting, chosen):
    assert find_next(waiting) == chosen
