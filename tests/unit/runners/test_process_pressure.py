"""When memory is short, whose fault it is, and what that means for a message."""

import pytest
from process_bed import lay_bed, make_job

from redrive.memory import Reading
from redrive.outcome import Crashed, TimedOut
from redrive.runners import rounds
from redrive.runners.pressure import is_short, is_swollen, is_tight, is_worth_ending, next_look, reserve
from redrive.runners.verdicts import describe_exit, judge_end, too_big

MIB = 1 << 20
GIB = 1 << 30


@pytest.mark.parametrize(
    ("limit", "free"),
    [(64 * MIB, 16 * MIB), (128 * MIB, 32 * MIB), (256 * MIB, 32 * MIB), (GIB, GIB // 10), (64 * GIB, GIB)],
)
def test_a_tenth_stays_free_and_never_less_than_a_child_takes_in_a_moment(limit, free):
    assert reserve(limit) == free
    assert is_short(Reading(limit - free + 1, limit))
    assert not is_short(Reading(limit - free, limit))


def test_memory_is_tight_before_it_is_short():
    assert is_tight(Reading(71, 100))
    assert not is_tight(Reading(69, 100))


@pytest.mark.parametrize(
    ("free", "seconds"), [(0, 0.004), (-MIB, 0.004), (32 * MIB, 0.004), (256 * MIB, 0.03125), (4 * GIB, 0.1)]
)
def test_the_less_is_left_the_sooner_is_the_next_look(free, seconds):
    assert next_look(Reading(8 * GIB - free, 8 * GIB)) == pytest.approx(seconds)


def test_child_is_swollen_when_it_has_outgrown_its_share():
    assert is_swollen(300 * MIB, newborn=20 * MIB, limit=GIB, children=3)
    assert not is_swollen(200 * MIB, newborn=20 * MIB, limit=GIB, children=3)


def test_child_that_was_born_big_is_not_replaced_by_one_as_big():
    assert not is_swollen(400 * MIB, newborn=390 * MIB, limit=GIB, children=3)


def test_child_whose_end_frees_nothing_is_left_in_peace():
    assert not is_worth_ending(100 * MIB, newborn=95 * MIB, limit=GIB)
    assert is_worth_ending(200 * MIB, newborn=95 * MIB, limit=GIB)


@pytest.mark.parametrize(
    ("status", "how"),
    [
        (0, "exited with code 0"),
        (7, "exited with code 7"),
        (-9, "was ended by SIGKILL"),
        (-40, "was ended by signal 40"),
    ],
)
def test_end_is_told_in_words(status, how):
    assert describe_exit(status) == how


@pytest.mark.parametrize(("guilty", "ran_alone", "alone"), [(1, 0, True), (1, 1, True), (0, 0, False), (0, 1, True)])
def test_message_is_convicted_when_nothing_else_can_have_ended_its_process(guilty, ran_alone, alone):
    result = judge_end(make_job("", alone=bool(ran_alone)), how="was ended by SIGKILL", guilty=bool(guilty))
    assert result == Crashed("the process that ran this message was ended by SIGKILL", alone=alone)


@pytest.mark.parametrize("alone", [True, False])
def test_message_whose_process_was_too_big_is_convicted_only_when_it_ran_alone(alone):
    verdict = too_big(used=950 * MIB, limit=GIB, size=700 * MIB)
    result = judge_end(make_job("", alone=alone), how="was ended by SIGKILL", guilty=True, verdict=verdict)
    said = "ended because the container had used 950 MiB of its 1024 MiB; this process was the biggest with 700 MiB"
    assert result == Crashed(said, alone=alone)


def test_message_whose_time_was_over_has_timed_out_however_it_ended():
    late = TimedOut("late")
    assert judge_end(make_job(""), how="was ended by SIGKILL", guilty=True, verdict=late) == late


def test_child_that_is_not_born_yet_is_never_the_biggest(monkeypatch):
    monkeypatch.setattr(rounds, "resident_by_family", lambda _: {0: GIB})
    with lay_bed(concurrency=1) as bed:
        (unborn,) = bed.runner._household.seats.values()
        assert not unborn.pid
        bed.runner._rounds._end_biggest(Reading(GIB, GIB))
        assert unborn.ended_at is None
