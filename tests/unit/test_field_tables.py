"""Header tables as they come over the wire: what a peer may write is read, and what it may not never raises."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_tables import VALUES, table, text

from redrive.field_tables import DEEPEST, LONGEST_KNOWN, decode_table


@pytest.mark.parametrize(("encoded", "value"), VALUES)
def test_value_is_read(encoded, value):
    whole = b"before" + table((b"name", encoded), (b"next", b"t\x01")) + b"after"
    assert decode_table(whole, 6) == ({"name": value, "next": True}, len(whole) - 5)


def test_order_of_names_is_kept():
    assert list(decode_table(table((b"b", b"V"), (b"a", b"V")), 0)[0]) == ["b", "a"]


def test_deep_table_ends_in_bytes():
    inner = table()
    for _ in range(20_000):
        inner = table((b"t", b"F" + inner))
    value, end = decode_table(inner, 0)
    assert end == len(inner)
    depth = 1
    while isinstance(value := value["t"], dict):
        depth += 1
    assert (depth, type(value)) == (DEEPEST, bytes)


@pytest.mark.parametrize("length", [1, LONGEST_KNOWN - 20, LONGEST_KNOWN, 10 * LONGEST_KNOWN])
def test_parts_of_equal_bytes_are_equal_and_nobody_elses(length):
    inner = b"A" + text(b"F" + table((b"keys", b"A" + text(b"S" + text(b"x" * length)))))
    whole = table((b"x-death", inner))
    expected = {"x-death": [{"keys": ["x" * length]}]}
    first, _ = decode_table(whole, 0)
    first["x-death"][0]["keys"].append("changed")
    first["x-death"][0]["more"] = 1
    first["x-death"].append("changed")
    assert decode_table(whole, 0) == (expected, len(whole))


def test_array_is_no_table_of_the_same_bytes():
    both = text(b"\x01nt\x01")  # a table with one flag in it, or an array that begins with a kind that nobody knows
    assert decode_table(table((b"table", b"F" + both), (b"array", b"A" + both)), 0)[0] == {
        "table": {"n": True},
        "array": [],
    }


def test_unknown_kind_ends_the_table_and_keeps_what_came_before():
    whole = table((b"a", b"t\x01"), (b"b", b"?whatever"), (b"c", b"t\x01"))
    assert decode_table(whole, 0) == ({"a": True}, len(whole))


@given(st.binary())
def test_no_bytes_raise(body):
    whole = struct.pack(">I", len(body)) + body
    assert decode_table(whole, 0)[1] == len(whole)
