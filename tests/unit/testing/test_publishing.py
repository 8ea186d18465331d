"""What is published to the in-memory broker, and what is given up there."""

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pydantic
import pytest

from redrive.errors import RedriveError
from redrive.outcome import DeadReason
from redrive.testing import InMemoryBroker, Properties, Unsendable

from .handlers import succeed


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"\x00\xff", b"\x00\xff"),
        ("Zoë", "Zoë".encode()),
        ({"number": 7}, b'{"number": 7}'),
        ([1, None], b"[1, null]"),
        (None, b"null"),
    ],
)
def test_body_becomes_bytes(body, expected):
    broker = InMemoryBroker(succeed)
    broker.publish(body)
    assert broker.waiting[0].body == expected


def test_model_is_published_as_what_it_is_read_from():
    class Order(pydantic.BaseModel):
        number: int = pydantic.Field(alias="orderNumber")

    seen = []

    def handle(order: Order) -> None:
        seen.append(order)

    broker = InMemoryBroker(handle)
    broker.publish(Order(orderNumber=7))
    broker.run_once().raise_error()
    assert seen == [Order(orderNumber=7)]


def test_headers_arrive_as_amqp_carries_them():
    sent = {"at": datetime(2026, 1, 1, 12, 0, 0, 999, tzinfo=UTC), "price": Decimal("1.50"), "many": 2**40}
    broker = InMemoryBroker(succeed)
    broker.publish("m", headers=sent)
    assert broker.run_once().message.headers == {**sent, "at": datetime(2026, 1, 1, 12, tzinfo=UTC)}


@pytest.mark.parametrize("value", [{1, 2}, (1,), math.nan, 2**64, object, [{"deep": {3}}], "\ud800", 1j], ids=repr)
def test_header_that_amqp_cannot_carry_fails_where_it_is_published(value):
    broker = InMemoryBroker(succeed)
    with pytest.raises(Unsendable, match="the header 'odd' is"):
        broker.publish("m", headers={"odd": value})
    assert broker.waiting == []


@pytest.mark.parametrize(
    "properties",
    [
        {"message_id": "x" * 300},
        {"priority": 256},
        {"priority": "high"},
        {"timestamp": -1},
        {"expiration": "soon"},
        {"expiration": 60},
        {"correlation_id": 7},
    ],
    ids=str,
)
def test_property_that_amqp_cannot_carry_fails_where_it_is_published(properties):
    with pytest.raises(Unsendable):
        InMemoryBroker(succeed).publish("m", properties=Properties(**properties))


def test_headers_larger_than_a_frame_fail_where_they_are_published():
    with pytest.raises(Unsendable, match="131,072 bytes"):
        InMemoryBroker(succeed).publish("m", headers={"large": "x" * 140_000})


def test_headers_that_leave_no_room_for_a_story_have_the_queue_park_the_message(failing):
    failing.run_until_idle()
    failing.publish("m", message_id="stuffed", headers={"large": "x" * 130_900})
    failing.run_once()
    letter = failing.dead_letters[-1]
    assert (letter.id, letter.reason, letter.attempt) == ("stuffed", DeadReason.REJECTED, 1)
    assert letter.headers["x-death"][0]["reason"] == "rejected"


def test_properties_and_their_shorthands_go_together():
    broker = InMemoryBroker(succeed)
    properties = Properties(app_id="shop", message_id="old", headers={"a": 1, "b": 1})
    broker.publish("m", properties=properties, message_id="new", headers={"b": 2})
    message = broker.run_once().message
    assert (message.id, message.properties.app_id, dict(message.headers)) == ("new", "shop", {"a": 1, "b": 2})


# Dead letters.


def test_message_past_its_expiration_is_let_go_of_at_the_head_of_the_queue():
    broker = InMemoryBroker(succeed)
    broker.publish("first", message_id="first")
    broker.publish("second", message_id="second", properties=Properties(expiration="1000"))
    broker.advance(2)
    assert broker.dead_letters == []
    assert broker.run_once().id == "first"
    assert broker.run_once() is None
    [letter] = broker.dead_letters
    assert (letter.id, letter.reason, letter.properties.expiration) == ("second", DeadReason.EXPIRED, None)


def test_dead_letters_are_gone_after_their_retention(failing):
    failing.run_until_idle()
    failing.advance(timedelta(days=14) - timedelta(seconds=1))
    assert len(failing.dead_letters) == 1
    failing.advance(1)
    assert failing.dead_letters == []


def test_letter_tells_its_story(failing):
    failing.run_until_idle()
    [letter] = failing.dead_letters
    assert (letter.id, letter.body, letter.attempt, letter.reason) == ("m-1", b"m", 3, "Exhausted")
    assert (letter.error_type, letter.error) == ("ConnectionError", "no answer")
    assert letter.died_at == failing.now
    assert len(letter.fingerprint) == 16
    assert "in fail" in letter.trace


def test_redrive_puts_every_letter_back_to_begin_anew(failing):
    failing.publish("n", message_id="m-2")
    failing.run_until_idle()
    assert failing.redrive() == 2
    assert failing.dead_letters == []
    assert [(run.id, run.attempt) for run in failing.run()] == [("m-1", 1), ("m-2", 1)]
    assert failing.sleeping[0].story.redrives == 1


def test_letter_can_be_put_back_once_only(failing):
    failing.run_until_idle()
    [letter] = failing.dead_letters
    failing.requeue(letter)
    with pytest.raises(RedriveError, match="'m-1'"):
        failing.requeue(letter)
    assert len(failing.waiting) == 1
