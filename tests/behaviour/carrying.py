"""What a message keeps on its way, and what it does not."""

from datetime import UTC, datetime
from decimal import Decimal

from behaviour.stage import EVENTS
from redrive.outcome import DeadReason

EVERY_TYPE = {
    "text": "Zoë",
    "empty": "",
    "whole": 7,
    "negative": -7,
    "large": 2**40,
    "float": 1.5,
    "yes": True,
    "nothing": None,
    "bytes": b"\x00\xff",
    "ascii-bytes": b"abc",
    "list": [1, "two", [3.5], {"four": False}],
    "table": {"inner": {"deep": [None, b"\xff"]}},
    "time": datetime(2026, 3, 1, 12, 0, 1, tzinfo=UTC),
    "decimal": Decimal("1.25"),
}

PROPERTIES = {
    "content_type": "application/json",
    "content_encoding": "identity",
    "correlation_id": "c-1",
    "reply_to": "answers",
    "timestamp": 1_767_225_600,
    "type": "order.created",
    "app_id": "shop",
    "delivery_mode": 1,
}

HOSTILE = {
    "text": {"redrive-attempt": "three"},
    "negative": {"redrive-attempt": -5, "redrive-crashes": -1, "redrive-snoozes": -(2**62)},
    "huge": {"redrive-attempt": 2**62, "redrive-crashes": 2**62, "redrive-redrives": 2**62},
    "float": {"redrive-attempt": 2.5, "redrive-priority": 1e300},
    "table": {"redrive-attempt": {"deep": [{}]}, "redrive-suspect": "yes", "redrive-error": ["no"]},
    "nothing": {"redrive-attempt": None, "redrive-first-attempt-at": None},
    "bytes": {"redrive-error-type": b"\xff", "redrive-origin-exchange": b"\xfe"},
    "times": {"redrive-first-attempt-at": "yesterday", "redrive-due-at": datetime(9998, 1, 1, tzinfo=UTC)},
    "long": {"redrive-error": "e" * 5000, "redrive-trace": "t" * 20_000, "redrive-origin-routing-key": "k" * 2000},
    "priority": {"redrive-priority": 4711, "redrive-pod": 7},
    "deaths": {"x-death": "none", "x-first-death-queue": 7, "x-delivery-count": "many"},
    "forged deaths": {"x-death": [{"queue": "errands", "reason": "expired", "count": 2**40}, "what", 7]},
}


def test_body_and_headers_of_every_type_are_the_same_after_retries(of_bytes):
    body = bytes(range(256)) * 40
    ending = of_bytes.see(of_bytes.send("fail", "fail", "ok", body=body, headers=EVERY_TYPE))
    assert ending.attempts == [1, 2, 3]
    for message in ending.calls:
        assert message.body == body
        kept = {name: message.headers.get(name) for name in EVERY_TYPE}
        assert kept == EVERY_TYPE
        assert {name: type(value) for name, value in kept.items()} == {
            name: type(value) for name, value in EVERY_TYPE.items()
        }


def test_letter_keeps_body_and_headers_too(of_bytes):
    ending = of_bytes.see(of_bytes.send("reject", body=b"\x00\xff", headers=EVERY_TYPE))
    assert ending.letter.message.body == b"\x00\xff"
    assert {name: ending.letter.headers.get(name) for name in EVERY_TYPE} == EVERY_TYPE


def test_properties_are_the_same_after_retries_and_the_message_is_persistent(stage):
    ending = stage.see(stage.send("fail", properties=PROPERTIES))
    sent_on = [*ending.calls[1:], ending.letter.message]
    assert len(sent_on) == 3
    for message in sent_on:
        kept = {name: getattr(message.properties, name) for name in PROPERTIES}
        assert kept == {**PROPERTIES, "delivery_mode": 2}


def test_what_would_break_a_retry_is_left_out_of_it(stage):
    properties = {"priority": 9, "user_id": stage.user}
    ending = stage.see(stage.send("fail", "ok", headers={"CC": ["nobody"]}, properties=properties))
    first, second = ending.calls
    assert (first.properties.priority, first.properties.user_id, first.headers["CC"]) == (9, stage.user, ["nobody"])
    assert (second.properties.priority, second.properties.user_id, second.headers.get("CC")) == (None, None, None)
    assert second.story.priority == 9


def test_retry_bears_the_marks_of_its_last_sleep_alone(stage):
    ending = stage.see(stage.send("fail", "busy", "fail", headers={"x-death": []}))
    marks = [[(death["queue"], death["reason"]) for death in call.headers["x-death"]] for call in ending.calls]
    assert marks == [[], [("redrive.delay.0.2", "expired")], [("redrive.delay.0.4", "expired")]]
    [death] = ending.calls[1].headers["x-death"]
    assert {name: type(value) for name, value in death.items()} == {
        "count": int,
        "exchange": str,
        "queue": str,
        "reason": str,
        "routing-keys": list,
        "time": datetime,
    }
    assert (death["exchange"], death["routing-keys"]) == ("redrive.retry", [f"0.0.0.0.2.errands/{stage.queue}"])
    assert [name for name in ending.letter.headers if name.startswith("x-")] == []


def test_message_without_an_id_is_given_one_that_it_keeps(stage):
    ending = stage.see(stage.send("fail", properties={"message_id": None}))
    ids = {message.id for message in ending.calls[1:]} | {ending.letter.message.id}
    assert ids == {ending.calls[0].id}
    assert ids != {""}


def test_origin_is_known_after_retries(stage):
    ending = stage.see(stage.send("fail", exchange=EVENTS, routing_key=f"{stage.queue}.created"))
    came_by = [(message.exchange, message.routing_key) for message in ending.calls]
    key = f"0.0.0.0.2.errands/{stage.queue}"
    assert came_by == [(EVENTS, f"{stage.queue}.created"), *[("redrive.delivery", key)] * 2]
    assert (ending.letter.story.origin_exchange, ending.letter.story.origin_routing_key) == came_by[0]


def test_hostile_headers_stop_nobody(stage):
    hostile = {kind: stage.send("fail", "ok", headers=headers) for kind, headers in HOSTILE.items()}
    innocent = stage.send("fail", "ok")
    endings = {kind: stage.see(name) for kind, name in hostile.items()}
    assert {kind: ending.attempts for kind, ending in endings.items()} == {
        **{kind: [1, 2] for kind in HOSTILE},
        "huge": [1_000_000],
    }
    assert endings["huge"].reason is DeadReason.EXHAUSTED
    assert stage.see(innocent).attempts == [1, 2]


def test_forged_counts_of_deliveries_decide_nothing(stage):
    """Only `redelivered` says that a message is not new."""
    ending = stage.see(stage.send("fail", "ok", headers={"x-delivery-count": 999, "x-acquired-count": 999}))
    assert ending.attempts == [1, 2]
    assert [(message.story.suspect, message.story.crashes) for message in ending.calls] == [(False, 0)] * 2


def test_forged_expiration_of_long_ago_parks_a_message(stage):
    ending = stage.see(stage.send("ok", headers={"redrive-expires-at": "2020-01-01T00:00:00.000Z"}))
    assert (ending.calls, ending.reason) == ([], DeadReason.EXPIRED)
