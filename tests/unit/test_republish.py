"""Headers out: what a message is sent on with, to the ladder, to the dead letters, and back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import CAUSE, DEAD, LATER, NOW, RETRY, again, deliver

from redrive.clip import clip_head, clip_tail
from redrive.letter import Death, read_broker_death, read_death
from redrive.message import is_expired, welcome_back
from redrive.outcome import Cause, DeadLetter, DeadReason, RetryLater
from redrive.properties import LONGEST_SHORT, Properties, frame_size
from redrive.republish import AMPLE, build_dead_letter, build_requeue, build_retry, build_suspect, squeeze
from redrive.story import HIGHEST_COUNT

# Retries


def test_a_retry_keeps_body_properties_and_the_publishers_headers():
    properties = Properties(
        content_type="application/json",
        content_encoding="gzip",
        headers={"tenant": "a", "depth": {"of": [1, None, b"\x00"]}, "redrive-of-tomorrow": 1, "x-mine": "b"},
        delivery_mode=1,
        correlation_id="c",
        reply_to="answers",
        message_id="m-1",
        timestamp=1_700_000_000,
        type="order",
        app_id="shop",
        cluster_id="x",
    )
    sent = build_retry(deliver(properties), RETRY, now=NOW)
    assert replace(sent, headers={}) == replace(properties, headers={}, delivery_mode=2)
    assert {name: sent.headers[name] for name in properties.headers} == properties.headers


def test_a_retry_tells_its_story():
    sent = build_retry(deliver(), RETRY, now=NOW + timedelta(milliseconds=400))
    assert sent.headers == {
        "redrive-attempt": 2,
        "redrive-first-attempt-at": "2026-05-01T12:00:00.250Z",
        "redrive-due-at": "2026-05-01T12:00:02.650Z",
        "redrive-origin-exchange": "shop.events",
        "redrive-origin-routing-key": "order.created",
        "redrive-error-type": "shop.errors.Late",
        "redrive-error": "no answer from 10.0.0.7",
    }


def test_a_retry_is_due_when_the_ladder_lets_it_go():
    sent = build_retry(deliver(), replace(RETRY, delay=timedelta(milliseconds=130)), now=NOW)
    assert sent.headers["redrive-due-at"] == "2026-05-01T12:00:00.500Z"


def test_where_a_message_came_from_and_when_is_told_by_its_first_delivery_alone():
    first = again(build_retry(deliver(), RETRY, now=NOW))
    second = again(build_retry(first, replace(RETRY, attempt=3), now=LATER))
    story = second.story
    assert (story.attempt, story.first_attempt_at) == (3, NOW)
    assert (story.origin_exchange, story.origin_routing_key) == ("shop.events", "order.created")


def test_the_default_exchange_is_an_origin_too():
    story = again(build_retry(deliver(exchange="", key="orders"), RETRY, now=NOW)).story
    assert (story.origin_exchange, story.origin_routing_key) == ("", "orders")


def test_the_ladder_is_never_taken_for_an_origin():
    story = again(build_retry(deliver(exchange="redrive.delivery"), RETRY, now=NOW)).story
    assert (story.origin_exchange, story.origin_routing_key) == (None, None)


@pytest.mark.parametrize(
    "name",
    [
        "CC",
        "BCC",
        "x-death",
        "x-death-anything",
        "x-first-death-exchange",
        "x-first-death-queue",
        "x-first-death-reason",
        "x-last-death-exchange",
        "x-last-death-queue",
        "x-last-death-reason",
        "x-delivery-count",
        "x-acquired-count",
    ],
)
def test_a_header_that_breaks_republishing_is_left_out(name):
    message = deliver(Properties(headers={name: ["anything"], "kept": 1}))
    sent = [build_retry(message, RETRY, now=NOW), build_suspect(message), build_requeue(message)]
    sent.append(build_dead_letter(message, DEAD, now=NOW, pod="p"))
    assert [name in properties.headers for properties in sent] == [False] * 4
    assert [properties.headers["kept"] for properties in sent] == [1] * 4


def test_the_users_identity_is_left_out_because_the_broker_refuses_anothers():
    assert build_retry(deliver(Properties(user_id="shop")), RETRY, now=NOW).user_id is None


@pytest.mark.parametrize(
    ("reply_to", "sent"),
    [("amq.rabbitmq.reply-to", None), ("amq.rabbitmq.reply-to.g1h2", "amq.rabbitmq.reply-to.g1h2"), ("q", "q")],
)
def test_a_bare_request_for_direct_replies_is_left_out(reply_to, sent):
    assert build_retry(deliver(Properties(reply_to=reply_to)), RETRY, now=NOW).reply_to == sent


def test_an_expiration_becomes_a_time_that_all_later_retries_keep():
    first = again(build_retry(deliver(Properties(expiration="60000")), RETRY, now=NOW))
    second = again(build_retry(first, RETRY, now=LATER))
    assert first.properties.expiration is None
    assert first.story.expires_at == second.story.expires_at == NOW + timedelta(minutes=1)
    assert not is_expired(second, NOW + timedelta(seconds=59))
    assert is_expired(second, NOW + timedelta(seconds=60))
    assert not is_expired(deliver(), LATER)


@pytest.mark.parametrize("expiration", ["", "soon", "-1", "²", "1" * 11])
def test_an_expiration_that_is_no_number_is_none(expiration):
    assert again(build_retry(deliver(Properties(expiration=expiration)), RETRY, now=NOW)).story.expires_at is None


def test_a_priority_is_kept_aside():
    first = again(build_retry(deliver(Properties(priority=9)), RETRY, now=NOW))
    second = again(build_retry(first, RETRY, now=LATER))
    assert (second.properties.priority, second.story.priority) == (None, 9)


def test_a_snooze_is_counted_and_keeps_the_last_error():
    failed = again(build_retry(deliver(), RETRY, now=NOW))
    snoozed = again(build_retry(failed, RetryLater(timedelta(seconds=9), 2, snoozed=True), now=LATER))
    assert (snoozed.story.attempt, snoozed.story.snoozes, snoozed.story.error) == (2, 1, CAUSE.error)
    assert snoozed.story.due_at == LATER + timedelta(seconds=9)


def test_a_suspect_is_on_the_same_attempt_and_due_at_no_time():
    retried = again(build_retry(deliver(), replace(RETRY, attempt=4), now=NOW))
    story = again(build_suspect(retried)).story
    assert (story.attempt, story.suspect, story.crashes, story.due_at) == (4, True, 0, None)


def test_a_suspect_that_is_cleared_is_none_any_more():
    suspect = again(build_suspect(deliver()))
    assert again(build_retry(suspect, RETRY, now=NOW)).story.suspect is False


def test_crashes_are_carried_on():
    crashed = replace(RETRY, attempt=1, crashes=2, suspect=True)
    story = again(build_retry(deliver(), crashed, now=NOW)).story
    assert (story.crashes, story.suspect) == (2, True)


# Dead letters


def test_a_dead_letter_has_the_whole_story():
    message = again(build_retry(deliver(), replace(RETRY, attempt=10), now=NOW))
    sent = build_dead_letter(message, replace(DEAD, crashes=1), now=LATER, pod="orders-7c9")
    fingerprint = sent.headers["redrive-fingerprint"]
    assert sent.headers == {
        "redrive-attempt": 10,
        "redrive-crashes": 1,
        "redrive-first-attempt-at": "2026-05-01T12:00:00.250Z",
        "redrive-origin-exchange": "shop.events",
        "redrive-origin-routing-key": "order.created",
        "redrive-error-type": "shop.errors.Late",
        "redrive-error": "no answer from 10.0.0.7",
        "redrive-dead-reason": "Exhausted",
        "redrive-dead-at": "2026-05-01T13:00:00.250Z",
        "redrive-trace": CAUSE.trace,
        "redrive-fingerprint": fingerprint,
        "redrive-pod": "orders-7c9",
    }
    assert read_death(sent.headers) == Death(DeadReason.EXHAUSTED, LATER, CAUSE.trace, str(fingerprint), "orders-7c9")
    assert (sent.delivery_mode, sent.message_id) == (2, "m-1")


def test_an_error_keeps_its_beginning_and_a_trace_its_end():
    cause = Cause("E", "a" + "é" * 5000, "é" * 9000 + "z")
    sent = build_dead_letter(deliver(), DeadLetter(DeadReason.REJECTED, cause), now=NOW, pod="p")
    error, trace = str(sent.headers["redrive-error"]), str(sent.headers["redrive-trace"])
    assert (error[0], len(error.encode())) == ("a", 1023)
    assert (trace[-1], len(trace.encode())) == ("z", 8191)


@given(st.text(st.characters(codec=None)), st.integers(0, 40))
def test_clipped_text_is_never_too_long_and_always_utf8(text, limit):
    assert len(clip_head(text, limit).encode()) <= limit
    assert len(clip_tail(text, limit).encode()) <= limit


@given(st.text(max_size=10))
def test_text_that_fits_is_not_clipped(text):
    assert clip_head(text, 40) == clip_tail(text, 40) == text


def x_death(reason: object, **more: object) -> dict[str, object]:
    rung = {"reason": "expired", "queue": "redrive.delay.1.1", "exchange": "redrive.retry", "count": 1}
    newest = {"reason": reason, "queue": "orders", "exchange": "shop.events", "routing-keys": ["order.created"], **more}
    return {"x-death": [newest, rung], "x-first-death-reason": "expired", "x-first-death-queue": "redrive.delay.1.1"}


@pytest.mark.parametrize(
    ("reason", "read"),
    [
        ("delivery_limit", DeadReason.CRASHED),
        ("expired", DeadReason.EXPIRED),
        ("rejected", DeadReason.REJECTED),
        ("maxlen", None),
        (b"\xff", None),
        (7, None),
    ],
)
def test_a_letter_of_the_brokers_own_is_read_from_its_newest_death_alone(reason, read):
    death = read_death(x_death(reason, time=datetime(2026, 5, 1, 11, 0, tzinfo=UTC)))
    assert (death.reason, death.at) == (read, datetime(2026, 5, 1, 11, 0, tzinfo=UTC))


def test_our_own_reason_goes_before_the_brokers():
    assert read_death({**x_death("expired"), "redrive-dead-reason": "Crashed"}).reason is DeadReason.CRASHED


def test_a_reason_that_nobody_knows_is_named_and_the_brokers_taken():
    death = read_death({**x_death("expired"), "redrive-dead-reason": "Bored"})
    assert (death.reason, death.clamped) == (DeadReason.EXPIRED, ("redrive-dead-reason",))


@pytest.mark.parametrize("value", [None, 5, "x", [], [5], [[]], {}, [{"reason": {}}], [{"routing-keys": [1]}]])
def test_a_forged_death_tells_nothing(value):
    assert read_death({"x-death": value}).reason is None


# Requeueing


def test_a_requeued_letter_begins_anew():
    fresh = deliver(Properties(message_id="m-1", priority=7, expiration="60000", headers={"tenant": "a"}))
    retried = again(build_retry(fresh, replace(RETRY, attempt=9, crashes=1, suspect=True), now=NOW))
    letter = again(build_dead_letter(retried, DEAD, now=LATER, pod="p"), exchange="redrive.dead")
    sent = build_requeue(letter)
    assert sent == Properties(
        message_id="m-1",
        priority=7,
        delivery_mode=2,
        headers={
            "tenant": "a",
            "redrive-attempt": 1,
            "redrive-redrives": 1,
            "redrive-origin-exchange": "shop.events",
            "redrive-origin-routing-key": "order.created",
        },
    )
    second = build_requeue(again(build_dead_letter(again(sent), DEAD, now=LATER, pod="p")))
    assert second.headers["redrive-redrives"] == 2


def test_a_letter_that_the_broker_parked_at_once_still_knows_where_it_came_from():
    sent = build_requeue(deliver(exchange="redrive.dead", key="shop/orders", **x_death("rejected")))
    assert sent.headers["redrive-origin-exchange"] == "shop.events"
    assert sent.headers["redrive-origin-routing-key"] == "order.created"


@pytest.mark.parametrize("exchange", ["redrive.retry", "redrive.retry.1", "redrive.delivery"])
def test_a_rung_that_the_broker_names_is_not_taken_for_an_origin(exchange):
    sent = build_requeue(deliver(exchange="redrive.dead", key="shop/orders", **x_death("expired", exchange=exchange)))
    assert sent.headers == {"redrive-attempt": 1, "redrive-redrives": 1}


@pytest.mark.parametrize(
    ("key", "read"), [("k" * 100_000, "k" * 255), ("é" * 200, "é" * 127), (b"\xff", "\\xff"), (5, None)]
)
def test_a_forged_death_gives_no_longer_an_origin_than_the_protocol_does(key, read):
    death = read_broker_death(x_death("rejected", exchange="e" * 100_000, **{"routing-keys": [key]}))
    assert (death.exchange, death.routing_key) == ("e" * 255, read)


def test_a_letter_that_was_moved_back_by_hand_begins_anew_too():
    dead = build_dead_letter(again(build_retry(deliver(), replace(RETRY, attempt=10), now=NOW)), DEAD, now=NOW, pod="p")
    moved = welcome_back(deliver(dead, exchange="", key="orders"))
    assert (moved.attempt, moved.story.redrives, moved.story.origin_exchange) == (1, 1, "shop.events")
    retried = build_retry(moved, RETRY, now=NOW)
    assert "redrive-dead-reason" not in retried.headers
    assert welcome_back(again(retried)).attempt == 2


def test_whatever_we_tell_of_a_message_fits_a_frame_that_is_not_measured():
    texts = ("content_type", "content_encoding", "correlation_id", "reply_to", "message_id", "type", "app_id")
    longest = dict.fromkeys(texts, "x" * LONGEST_SHORT)
    fresh = deliver(
        Properties(**longest, priority=255, timestamp=2**63), exchange="e" * LONGEST_SHORT, key="k" * LONGEST_SHORT
    )
    story = replace(
        fresh.story,
        suspect=True,
        crashes=HIGHEST_COUNT,
        snoozes=HIGHEST_COUNT,
        redrives=HIGHEST_COUNT,
        expires_at=LATER,
    )
    cause = Cause("t" * 9999, "e" * 9999, "trace" * 9999)
    retry = replace(RETRY, attempt=HIGHEST_COUNT, crashes=HIGHEST_COUNT, suspect=True, cause=cause)
    sent = build_retry(replace(fresh, story=story), retry, now=LATER, frame_max=None)
    assert len(sent.headers) > 10
    assert frame_size(sent) <= AMPLE
    assert squeeze(sent, AMPLE) is sent
