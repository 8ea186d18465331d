"""What of the properties can be written, and how large it is: held against what the client library really encodes."""

from datetime import UTC, datetime
from decimal import Decimal

import pika.data
import pika.frame
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.amqp import to_pika
from redrive.field_tables import DEEPEST, decode_table
from redrive.properties import Properties, frame_size, is_writable, table_size

times = st.datetimes(datetime(1970, 1, 2), datetime(9998, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
decimals = st.builds(
    lambda digits, scale: Decimal(digits).scaleb(-scale), st.integers(-(2**31) + 1, 2**31 - 1), st.integers(0, 255)
)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | floats | times | decimals | st.text() | st.binary()
)
names = st.text(max_size=60)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(names, inner), max_leaves=8)
tables = st.dictionaries(names, values, max_size=6)
texts = st.none() | names
properties = st.builds(
    Properties,
    content_type=texts,
    content_encoding=texts,
    headers=tables,
    delivery_mode=st.none() | st.integers(1, 2),
    priority=st.none() | st.integers(0, 255),
    correlation_id=texts,
    reply_to=texts,
    expiration=texts,
    message_id=texts,
    timestamp=st.none() | st.integers(0, 2**64 - 1),
    type=texts,
    user_id=texts,
    app_id=texts,
    cluster_id=texts,
)
FULL = Properties("é", "é", {"é": "é"}, 2, 9, "é", "é", "é", "é", 1_700_000_000, "é", "é", "é", "é")


def encode_frame(these: Properties) -> bytes:
    return bytes(pika.frame.Header(1, 2**40, to_pika(these)).marshal())


@given(properties)
@example(FULL)
@example(Properties(headers={str(n): float(n) for n in range(50)}))
def test_a_header_frame_is_never_larger_than_measured(these):
    assert len(encode_frame(these)) <= frame_size(these)


@pytest.mark.parametrize("these", [FULL, Properties(headers={"a": "b" * 1000}, delivery_mode=2)])
def test_a_header_frame_is_measured_nearly_exactly(these):
    assert frame_size(these) - len(encode_frame(these)) < 12


@given(tables)
@example({"d": Decimal("1E-255"), "i": 2**63 - 1, "t": datetime(1970, 1, 1, tzinfo=UTC), "n": None, "b": True})
def test_what_is_called_writable_can_be_encoded_and_is_never_larger_than_measured(table):
    assert is_writable(table)
    assert len(encode_table(table)) <= table_size(table)


def encode_table(table: dict[str, object]) -> bytes:
    pieces: list[bytes] = []
    pika.data.encode_table(pieces, table)
    return b"".join(pieces)


def nested(depth: int, value: object = 1) -> dict[str, object]:
    """Put tables in tables, so many in all."""
    table: dict[str, object] = {"a": value}
    for _ in range(depth - 1):
        table = {"a": table}
    return table


@pytest.mark.parametrize("depth", [1, DEEPEST - 2, DEEPEST - 1, DEEPEST, DEEPEST + 1, 200])
@pytest.mark.parametrize("inside", [1, [], {}])
def test_a_table_is_written_only_if_it_was_read_whole(depth, inside):
    sent = nested(depth, inside)
    read, _ = decode_table(encode_table(sent), 0)
    assert is_writable(read) == is_writable(sent)
    assert not is_writable(read) or read == sent


@pytest.mark.parametrize(("depth", "writable"), [(63, True), (64, False)])
def test_tables_may_be_63_deep_the_headers_themselves_among_them(depth, writable):
    assert is_writable(nested(depth)) is writable
