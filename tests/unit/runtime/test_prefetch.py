"""How many messages are asked for ahead."""

import pytest

from redrive.runtime.prefetch import MOST_AHEAD, Pace, choose_prefetch, is_worth_changing


def pace(seconds, size=1000):
    measured = Pace()
    measured.note_run(seconds)
    for _ in range(100):
        measured.note_size(size)
    return measured


def test_at_first_each_handler_has_one_ahead():
    assert choose_prefetch(4, Pace()) == 8


@pytest.mark.parametrize("seconds", [1.0, 60.0])
def test_slow_handlers_hold_nothing_that_they_do_not_run(seconds):
    assert choose_prefetch(4, pace(seconds)) == 4


def test_fast_handlers_have_as_much_as_is_run_in_a_moment():
    assert choose_prefetch(4, pace(0.01)) == 4 + 80
    assert choose_prefetch(4, pace(0.0)) == 4 + MOST_AHEAD


def test_large_messages_are_held_by_their_bytes():
    assert choose_prefetch(4, pace(0.0, size=4 * 1024 * 1024)) == 4 + 4
    assert choose_prefetch(4, pace(0.0, size=1024**3)) == 4


def test_one_slow_message_among_fast_ones_changes_little():
    measured = pace(0.001)
    measured.note_run(0.01)
    assert not is_worth_changing(choose_prefetch(4, pace(0.001)), choose_prefetch(4, measured))


@pytest.mark.parametrize(
    ("current", "wanted", "worth"),
    [(8, 12, False), (8, 13, True), (1, 2, True), (8, 5, False), (8, 4, True), (2, 1, True), (1, 1, False)],
)
def test_prefetch_is_changed_only_when_it_matters(current, wanted, worth):
    assert is_worth_changing(current, wanted) is worth
