"""Reads a field table that has the shape of one that was read before: the same names, kinds and lengths, other values.

Messages that follow each other mostly have headers of one shape, and those of a retried message are many. Field by
field each of them takes several steps; a table of a known shape is taken apart by a single call. It is known by all the
bytes between its values: what differs in one of them is read field by field.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

MOST = 64  # shapes, one for each length of a table
MOST_MISSED = 256  # lengths that misses are counted of
MOST_MISSES = 4096  # of one length, then they are counted anew

# What a shape may be of. Whoever publishes may write forty thousand fields into one frame, of which it would keep
# megabytes, and another frame of another length the next time.
LONGEST = 4096  # bytes of a table
MOST_FIELDS = 64

_LENGTH = struct.Struct(">I")
_SIZES = {b"I": 4, b"t": 1}  # of values that have no length of their own
_PARTS = frozenset({b"A", b"F"})

Table = dict[str | bytes, object]
ReadPart = Callable[[bytes, bool], object]  # the bytes of an array, or of a table


@dataclass(frozen=True, slots=True)
class _Shape:
    """`between` are the bytes before each value: the names, kinds and lengths."""

    whole: struct.Struct
    between: tuple[bytes, ...]
    names: tuple[str, ...]
    read: tuple[Callable[[bytes], object], ...]


class Shapes:
    """The shapes that were seen lately, one for each length of a table.

    One is learned at the second miss of a length, and then at the fourth, the eighth and so on. Where headers of one
    length come in many shapes, as when the lengths of two texts vary, hardly any is met again, and to learn one takes
    as long as to read three tables.
    """

    def __init__(self, read_part: ReadPart, *, longest_part: int) -> None:
        self._longest_part = longest_part
        self._read_array: Callable[[bytes], object] = lambda encoded: read_part(encoded, False)
        self._read_table: Callable[[bytes], object] = lambda encoded: read_part(encoded, True)
        self._known: dict[int, _Shape] = {}
        self._missed: dict[int, int] = {}

    def read(self, encoded: bytes, start: int, end: int) -> Table | None:
        """Read the fields between; None where that is to be done field by field."""
        if end - start > LONGEST:
            return None
        shape = self._known.get(end - start)
        pieces = shape.whole.unpack_from(encoded, start) if shape is not None and end <= len(encoded) else ()
        if shape is None or pieces[::2] != shape.between:
            self._miss(encoded, start, end)
            return None
        try:
            values = [read(raw) for read, raw in zip(shape.read, pieces[1::2], strict=True)]
            return dict(zip(shape.names, values, strict=True))
        except UnicodeDecodeError:
            return None

    def _miss(self, encoded: bytes, start: int, end: int) -> None:
        length = end - start
        misses = self._missed.get(length, 0) % MOST_MISSES + 1
        if length not in self._missed and len(self._missed) >= MOST_MISSED:
            self._missed.clear()
        self._missed[length] = misses
        if misses < 2 or misses & (misses - 1):  # not a power of two
            return
        shape = self._learn(encoded, start, end)
        if shape is not None:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[length] = shape

    def _learn(self, encoded: bytes, start: int, end: int) -> _Shape | None:
        """Take the shape of a table of texts, numbers, flags and small parts; None for any other."""
        layout, between = [">"], list[bytes]()
        names, read = list[str](), list[Callable[[bytes], object]]()
        offset = start
        try:
            while offset < end and len(names) < MOST_FIELDS:
                after_name = offset + 1 + encoded[offset]
                kind = encoded[after_name : after_name + 1]
                value, stop = self._find_value(encoded, after_name + 1, kind)
                layout += (f"{value - offset}s", f"{stop - value}s")
                between.append(encoded[offset:value])
                names.append(encoded[offset + 1 : after_name].decode())
                read.append(self._reader(kind))
                offset = stop
        except (IndexError, KeyError, ValueError, struct.error):
            return None
        if offset != end or end > len(encoded):
            return None
        return _Shape(struct.Struct("".join(layout)), tuple(between), tuple(names), tuple(read))

    def _find_value(self, encoded: bytes, offset: int, kind: bytes) -> tuple[int, int]:
        if kind in _SIZES:
            return offset, offset + _SIZES[kind]
        (length,) = _LENGTH.unpack_from(encoded, offset)
        if kind != b"S" and (kind not in _PARTS or length > self._longest_part):
            raise KeyError(kind)
        return offset + _LENGTH.size, offset + _LENGTH.size + length

    def _reader(self, kind: bytes) -> Callable[[bytes], object]:
        readers: dict[bytes, Callable[[bytes], object]] = {
            b"S": bytes.decode,
            b"I": _number,
            b"t": _flag,
            b"A": self._read_array,
            b"F": self._read_table,
        }
        return readers[kind]


def _number(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


def _flag(raw: bytes) -> bool:
    return raw != b"\0"
