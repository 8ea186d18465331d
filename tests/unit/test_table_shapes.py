"""Tables of a shape that was seen before: read to the same values as those that were not, whatever is in them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_tables import VALUES, table, text

from redrive.field_tables import LONGEST_KNOWN, decode_table
from redrive.table_shapes import LONGEST, MOST, MOST_FIELDS, MOST_MISSED, MOST_MISSES, Shapes

TEXT = b"S" + text(b"orders")


def read_part(encoded, is_table):
    return is_table, encoded


def learn(whole, shapes=None):
    """Have a shape learned; the first is only noted, and the second is looked at."""
    shapes = shapes or Shapes(read_part, longest_part=LONGEST_KNOWN)
    assert [shapes.read(whole, 4, len(whole)) for _ in range(2)] == [None, None]
    return shapes


def test_third_of_a_shape_is_read_at_once_with_its_own_values():
    shapes = learn(table((b"queue", TEXT), (b"attempt", b"I\0\0\0\2"), (b"suspect", b"t\1")))
    other = table((b"queue", b"S" + text(b"refund")), (b"attempt", b"I\xff\xff\xff\xff"), (b"suspect", b"t\0"))
    assert shapes.read(b"...." + other, 8, 4 + len(other)) == {"queue": "refund", "attempt": -1, "suspect": False}


def test_parts_are_left_to_who_reads_them():
    whole = table((b"a", b"A" + text(b"12")), (b"f", b"F" + text(b"3")))
    assert learn(whole).read(whole, 4, len(whole)) == {"a": (False, b"12"), "f": (True, b"3")}


@pytest.mark.parametrize(
    "other",
    [
        table((b"Queue", TEXT), (b"n", b"I\0\0\0\2")),
        table((b"queue", b"x" + TEXT[1:]), (b"n", b"I\0\0\0\2")),
        table((b"queue", TEXT), (b"n", b"i\0\0\0\2")),
        table((b"queues", b"S" + text(b"order")), (b"n", b"I\0\0\0\2")),
        table((b"queue", b"S" + text(b"orders\1nI\0\0\0\2"))),
    ],
    ids=["a name", "a kind", "another kind", "a border", "the number of fields"],
)
def test_what_differs_between_the_values_is_another_shape(other):
    first = table((b"queue", TEXT), (b"n", b"I\0\0\0\2"))
    assert len(first) == len(other)
    assert learn(first).read(other, 4, len(other)) is None


@pytest.mark.parametrize(
    "whole",
    [
        table((b"a", b"V")),
        table((b"a", b"T" + struct.pack(">Q", 0))),
        table((b"a", b"A" + text(b"x" * (LONGEST_KNOWN + 1)))),
        table((b"\xff", TEXT)),
        table((b"a", b"S\0\0\0\xff")),
        table((b"a", b"?")),
        table((b"a", b"I\0")),
        table() + b"..",
    ],
    ids=["nothing", "a time", "a large part", "no name", "too long", "unknown", "cut off", "behind its end"],
)
def test_others_have_no_shape(whole):
    shapes = learn(whole)
    assert shapes.read(whole, 4, len(whole)) is None


def test_text_that_is_none_is_left_to_who_keeps_it_as_bytes():
    whole = table((b"queue", TEXT))
    assert learn(whole).read(whole.replace(b"orders", b"\xff" * 6), 4, len(whole)) is None


def test_table_that_is_not_all_there_is_not_read_beyond_its_end():
    whole = table((b"queue", TEXT))
    assert learn(whole).read(whole[:-1], 4, len(whole)) is None


def test_shapes_that_are_ever_new_are_not_all_kept():
    shapes = Shapes(read_part, longest_part=LONGEST_KNOWN)
    for length in range(2 * MOST_MISSED):
        learn(table((b"a", b"S" + text(b"x" * length))), shapes)
    assert len(shapes._known) <= MOST
    assert len(shapes._missed) <= MOST_MISSED


def test_shapes_of_one_length_that_are_ever_new_are_hardly_ever_learned(monkeypatch):
    learned = []
    learn_it = Shapes._learn
    monkeypatch.setattr(Shapes, "_learn", lambda *its: learned.append(1) or learn_it(*its))
    shapes = Shapes(read_part, longest_part=LONGEST_KNOWN)
    for number in range(1000):
        split = number % 100
        whole = table((b"a", b"S" + text(b"x" * split)), (b"b", b"S" + text(b"x" * (100 - split))))
        shapes.read(whole, 4, len(whole))
    assert len(learned) <= 10


def test_shape_that_follows_many_others_of_its_length_is_learned_in_the_end():
    shapes = Shapes(read_part, longest_part=LONGEST_KNOWN)
    for split in range(100):
        whole = table((b"a", b"S" + text(b"x" * split)), (b"b", b"S" + text(b"x" * (100 - split))))
        shapes.read(whole, 4, len(whole))
    values = [shapes.read(whole, 4, len(whole)) for _ in range(MOST_MISSES)]
    assert values[-1] == {"a": "x" * 99, "b": "x"}


def odd_table(number):
    """Give one of thousands of tables of one length, each of a shape of its own."""
    swapped, split = divmod(number, 4000)
    names = (b"b", b"a") if swapped else (b"a", b"b")
    return table(*((name, b"S" + text(b"x" * size)) for name, size in zip(names, (split, 4000 - split), strict=True)))


@pytest.fixture
def much_missed():
    """Give shapes that one length was missed of once more than is counted."""
    shapes = Shapes(read_part, longest_part=LONGEST_KNOWN)
    for number in range(MOST_MISSES + 1):
        whole = odd_table(number)
        assert shapes.read(whole, 4, len(whole)) is None
    return shapes


def test_misses_of_one_length_are_counted_anew_in_the_end(much_missed):
    last = odd_table(MOST_MISSES + 1)
    values = [much_missed.read(last, 4, len(last)) for _ in range(2)]
    assert values == [None, {"b": "x" * 97, "a": "x" * 3903}]


def test_misses_of_one_length_are_nobody_elses(much_missed):
    steady, values = table((b"queue", TEXT)), []
    for number in range(5):
        varied = odd_table(number)
        much_missed.read(varied, 4, len(varied))
        values.append(much_missed.read(steady, 4, len(steady)))
    assert values == [None, None, *[{"queue": "orders"}] * 3]


@pytest.mark.parametrize("fields", [MOST_FIELDS, MOST_FIELDS + 1])
def test_table_of_many_fields_is_not_worth_a_shape(fields):
    whole = table(*[(b"a", b"t\1")] * fields)
    assert (learn(whole).read(whole, 4, len(whole)) is None) == (fields > MOST_FIELDS)


@pytest.mark.parametrize("excess", [0, 1])
def test_nor_is_a_long_one(excess):
    whole = table((b"a", b"S" + text(b"x" * (LONGEST - 7 + excess))))
    assert (learn(whole).read(whole, 4, len(whole)) is None) == bool(excess)


def test_frames_full_of_fields_leave_nothing_behind():
    shapes = Shapes(read_part, longest_part=LONGEST_KNOWN)
    for fewer in range(MOST):
        learn(table(*[(b"", b"t\1")] * (43_600 - fewer)), shapes)
    assert not shapes._known
    assert not shapes._missed


fields = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"b", b"redrive-attempt", b"\xc3\xbc", b"\xff"]),
        st.one_of(
            st.sampled_from([encoded for encoded, _ in VALUES]),
            st.binary(max_size=8).map(lambda raw: b"S" + text(raw)),
            st.integers(-(2**31), 2**31 - 1).map(lambda number: b"I" + struct.pack(">i", number)),
        ),
    ),
    max_size=6,
)


def read_field_by_field(monkeypatch, whole):
    with monkeypatch.context() as without:
        without.setattr("redrive.field_tables._shapes", Shapes(read_part, longest_part=-1))
        return decode_table(whole, 0)


@given(first=fields, second=fields)
def test_known_or_not_a_table_is_read_the_same(first, second):
    with pytest.MonkeyPatch.context() as monkeypatch:
        for entries in (first, first, first, second, first, second, second):
            whole = table(*entries)
            by_field, end = read_field_by_field(monkeypatch, whole)
            known, known_end = decode_table(whole, 0)
            assert (known, list(known), known_end) == (by_field, list(by_field), end)
