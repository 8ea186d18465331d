"""What a letter becomes when it is put back, how they are counted, and how fast they may go."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from letter_samples import delivered, letter
from samples import NOW

from redrive.letters import read_letter
from redrive.letters.going_back import TOO_LARGE, TOO_OFTEN, Left, send_back
from redrive.letters.groups import Groups
from redrive.letters.pace import Pace
from redrive.properties import FRAME_MAX


def test_letter_goes_straight_to_its_queue_as_if_it_were_new():
    found = letter(
        body=b"x",
        crashes=2,
        snoozes=4,
        suspect=True,
        trace="T",
        redrives=1,
        origin_exchange="shop.events",
        user={"tenant": "a", "x-death": [{"reason": "rejected"}], "x-first-death-queue": "q"},
    )
    exchange, key, body, properties = send_back(found, "orders", frame_max=FRAME_MAX)
    assert (exchange, key, body, properties.message_id) == ("", "orders", b"x", "m-1")
    assert dict(properties.headers) == {
        "tenant": "a",
        "redrive-attempt": 1,
        "redrive-redrives": 2,
        "redrive-origin-exchange": "shop.events",
    }


@pytest.mark.parametrize(("redrives", "left"), [(2, False), (3, True), (4, True)])
def test_letter_that_was_put_back_too_often_is_left_for_a_person(redrives, left):
    sent = send_back(letter(redrives=redrives), "orders", frame_max=FRAME_MAX, most_redrives=3)
    assert (sent is TOO_OFTEN) is left


def test_letter_whose_headers_do_not_fit_a_frame_is_left():
    assert send_back(letter(user={"a": "x" * 5000}), "orders", frame_max=4096) is TOO_LARGE
    assert not isinstance(send_back(letter(), "orders", frame_max=4096), Left)


def test_letter_that_came_straight_into_its_dead_queue_has_no_origin_there():
    """Somebody who imports a letter publishes it by the default exchange, which is not where it came from."""
    imported = replace(delivered(exchange=""), routing_key="redrive.dead.orders")
    _, _, _, properties = send_back(read_letter(imported, now=NOW), "orders", frame_max=FRAME_MAX)
    assert "redrive-origin-exchange" not in properties.headers


# Groups


def test_groups_are_counted_by_what_letters_died_of_with_an_example():
    groups = Groups()
    groups.add_all([letter("a", age=timedelta(hours=3)), letter("b"), letter("c", error_type="Other", error="e")])
    large, small = groups.largest_first()
    assert (large.count, large.example_id, large.example_error) == (2, "a", "no answer")
    assert (large.oldest, large.newest) == (NOW - timedelta(hours=3), NOW - timedelta(hours=2))
    assert (small.count, small.kind.error_type, groups.total, groups.others) == (1, "Other", 3, 0)


def test_there_are_only_so_many_groups():
    groups = Groups(most=2)
    groups.add_all(letter(fingerprint=f"{number}") for number in (1, 2, 3, 4, 1))
    assert ([group.count for group in groups.largest_first()], groups.others, groups.total) == ([2, 1], 2, 5)


# Pace


def test_no_rate_is_as_fast_as_it_goes():
    pace = Pace(None)
    pace.went(1000, 5.0)
    assert (pace.portion(512), pace.wait(5.0)) == (512, 0.0)


@given(st.floats(0.1, 10_000), st.lists(st.floats(0, 5), max_size=30))
def test_never_more_go_than_the_rate_allows(rate, pauses):
    pace, now, went = Pace(rate), 100.0, 0
    for pause in pauses:
        now += pause
        now += pace.wait(now)
        count = pace.portion(512)
        assert went <= rate * (now - 100.0) * 1.001 + 1e-6
        pace.went(count, now)
        went += count


def test_time_in_which_nothing_went_is_not_made_up_for():
    pace = Pace(10)
    pace.went(2, 0.0)
    pace.went(2, 100.0)
    assert pace.wait(100.0) == pytest.approx(0.2)
