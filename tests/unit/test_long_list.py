"""Lists of the management API, read as they come: whole where they are honest, and cut off where they would fill us."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.errors import BadAnswer
from redrive.long_list import LONGEST_ITEM, Allowance, read_items

SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8)
OBJECTS = st.dictionaries(st.text(max_size=5), SCALARS | st.lists(SCALARS, max_size=3), max_size=4)


def read(raw, allowance=None, *, at_a_time=None):
    source = io.BytesIO(raw)
    take = source.read if at_a_time is None else lambda _size: source.read(at_a_time)
    return list(read_items(take, allowance or Allowance()))


@given(st.lists(OBJECTS, max_size=4), st.sampled_from([None, 1, " "]), st.booleans(), st.integers(1, 9))
def test_list_is_read_as_it_was_written_however_it_comes(items, indent, ascii_only, at_a_time):
    raw = json.dumps(items, indent=indent, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    try:
        raw.decode()
    except UnicodeDecodeError:
        return
    assert read(raw, at_a_time=at_a_time) == items


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"{}",
        b"404 page not found",
        b"[",
        b"[1]",
        b"[{}",
        b"[{},",
        b"[{},]",
        b"[{} {}]",
        b'[{"a"}]',
        b"[[]]",
        b'[{"a":"\xff"}]',
        b'[{"a":"\xe6\x97',
        b'[{"a":' + b"[" * 100_000,
    ],
)
def test_what_is_no_list_of_objects_is_a_bad_answer(raw):
    with pytest.raises(BadAnswer):
        read(raw)


def test_item_that_is_too_long_is_a_bad_answer():
    long = b'[{"a":[' + b"{}," * LONGEST_ITEM + b"{}]}]"
    with pytest.raises(BadAnswer, match="no object"):
        read(long)


def test_answer_is_not_taken_further_than_its_first_fault():
    source = io.BytesIO(b"[1," + b"{}," * 1_000_000)
    with pytest.raises(BadAnswer):
        list(read_items(source.read, Allowance()))
    assert source.tell() < 100_000


@pytest.mark.parametrize("allowance", [Allowance(most_bytes=100_000), Allowance(most_values=1000)])
def test_lists_of_one_reading_share_an_allowance(allowance):
    some = json.dumps([{"name": f"q{number}", "type": "quorum"} for number in range(300)]).encode()
    read(some, allowance)
    with pytest.raises(BadAnswer, match="divide it among several"):
        for _ in range(9):
            read(some, allowance)
