"""Headers in: what a message's past is read from, what no stranger can do to the reader, and what fits a frame."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import DEAD, NOW, RETRY, again, deliver

from redrive.letter import DEATH_HEADERS, Death, read_death, write_death
from redrive.message import is_expired, welcome_back
from redrive.outcome import Cause, DeadReason
from redrive.properties import FRAME_MAX, Properties, clean, is_writable, table_size
from redrive.republish import build_dead_letter, build_requeue, build_retry, build_suspect, fit, fits
from redrive.story import FRESH, STORY_HEADERS, Story, read_story, read_time, write_story, write_time

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
        ("due-at", "2000-01-01T00:00+14:00", "due_at", None),
        ("due-at", "2199-12-31T23:00-02:00", "due_at", None),
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
long_texts = st.builds(lambda text, times: text * times, st.text(st.characters(codec=None)), st.sampled_from([1, 999]))
deaths = st.fixed_dictionaries(
    {},
    optional={
        "reason": long_texts | anything,
        "time": anything,
        "exchange": long_texts | st.binary() | st.just("redrive.retry.1"),
        "routing-keys": st.lists(long_texts | st.binary() | st.integers(), max_size=2) | anything,
    },
)
hostile_headers = st.builds(
    lambda headers, more: {**headers, **more},
    st.dictionaries(own_names | st.text() | st.binary(max_size=255), long_texts | anything, max_size=8),
    st.just({}) | st.fixed_dictionaries({"x-death": st.lists(deaths, max_size=2)}),
)
names = st.text(max_size=60) | st.binary(max_size=255) | st.sampled_from(["redrive.dead", b"redrive.\xff"])
FORGED = Properties(headers={"x-death": [{"exchange": "e" * 100_000, "routing-keys": ["k" * 100_000]}]})
OWN_HEADERS = STORY_HEADERS | DEATH_HEADERS
LIMITS = {"redrive-error": 1024, "redrive-trace": 8192}
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


@given(hostile_properties, names, names)
@example(FORGED, "redrive.dead", "shop/orders")
@example(Properties(), b"\xff" * 255, b"\xff" * 255)
@settings(deadline=None)
def test_nothing_that_comes_over_the_wire_can_stop_the_reader_or_the_writer(properties, exchange, key):
    message = welcome_back(deliver(properties, exchange=exchange, key=key))
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
        for name in OWN_HEADERS & sent.headers.keys():
            assert len(str(sent.headers[name]).encode()) <= LIMITS.get(name, 255), "what we write ourselves is bounded"


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


@given(st.datetimes(timezones=st.just(UTC)))
def test_time_is_written_as_python_does(time):
    assert write_time(time) == time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


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


@pytest.mark.parametrize("text", ["1999-12-31T20:00-05:00", "2200-01-01T01:00+02:00"])
def test_the_year_of_a_time_is_that_of_utc(text):
    time = read_time(text)
    assert time is not None
    assert time.year in (2000, 2199)


def test_a_trace_that_is_too_long_is_read_from_its_end():
    death = read_death({"redrive-dead-reason": "Exhausted", "redrive-trace": "t" * 9000 + "ValueError: no"})
    assert death.trace is not None
    assert (len(death.trace), death.trace[-14:]) == (8192, "ValueError: no")
    assert death.clamped == ("redrive-trace",)


def test_an_exchange_and_a_key_that_are_not_utf8_become_text_and_are_named():
    message = deliver(exchange=b"shop\xff", key=b"\xfe" * 255, redrive_attempt=0)
    assert (message.exchange, message.routing_key) == ("shop\\xff", ("\\xfe" * 64)[:255])
    assert message.story.clamped == ("exchange", "routing_key", "redrive-attempt")
    story = again(build_retry(message, RETRY, now=NOW)).story
    assert (story.origin_exchange, story.origin_routing_key) == (message.exchange, message.routing_key)


def test_an_exchange_alone_that_is_not_utf8_is_named_alone():
    assert deliver(exchange=b"shop\xff").story.clamped == ("exchange",)


def test_origins_are_written_no_longer_than_they_are_read():
    written = write_story(Story(origin_exchange="é" * 300, origin_routing_key="k" * 300))
    assert (written["redrive-origin-exchange"], written["redrive-origin-routing-key"]) == ("é" * 127, "k" * 255)


def test_strings_that_are_not_utf8_become_text_and_are_named():
    raw = Properties(message_id=b"\xffid", content_type="text/plain", headers={b"\xfe": 1, "a": 2})  # type: ignore[arg-type,dict-item]
    properties, bad = clean(raw)
    assert (properties.message_id, properties.content_type) == ("\\xffid", "text/plain")
    assert properties.headers == {"\\xfe": 1, "a": 2}
    assert bad == ("message_id", "\\xfe")
    assert deliver(raw).story.clamped == bad


# One frame


def test_a_trace_is_given_up_before_an_error_and_both_before_the_publishers_headers():
    trace = "".join(f"line {n}\n" for n in range(1000))[-8000:]
    cause = Cause("E", "".join(map(str, range(1000)))[:900], trace)
    roomy = build_dead_letter(deliver(), replace(DEAD, cause=cause), now=NOW, pod="p")
    size = table_size(roomy.headers)
    assert fit(roomy.headers, size - 1000)["redrive-trace"] == trace[1000:], "its end, where the error is"
    assert "redrive-trace" not in fit(roomy.headers, size - 7990)
    error = str(fit(roomy.headers, size - 8500)["redrive-error"])
    assert 400 <= len(error) < 900
    assert cause.error.startswith(error)
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
        nested(32),
        nested(5000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_header_that_cannot_be_written_is_dropped_and_named(value):
    sent = build_retry(deliver(Properties(headers={"odd": value, "kept": 1})), RETRY, now=NOW)
    assert "odd" not in sent.headers
    assert (sent.headers["redrive-dropped"], sent.headers["kept"]) == ("odd", 1)


def test_a_header_as_deep_as_can_be_read_is_kept():
    sent = build_retry(deliver(Properties(headers={"deep": nested(31)})), RETRY, now=NOW)
    assert sent.headers["deep"] == nested(31)
    assert "redrive-dropped" not in sent.headers


def test_names_of_dropped_headers_are_clipped_like_all_that_we_write():
    odd = {f"{n:0>60}": 2**63 for n in range(10)}
    dropped = str(build_retry(deliver(Properties(headers=odd)), RETRY, now=NOW).headers["redrive-dropped"])
    assert len(dropped) == 255
    assert ",".join(odd).startswith(dropped)
