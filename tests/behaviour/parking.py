"""How a message becomes a dead letter, and is put back."""

import re
from dataclasses import replace

import pytest

from redrive.outcome import DeadReason
from redrive.story import read_time

TIMES = ("redrive-first-attempt-at", "redrive-dead-at")

# What is not the same from one run to the next.
_OF_ITS_RUN = {*TIMES, "name", "redrive-expires-at", "redrive-trace", "redrive-pod"}


def test_message_that_always_fails_is_parked_with_its_whole_story(stage):
    ending = stage.see(stage.send("fail", headers={"tenant": "blue"}))
    assert ending.attempts == [1, 2, 3]
    headers = dict(ending.letter.headers)
    first, dead = (read_time(headers.pop(name)) for name in TIMES)
    assert first < dead
    assert re.fullmatch("[0-9a-f]{16}", headers.pop("redrive-fingerprint"))
    assert headers.pop("redrive-trace").endswith("errands.Broken: no answer from 10.0.0.7\n")
    assert headers.pop("redrive-pod")
    assert headers == {
        "name": headers["name"],
        "tenant": "blue",
        "redrive-attempt": 3,
        "redrive-dead-reason": "Exhausted",
        "redrive-error": "no answer from 10.0.0.7",
        "redrive-error-type": "errands.Broken",
        "redrive-origin-exchange": "",
        "redrive-origin-routing-key": stage.queue,
    }


@pytest.mark.parametrize("step", ["fail", "reject", "decline", "unreadable", "expired"])
def test_letter_tells_what_it_tells_in_memory(stage, rehearsal, step):
    """Names and types of all headers, and the values of those that do not tell of this very run."""
    body = b"[]" if step == "unreadable" else None
    headers = {"redrive-expires-at": "2020-01-01T00:00:00.000Z"} if step == "expired" else {}
    properties = {"expiration": "60000", "priority": 9, "content_type": "application/json"}
    letters = [
        play.see(play.send(step, body=body, headers=headers, properties=properties)).letter
        for play in (stage, rehearsal)
    ]
    real, rehearsed = (_without_its_run(letter) for letter in letters)
    assert real.headers == rehearsed.headers
    assert real == rehearsed


def _without_its_run(letter):
    headers = {name: type(value) if name in _OF_ITS_RUN else value for name, value in letter.headers.items()}
    return replace(letter.message.properties, headers=headers, message_id=None)


def test_rejected_message_is_parked_at_once(stage):
    ending = stage.see(stage.send("reject"))
    assert (ending.attempts, ending.reason) == ([1], DeadReason.REJECTED)
    assert (ending.letter.story.error_type, ending.letter.story.error) == ("redrive.Reject", "never")


def test_failure_that_a_rule_calls_hopeless_is_parked_at_once(stage):
    ending = stage.see(stage.send("decline"))
    assert (ending.attempts, ending.reason) == ([1], DeadReason.REJECTED)
    assert ending.letter.story.error_type == "errands.Declined"


@pytest.mark.parametrize("body", [b"not JSON", b"\xff\xfe\x00", b"[]", b'{"do": "text"}', b""])
def test_body_that_the_handler_cannot_read_is_parked_without_a_call(stage, body):
    ending = stage.see(stage.send(body=body))
    assert (ending.calls, ending.reason) == ([], DeadReason.UNREADABLE)
    assert ending.letter.message.body == body


def test_message_past_its_expiration_is_parked_instead_of_run(stage):
    """A machine that stands still for a second has the queue itself park it, which is as good."""
    ending = stage.see(stage.send("retry-late", "ok", properties={"expiration": "1000"}))
    assert ending.reason is DeadReason.EXPIRED
    assert len(ending.calls) <= 1
    assert ending.letter.message.properties.expiration is None


def test_retry_keeps_the_time_that_its_publisher_gave_it(stage):
    ending = stage.see(stage.send("fail", "ok", properties={"expiration": "60000"}))
    first, second = ending.calls
    assert (first.properties.expiration, second.properties.expiration) == ("60000", None)
    given = (second.story.expires_at - first.received_at).total_seconds()
    assert given == pytest.approx(60, abs=0.01)


def test_letter_that_somebody_moved_back_by_hand_begins_anew(stage):
    story = {"redrive-attempt": 3, "redrive-dead-reason": "Exhausted", "redrive-crashes": 2, "redrive-error": "old"}
    ending = stage.see(stage.send("fail", "ok", headers=story))
    assert ending.attempts == [1, 2]
    assert [message.story.redrives for message in ending.calls] == [1, 1]
    assert "redrive-dead-reason" not in ending.calls[1].headers


def test_requeued_letter_begins_anew_and_keeps_its_origin(stage):
    name = stage.send("fail", "fail", "fail", "ok", properties={"priority": 5})
    letter = stage.see(name).letter
    stage.requeue(letter)
    calls = stage.see(name).calls
    assert [message.attempt for message in calls] == [1, 2, 3, 1]
    requeued = calls[-1]
    assert (requeued.id, requeued.body) == (name, letter.message.body)
    assert (requeued.story.redrives, requeued.story.error) == (1, None)
    assert requeued.story.origin_routing_key == stage.queue
    assert requeued.properties.priority == 5
