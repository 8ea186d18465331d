"""A message and a result are the same at the other end; what comes from a child runs no code."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pika.frame
import pytest
import samples
from hypothesis import given
from hypothesis import strategies as st
from process_bed import wire_job

from redrive.amqp.wire import to_pika
from redrive.content_header import read_content_header
from redrive.delivery import Delivery
from redrive.message import Message, read_message, welcome_back
from redrive.outcome import Crashed, Failed, Rejected, Snoozed, Succeeded, TimedOut, Unreadable
from redrive.properties import Properties
from redrive.runners import Job
from redrive.runners.parcel import pack_head, pack_result, unpack_message, unpack_result

NAMES = st.text(st.characters(codec="utf-8"), max_size=40)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.binary(max_size=40)
    | st.datetimes(datetime(1971, 1, 1), datetime(2199, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
STORY = {"redrive_attempt": 3, "redrive_crashes": 1, "redrive_first_attempt_at": "2026-01-01T00:00:00Z"}


@given(
    headers=st.dictionaries(NAMES, VALUES, max_size=4),
    body=st.binary(),
    text=st.none() | NAMES,
    at=st.datetimes(timezones=st.just(UTC)),
    attempt=st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=9),
)
def test_message_is_the_same_at_the_other_end(headers, body, text, at, attempt):
    headers = headers | ({} if attempt is None else {"redrive-attempt": attempt})
    sent = Properties(message_id=text, reply_to=text, headers=headers)
    header = pika.frame.Header(1, len(body), to_pika(sent)).marshal()[7:-1]
    delivery = Delivery(1, "shop.events", "order.created", False, body, read_content_header(header, 0)[0])
    message = read_message(delivery, now=at, max_attempts=10, new_id=lambda: "made-up")
    came = unpack_message(pack_head(Job(message, header=header)), body)
    assert came.attempt == message.attempt
    assert came == message


@pytest.mark.parametrize(
    "headers", [{}, STORY, STORY | {"price": Decimal("1.50")}, STORY | {"redrive_dead_reason": "Exhausted"}]
)
def test_story_of_a_message_travels_with_it(headers):
    message = welcome_back(samples.deliver(body=b"body", **headers))
    assert travel(message) == message


def travel(message):
    return unpack_message(pack_head(wire_job(message)), message.body)


def test_message_in_a_child_is_a_message_like_any():
    message = samples.deliver(body=b"body", tenant="a", **STORY)
    came = travel(message)
    assert isinstance(came, Message)
    assert repr(came) == repr(message)
    assert pickle.loads(pickle.dumps(came)) == message  # noqa: S301
    assert copy.deepcopy(came) == message
    assert came == travel(message)
    assert came != travel(replace(message, id="another"))
    other = replace(travel(message), body=b"other")
    assert (other.body, other.attempt, other.headers["tenant"]) == (b"other", 3, "a")


def test_message_in_a_child_cannot_be_changed_and_has_no_other_attributes():
    came = travel(samples.deliver())
    with pytest.raises(FrozenInstanceError):
        came.id = "another"
    with pytest.raises(AttributeError, match="no 'tenant'"):
        _ = came.tenant


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
