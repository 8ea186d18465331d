"""A message and a result are the same at the other end; what comes from a child runs no code."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import samples
from hypothesis import given
from hypothesis import strategies as st

from redrive.outcome import Crashed, Failed, Rejected, Snoozed, Succeeded, TimedOut, Unreadable
from redrive.properties import Properties
from redrive.runners.parcel import pack_head, pack_result, unpack_message, unpack_result

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
STORY = {"redrive_attempt": 3, "redrive_crashes": 1, "redrive_first_attempt_at": "2026-01-01T00:00:00Z"}


@given(
    headers=st.dictionaries(st.text(), VALUES, max_size=4),
    body=st.binary(),
    text=st.none() | st.text(),
    at=st.datetimes(timezones=st.just(UTC)),
)
def test_message_is_the_same_at_the_other_end(headers, body, text, at):
    message = samples.deliver(Properties(message_id=text, reply_to=text, headers=headers), body=body)
    message = replace(message, received_at=at)
    assert unpack_message(pack_head(message), body) == message


@pytest.mark.parametrize("headers", [{}, STORY, STORY | {"at": datetime.now(UTC), "price": Decimal("1.50")}])
def test_story_of_a_message_travels_with_it(headers):
    message = samples.deliver(body=b"body", **headers)
    assert unpack_message(pack_head(message), message.body) == message


@pytest.mark.parametrize(
    "result",
    [
        Succeeded(),
        Failed("no", ("shop.Late", "Exception"), "Traceback …", timedelta(days=1, seconds=2, microseconds=3)),
        Failed("\ud800"),
        TimedOut("late", trace="Traceback …"),
        Snoozed(),
        Snoozed(timedelta(seconds=7)),
        Rejected("never", "Traceback …"),
        Unreadable("no JSON"),
    ],
    ids=lambda result: type(result).__name__,
)
def test_result_is_the_same_at_the_other_end(result):
    assert unpack_result(*pack_result(result)) == result


def test_delay_of_a_class_of_the_users_becomes_a_plain_one():
    class Delay(timedelta):
        pass

    assert unpack_result(*pack_result(Snoozed(Delay(seconds=3)))) == Snoozed(timedelta(seconds=3))


def test_only_a_worker_says_that_a_process_crashed():
    with pytest.raises(TypeError):
        pack_result(Crashed("no", alone=True))


class Bomb:
    def __reduce__(self):
        return print, ("boom",)


def test_result_that_would_run_code_is_refused():
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.print"):
        unpack_result(1, pickle.dumps((Bomb(),)))


@pytest.mark.parametrize("packed", [b"", b"rubbish", pickle.dumps(5), pickle.dumps((1, 2, 3, 4, 5, 6, 7, 8))])
def test_rubbish_is_refused(packed):
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is, it is caught where it is read
        unpack_result(1, packed)
