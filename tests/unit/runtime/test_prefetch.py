"""How many messages are asked for ahead."""

from random import Random

import pytest

from redrive.runtime.prefetch import LARGEST_SECONDS, MOST_AHEAD, Pace, choose_prefetch, is_worth_changing

LARGE = 4 * 1024 * 1024


def sized(size=1000):
    """Give what is known when messages have come, and no handler has run."""
    measured = Pace()
    measured.note_size(size)
    return measured


def pace(seconds, size=1000):
    measured = sized(size)
    for _ in range(100):
        measured.note_run(seconds)
    return measured


def test_one_is_asked_for_before_anything_is_known_of_their_size():
    assert choose_prefetch(64, Pace()) == 1


def test_at_first_each_handler_has_one_ahead():
    assert choose_prefetch(4, sized()) == 8


def test_at_first_large_messages_are_held_by_their_bytes():
    assert choose_prefetch(64, sized(LARGE)) == 64 + 4


@pytest.mark.parametrize("seconds", [1.0, 60.0])
def test_slow_handlers_hold_nothing_that_they_do_not_run(seconds):
    assert choose_prefetch(4, pace(seconds)) == 4


def test_fast_handlers_have_as_much_as_is_run_in_a_moment():
    assert choose_prefetch(4, pace(0.01)) == 4 + 80
    assert choose_prefetch(4, pace(0.0)) == 4 + MOST_AHEAD


def test_large_messages_are_held_by_their_bytes():
    assert choose_prefetch(4, pace(0.0, size=LARGE)) == 4 + 4
    assert choose_prefetch(4, pace(0.0, size=1024**3)) == 4


def test_messages_without_a_body_are_as_good_as_small_ones():
    assert choose_prefetch(4, pace(0.0, size=0)) == 4 + MOST_AHEAD


def test_one_large_message_among_small_ones_counts_for_all_of_them():
    measured = pace(0.0)
    measured.note_size(LARGE)
    for _ in range(1000):
        measured.note_size(1000)
    assert choose_prefetch(4, measured) == 4 + 4


def test_large_message_is_forgotten_when_only_small_ones_have_come_for_a_while():
    measured = pace(0.0)
    measured.note_size(LARGE)
    seen = []
    for look in range(3):
        measured.forget_sizes(1000 + look * LARGEST_SECONDS)
        seen.append(choose_prefetch(4, measured))
        measured.note_size(1000)
    assert seen == [4 + 4, 4 + MOST_AHEAD, 4 + MOST_AHEAD]


def test_large_message_is_not_forgotten_because_nothing_has_come_since():
    measured = pace(0.0, size=LARGE)
    for look in range(10):
        measured.forget_sizes(1000 + look * LARGEST_SECONDS)
    assert choose_prefetch(4, measured) == 4 + 4


def test_prefetch_stays_low_while_a_few_large_messages_come_among_small_ones():
    measured, current, changes = pace(0.0), 204, 0
    for second in range(600):
        measured.note_size(LARGE if second % 7 == 0 else 1000)
        measured.forget_sizes(1000 + second)
        if is_worth_changing(current, wanted := choose_prefetch(4, measured)):
            current, changes = wanted, changes + 1
    assert (current, changes) == (8, 1)


def test_one_slow_message_among_fast_ones_changes_little():
    measured = pace(0.001)
    measured.note_run(0.01)
    assert not is_worth_changing(choose_prefetch(4, pace(0.001)), choose_prefetch(4, measured))


@pytest.mark.parametrize("seed", range(5))
def test_prefetch_stays_where_it_is_while_fast_and_slow_messages_come_mixed(seed):
    chance = Random(seed)  # noqa: S311 - nothing secret
    measured, current, changes = sized(), choose_prefetch(4, sized()), 0
    for number in range(10_000):
        measured.note_run(0.3 if chance.random() < 0.1 else 0.002)
        if number % 25 == 0 and is_worth_changing(current, wanted := choose_prefetch(4, measured)):
            current, changes = wanted, changes + 1
    assert changes <= 5
    assert 4 + 10 < current < 4 + 60  # as much as is run in a fifth of a second is 4 + 25


def test_handler_that_becomes_slow_soon_holds_little():
    measured = pace(0.001)
    for _ in range(4):  # one round of its handlers
        measured.note_run(30.0)
    assert choose_prefetch(4, measured) <= 5


def test_handler_that_becomes_fast_has_more_after_some_hundred_messages():
    measured = pace(1.0)
    for _ in range(1000):
        measured.note_run(0.001)
    assert choose_prefetch(4, measured) > 50


def test_slow_first_runs_are_soon_forgotten():
    measured = sized()
    for seconds in [0.1] * 4 + [0.001] * 250:
        measured.note_run(seconds)
    assert choose_prefetch(4, measured) > 200


@pytest.mark.parametrize(
    ("current", "wanted", "worth"),
    [
        (8, 12, False),
        (8, 13, True),
        (1, 2, True),
        (8, 5, False),
        (8, 4, True),
        (2, 1, True),
        (1, 1, False),
        (15, 8, True),
        (3, 2, True),
    ],
)
def test_prefetch_is_changed_only_when_it_matters(current, wanted, worth):
    assert is_worth_changing(current, wanted) is worth
