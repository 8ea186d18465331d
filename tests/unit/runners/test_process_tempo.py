"""How many jobs a child is sent at once follows from how long jobs take: the dearer a mistake, the fewer."""

import pytest
import samples

from redrive.outcome import Succeeded
from redrive.runners import Ended, Job
from redrive.runners.tempo import DEEPEST, Tempo

MICROSECOND = 1e-6


def ran(seconds: float, count: int = 1) -> list[Ended]:
    return [Ended(Job(samples.deliver()), Succeeded(), seconds)] * count


@pytest.fixture
def tempo():
    return Tempo()


@pytest.fixture
def fast(tempo):
    tempo.note(ran(10 * MICROSECOND, 200))
    return tempo


def test_nothing_is_sent_behind_anything_before_it_is_known_how_long_jobs_take(tempo):
    assert (tempo.depth, tempo.together) == (1, 1)


@pytest.mark.parametrize(
    ("seconds", "depth", "together"),
    [
        (0.0, DEEPEST, DEEPEST),
        (10 * MICROSECOND, DEEPEST, DEEPEST),
        (70 * MICROSECOND, DEEPEST, 14),
        (240 * MICROSECOND, 20, 4),
        (0.0006, 8, 1),
        (0.002, 2, 1),
        (0.006, 1, 1),
        (60.0, 1, 1),
    ],
)
def test_shorter_jobs_are_sent_in_greater_numbers_and_fewer_while_a_child_is_free(tempo, seconds, depth, together):
    tempo.note(ran(seconds, 500))
    assert (tempo.depth, tempo.together) == (depth, together)


def test_jobs_sent_together_are_done_within_a_millisecond(tempo):
    for seconds in (5, 20, 50, 120, 300, 700):
        tempo.note(ran(seconds * MICROSECOND, 500))
        assert tempo.together * seconds * MICROSECOND <= 0.001


def test_one_that_is_slow_among_fast_ones_is_soon_forgotten(fast):
    fast.note(ran(10.0))
    assert 1 < fast.together < DEEPEST
    fast.note(ran(10 * MICROSECOND, 100))
    assert fast.together == DEEPEST


def test_slow_one_in_ten_is_enough_for_hardly_any_to_be_sent_together(fast):
    for _ in range(50):
        fast.note(ran(1.0))
        fast.note(ran(10 * MICROSECOND, 9))
    assert fast.together <= 6
    assert fast.depth <= 4


def test_after_one_that_held_others_up_nothing_is_sent_together_until_enough_were_fast(fast):
    fast.hesitate()
    assert fast.together == 1
    assert fast.depth == DEEPEST
    fast.note(ran(10 * MICROSECOND, 5))
    assert fast.together == 1
    fast.note(ran(10 * MICROSECOND, 200))
    assert fast.together == DEEPEST
