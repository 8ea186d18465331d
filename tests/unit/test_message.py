"""Headers in: what a message's past is read from, what no stranger can do to the reader, and what fits a frame."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pika.data
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redrive.letter import Death, read_death, write_death
from redrive.message import Message, is_expired, read_message, welcome_back
from redrive.outcome import Cause, DeadLetter, DeadReason, RetryLater
from redrive.properties import FRAME_MAX, Properties, clean, is_writable, table_size
from redrive.republish import build_dead_letter, build_requeue, build_retry, build_suspect, fit, fits
from redrive.story import FRESH, STORY_HEADERS, Story, read_story, read_time, write_story, write_time

NOW = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
CAUSE = Cause("shop.errors.Late", "no answer from 10.0.0.7", "Traceback …\nshop.errors.Late")
RETRY = RetryLater(timedelta(seconds=2), 2, cause=CAUSE)
DEAD = DeadLetter(DeadReason.EXHAUSTED, CAUSE)


def deliver(
    properties: Properties | None = None,
    *,
    exchange: str = "shop.events",
    key: str = "order.created",
    **headers: object,
) -> Message:
    properties = properties or Properties(message_id="m-1")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_message(
        b"{}",
        replace(properties, headers={**properties.headers, **named}),
        exchange=exchange,
        routing_key=key,
        redelivered=False,
        now=NOW,
        max_attempts=10,
        new_id=lambda: "made-up",
    )


def again(properties: Properties, exchange: str = "redrive.delivery", now: datetime = LATER) -> Message:
    message = deliver(properties, exchange=exchange, key="0.0.0.1.0.shop/orders")
    return replace(message, received_at=now)


# Reading


def test_a_fresh_message_is_on_its_first_attempt_and_has_no_past():
    message = deliver(tenant="a")
    assert message.story is FRESH
    assert (message.id, message.attempt, message.first_attempt_at) == ("m-1", 1, NOW)
    assert message.headers == {"tenant": "a"}


@pytest.mark.parametrize("given_id", [None, ""])
def test_a_message_without_an_id_is_given_one_and_keeps_it(given_id):
    message = deliver(Properties(message_id=given_id))
    assert message.id == "made-up"
    assert build_retry(message, RETRY, now=NOW).message_id == "made-up"


@pytest.mark.parametrize(
    ("name", "value", "field", "read"),
    [
        ("attempt", 0, "attempt", 1),
        ("attempt", -7, "attempt", 1),
        ("attempt", 2**62, "attempt", 1_000_000),
        ("attempt", "3", "attempt", 1),
        ("attempt", True, "attempt", 1),
        ("attempt", 2.0, "attempt", 1),
        ("attempt", float("nan"), "attempt", 1),
        ("attempt", Decimal("NaN"), "attempt", 1),
        ("attempt", {"a": {"b": [1]}}, "attempt", 1),
        ("crashes", -1, "crashes", 0),
        ("snoozes", b"\xff", "snoozes", 0),
        ("redrives", [1], "redrives", 0),
        ("suspect", 1, "suspect", False),
        ("suspect", "true", "suspect", False),
        ("first-attempt-at", "yesterday", "first_attempt_at", None),
        ("first-attempt-at", 1_700_000_000, "first_attempt_at", None),
        ("due-at", "0001-01-01T00:00:00+23:59", "due_at", None),
        ("due-at", datetime(9999, 12, 31, tzinfo=UTC), "due_at", None),
        ("due-at", "2026-01-01T00:00:00Z" + " " * 100_000, "due_at", None),
        ("expires-at", {"year": 2026}, "expires_at", None),
        ("origin-exchange", b"\xff\xfe", "origin_exchange", None),
        ("origin-routing-key", "k" * 300, "origin_routing_key", "k" * 255),
        ("priority", 256, "priority", 255),
        ("error-type", 5, "error_type", None),
        ("error", "é" * 100_000, "error", "é" * 512),
        ("error", "\ud800", "error", "\\ud800"),
    ],
)
def test_a_header_that_makes_no_sense_is_clamped_and_named(name, value, field, read):
    story = read_story({f"redrive-{name}": value})
    assert getattr(story, field) == read
    assert story.clamped == (f"redrive-{name}",)


@pytest.mark.parametrize("name", sorted(STORY_HEADERS))
def test_a_header_that_is_null_is_as_good_as_none(name):
    assert read_story({name: None}) == FRESH


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals()
    | st.datetimes(timezones=st.none() | st.just(UTC) | st.just(timezone(timedelta(hours=-23, minutes=-59))))
    | st.text(st.characters(codec=None))
    | st.binary(),
    lambda children: st.lists(children) | st.dictionaries(st.text() | st.binary(), children),
    max_leaves=8,
)
own_names = st.sampled_from(
    sorted(STORY_HEADERS | {"redrive-dead-reason", "redrive-dead-at", "redrive-trace", "redrive-unknown", "x-death"})
)
hostile_headers = st.dictionaries(own_names | st.text() | st.binary(max_size=255), anything, max_size=8)
texts = st.none() | st.text() | st.binary(max_size=255)
hostile_properties = st.builds(
    Properties,
    content_type=texts,
    headers=hostile_headers,
    priority=st.none() | st.integers(0, 255),
    correlation_id=texts,
    reply_to=texts,
    expiration=texts | st.sampled_from(["0", "60000", "²", "-1", "9" * 400]),
    message_id=texts,
    timestamp=st.none() | st.integers(0, 2**64 - 1),
    user_id=texts,
)


@given(hostile_properties)
@settings(deadline=None)
def test_nothing_that_comes_over_the_wire_can_stop_the_reader_or_the_writer(properties):
    message = welcome_back(deliver(properties))
    is_expired(message, NOW)
    read_death(message.properties.headers)
    for sent in (
        build_retry(message, RETRY, now=NOW),
        build_suspect(message),
        build_dead_letter(message, DEAD, now=NOW, pod="orders-1"),
        build_requeue(message),
    ):
        assert all(is_writable(value) for value in sent.headers.values())
        assert again(sent).story.clamped == (), "what we write ourselves makes sense"


@given(st.text() | st.text(st.characters(codec=None), max_size=45))
@example("2026-W01-1")
@example("20260101")
@example("2026-01-01T24:00:00Z")
def test_no_text_can_stop_the_reader_of_times(text):
    time = read_time(text)
    assert time is None or time.tzinfo is UTC


@pytest.mark.parametrize(
    "written",
    [
        "2026-05-01T12:00:00.250Z",
        "2026-05-01T12:00:00.250+00:00",
        "2026-05-01T14:00:00.250+02:00",
        "2026-05-01 12:00:00.250",
        datetime(2026, 5, 1, 12, 0, 0, 250_000),  # noqa: DTZ001
        NOW,
    ],
)
def test_a_time_is_read_in_any_form_and_written_in_one(written):
    assert read_time(written) == NOW
    assert write_time(NOW) == "2026-05-01T12:00:00.250Z"
    assert write_time(NOW.astimezone(timezone(timedelta(hours=2)))) == "2026-05-01T12:00:00.250Z"


times = st.none() | st.datetimes(datetime(2000, 1, 2), datetime(2199, 12, 30), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
)
counts = st.integers(0, 1_000_000)
short = st.none() | st.text(max_size=60)
stories = st.builds(
    Story,
    attempt=st.integers(1, 1_000_000),
    suspect=st.booleans(),
    crashes=counts,
    snoozes=counts,
    redrives=counts,
    first_attempt_at=times,
    origin_exchange=short,
    origin_routing_key=short,
    due_at=times,
    expires_at=times,
    priority=st.none() | st.integers(0, 255),
    error_type=short,
    error=short,
)


@given(stories)
def test_a_story_that_is_written_is_read_again(story):
    assert read_story(write_story(story)) == story
    assert len(fields(Story)) == len(STORY_HEADERS) + 1, "every header is a field, and every field but `clamped` one"


@given(st.sampled_from(DeadReason), times, short, short)
def test_a_death_that_is_written_is_read_again(reason, at, trace, pod):
    death = Death(reason, at, trace or None, "abcd", pod or None)
    assert read_death(write_death(death)) == death


def test_strings_that_are_not_utf8_become_text_and_are_named():
    raw = Properties(message_id=b"\xffid", content_type="text/plain", headers={b"\xfe": 1, "a": 2})  # type: ignore[arg-type,dict-item]
    properties, bad = clean(raw)
    assert (properties.message_id, properties.content_type) == ("\\xffid", "text/plain")
    assert properties.headers == {"\\xfe": 1, "a": 2}
    assert bad == ("message_id", "\\xfe")
    assert deliver(raw).story.clamped == bad


# One frame


def test_a_trace_is_given_up_before_an_error_and_both_before_the_publishers_headers():
    roomy = build_dead_letter(deliver(), replace(DEAD, cause=Cause("E", "e" * 900, "t" * 8000)), now=NOW, pod="p")
    size = table_size(roomy.headers)
    assert len(str(fit(roomy.headers, size - 1000)["redrive-trace"])) == 7000
    assert "redrive-trace" not in fit(roomy.headers, size - 7990)
    assert len(str(fit(roomy.headers, size - 8500)["redrive-error"])) < 900
    assert "redrive-error" not in fit(roomy.headers, size - 8960)
    assert fit(roomy.headers, size) == roomy.headers
    assert fit(roomy.headers, 0)["redrive-dead-reason"] == "Exhausted"


@given(st.integers(118_000, FRAME_MAX - 500))
@settings(deadline=None)
def test_a_message_that_barely_fitted_a_frame_still_fits_when_it_is_dead(size):
    message = deliver(Properties(message_id="m-1", headers={"big": "x" * size}))
    sent = build_dead_letter(message, replace(DEAD, cause=Cause("E", "é" * 2000, "é" * 9000)), now=NOW, pod="p")
    assert sent.headers["big"] == "x" * size
    assert fits(sent)


def test_a_message_whose_own_headers_fill_the_frame_is_said_not_to_fit():
    message = deliver(Properties(headers={"big": "x" * (FRAME_MAX - 200)}))
    assert not fits(build_retry(message, RETRY, now=NOW))


writable = anything.filter(is_writable)


def has_float(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(has_float, value.values()))
    return any(map(has_float, value)) if isinstance(value, list) else isinstance(value, float)


@given(st.dictionaries(st.text(max_size=50), writable.filter(lambda value: not has_float(value)), max_size=6))
@example({"d": Decimal("1E-255"), "i": 2**63 - 1, "t": datetime(1970, 1, 1, tzinfo=UTC), "n": None, "b": True})
@settings(deadline=None)
def test_what_is_called_writable_can_be_encoded_and_is_never_larger_than_measured(headers):
    pieces: list[bytes] = []
    pika.data.encode_table(pieces, headers)
    assert len(b"".join(pieces)) <= table_size(headers)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63) - 1,
        "\udc80",
        {"\udc80": 1},
        {"é" * 128: 1},
        {b"x" * 256: 1},
        {5: 1},
        [Decimal("NaN")],
        Decimal("1E+999999"),
        Decimal("0.12345678901234"),
        datetime(1969, 12, 31, tzinfo=UTC),
        object(),
        nested(16),
        nested(5000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_header_that_cannot_be_written_is_dropped_and_named(value):
    sent = build_retry(deliver(Properties(headers={"odd": value, "kept": 1})), RETRY, now=NOW)
    assert "odd" not in sent.headers
    assert (sent.headers["redrive-dropped"], sent.headers["kept"]) == ("odd", 1)
