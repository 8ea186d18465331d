"""Letters written down and read again: the same in every bit and type; and what is no letter is told by its line."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from letter_samples import delivered

from redrive.delivery import Delivery
from redrive.letters.codec import BadLine, read_line, read_lines, write_line
from redrive.letters.putting_in import as_letter, as_message
from redrive.letters.typed_json import read_value, write_value
from redrive.properties import Properties

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = TEXT | st.just("$bytes") | st.just("$")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.binary(max_size=12)
    | st.decimals(min_value=-2000, max_value=2000, places=3)
    | st.integers(0, 2**34).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
SHORT = st.none() | TEXT.filter(lambda text: len(text.encode()) <= 255)
OCTET = st.none() | st.integers(0, 255)
PROPERTIES = st.builds(
    Properties,
    content_type=SHORT,
    content_encoding=SHORT,
    headers=st.dictionaries(NAMES, VALUES, max_size=4),
    delivery_mode=OCTET,
    priority=OCTET,
    correlation_id=SHORT,
    reply_to=SHORT,
    expiration=SHORT,
    message_id=SHORT,
    timestamp=st.none() | st.integers(0, 2**63 - 1),
    type=SHORT,
    user_id=SHORT,
    app_id=SHORT,
    cluster_id=SHORT,
)


def same(one, other):
    """Compare with the types: in Python, true is 1 and 1 is 1.0."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict) and list(one) == list(other) and all(same(one[name], other[name]) for name in one)
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other and str(one) == str(other)


@given(VALUES)
def test_value_is_read_as_it_was_written_with_its_type(value):
    assert same(read_value(json.loads(json.dumps(write_value(value)))), value)


@given(PROPERTIES, st.binary(max_size=50), TEXT, TEXT)
def test_letter_is_read_as_it_was_written(properties, body, exchange, routing_key):
    line = write_line(Delivery(7, exchange, routing_key, True, body, properties))
    assert "\n" not in line
    read = read_line(line.encode(), 1)
    assert (read.exchange, read.routing_key, read.body) == (exchange, routing_key, body)
    assert same(dict(read.properties.headers), dict(properties.headers))
    assert read.properties == properties


def test_bytes_where_the_protocol_wants_text_are_written_too():
    properties = Properties(message_id=b"\xff", headers={b"\xfe": 1})
    read = read_line(write_line(Delivery(1, b"\xfd", "k", False, b"", properties)), 1)
    assert (read.properties.message_id, read.exchange) == (b"\xff", b"\xfd")
    assert read.properties.headers == {b"\xfe": 1}


def test_line_can_be_read_by_a_person():
    line = json.loads(write_line(delivered(body=b'{"order": 5}')))
    assert (line["messageId"], line["text"], line["headers"]["redrive-attempt"]) == ("m-1", '{"order": 5}', 10)


BAD = {
    "{": "is no JSON",
    "[1]": "is no JSON object",
    '"x"': "is no JSON object",
    "{}": "must have its body",
    '{"text": "a", "base64": "YQ=="}': "must have its body",
    '{"text": 5}': "must have its body",
    '{"base64": "?"}': "base64 holds something else",
    '{"text": "", "colour": 1}': "unknown field 'colour'",
    '{"text": "", "version": 2}': "use a newer one",
    '{"text": "", "headers": []}': "headers must be an object",
    '{"text": "", "headers": {"a": 1.5}}': "write",
    '{"text": "", "headers": {"a": {"$colour": "x"}}}': "not known here",
    '{"text": "", "headers": {"a": {"$float": "x"}}}': "which is none",
    '{"text": "", "headers": {"a": {"$float": "nan"}}}': "AMQP cannot carry",
    '{"text": "", "headers": {"a": 99999999999999999999}}': "AMQP cannot carry",
    '{"text": "", "headers": {"a": {"$bytes": "x", "b": 1}}}': "no other keys",
    '{"text": "", "headers": {"a": {"$table": [1]}}}': "pairs",
    '{"text": "", "properties": {"colour": "x"}}': "unknown field 'colour'",
    '{"text": "", "properties": {"priority": 256}}': "from 0 to 255",
    '{"text": "", "properties": {"priority": true}}': "from 0 to 255",
    '{"text": "", "properties": {"type": 5}}': "must be a text",
    '{"text": "\\ud800"}': "half a character",
    '{"text": "", "exchange": 5}': "exchange must be a text",
}


@pytest.mark.parametrize("line", BAD)
def test_what_is_no_letter_is_told_by_its_line(line):
    with pytest.raises(BadLine, match=r"^line 3: ") as told:
        list(read_lines(["", '{"text": ""}', line]))
    assert BAD[line] in str(told.value)


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["text", "headers", "properties", "$float", "$table", "type", "a"]), inner
            )
        ),
    )
)
def test_no_json_can_crash_the_reader(raw):
    with suppress(BadLine):
        read_line(json.dumps(raw), 1)


def test_line_that_is_no_text_or_nests_too_deeply_is_told():
    for line in (b"\xff", b"[" * 100_000, b'{"text": "", "headers": {"a": ' + b"[" * 500 + b"]" * 500 + b"}}"):
        with pytest.raises(BadLine):
            read_line(line, 1)


# Put in again


def stored(**more):
    return read_line(write_line(delivered(**more)), 1)


def test_imported_letter_keeps_its_story_and_loses_what_breaks_publishing():
    found = stored(user={"CC": ["x"], "x-delivery-count": 3, "x-death": [{"reason": "rejected"}], "tenant": "a"})
    sent = as_letter(found)
    assert "CC" not in sent.headers
    assert "x-delivery-count" not in sent.headers
    assert (sent.headers["tenant"], sent.headers["redrive-attempt"], sent.delivery_mode) == ("a", 10, 2)
    assert sent.headers["x-death"] == [{"reason": "rejected"}]


def test_imported_letter_has_no_user_no_expiration_and_an_id():
    line = '{"text": "", "properties": {"user_id": "x", "expiration": "5", "priority": 3}}'
    sent = as_letter(read_line(line, 1))
    assert (sent.user_id, sent.expiration, sent.priority) == (None, None, 3)
    assert sent.message_id


def test_imported_letter_remembers_where_it_was_published():
    assert as_letter(stored(exchange="shop.events")).headers["redrive-origin-exchange"] == "shop.events"
    assert "redrive-origin-exchange" not in as_letter(stored()).headers


def test_letter_published_as_a_message_has_no_past():
    sent = as_message(stored(redrives=2, trace="T", user={"x-death": [], "tenant": "a"}))
    assert dict(sent.headers) == {"tenant": "a"}


def test_decimal_keeps_its_digits():
    assert str(read_value(write_value(Decimal("1.50")))) == "1.50"
