"""Reads the field tables of AMQP, whatever is in them: it never raises, and never recurses.

The client library's own reader cuts floats down to integers, so that a header of 1.5 would be sent on as 1, and its
writer knows no floats at all. The reader also raises on a float that is no number, on a time beyond the year 9999, and
on a table some hundreds deep. It does so while taking a delivery, which ends the connection, and the message comes back
to the next one: one message could stop every worker for ever. What cannot be read here is left out or kept as bytes.

A message that was retried has an array in its headers, in which the broker tells where it slept. For all that slept in
one queue until the same second it is the same, byte for byte: so a few small parts are known by their bytes, and whole
tables by their shape (`table_shapes`).
"""

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

from redrive.table_shapes import Shapes, Table

# Tables in tables; deeper ones stay bytes. What republishes takes no more than that anyway.
DEEPEST = 64

# Tables and arrays of a table that are known by their bytes: how many, and how long they may be.
MOST_KNOWN = 64
LONGEST_KNOWN = 512

_NUMBERS = {
    b"b": struct.Struct(">b"),
    b"B": struct.Struct(">B"),
    b"U": struct.Struct(">h"),
    b"s": struct.Struct(">h"),
    b"u": struct.Struct(">H"),
    b"I": struct.Struct(">i"),
    b"i": struct.Struct(">I"),
    b"l": struct.Struct(">q"),
    b"L": struct.Struct(">q"),
    b"f": struct.Struct(">f"),
    b"d": struct.Struct(">d"),
}
_PARTS = frozenset({dict, list})
_LENGTH = struct.Struct(">I")
_TEXT = ord("S")
_TIME = struct.Struct(">Q")
_DECIMAL = struct.Struct(">Bi")


def decode_table(encoded: bytes, offset: int) -> tuple[Table, int]:
    """Read a table at `offset`; return it, and where it ends."""
    start, end = _extent(encoded, offset)
    table = _shapes.read(encoded, start, end)
    if table is None:
        table = {}
        _read_parts(encoded, (table, start, end, 1))
    return table, end


def encode_float(value: float) -> bytes:
    return b"d" + _NUMBERS[b"d"].pack(value)


_Part = tuple[Table | list[object], int, int, int]


def _read_parts(encoded: bytes, first: _Part) -> None:
    todo = [first]
    while todo:
        _read_part(encoded, *todo.pop(), todo)


def _read_part(
    encoded: bytes, into: Table | list[object], offset: int, end: int, depth: int, todo: list[_Part]
) -> None:
    """Read the values of one table or array, and note the tables and arrays among them in `todo`."""
    try:
        if isinstance(into, dict):
            _read_fields(encoded, into, offset, end, depth, todo)
        while isinstance(into, list) and offset < end:
            value, offset = _read_value(encoded, offset, depth, todo)
            into.append(value)
    except (struct.error, IndexError, _Unknown):
        return  # the rest cannot be told apart


def _read_fields(encoded: bytes, into: Table, offset: int, end: int, depth: int, todo: list[_Part]) -> None:
    """Read the fields of a table. Texts, which most of them are, without a step between: it is done for each header."""
    while offset < end:
        start = offset + 1
        offset = start + encoded[offset]
        try:
            name: str | bytes = encoded[start:offset].decode()
        except UnicodeDecodeError:
            name = encoded[start:offset]
        if encoded[offset] == _TEXT:
            start = offset + 5
            offset = start + _LENGTH.unpack_from(encoded, offset + 1)[0]
            try:
                into[name] = encoded[start:offset].decode()
            except UnicodeDecodeError:
                into[name] = encoded[start:offset]
        else:
            into[name], offset = _read_value(encoded, offset, depth, todo)


def _read_value(encoded: bytes, offset: int, depth: int, todo: list[_Part]) -> tuple[object, int]:
    kind, offset = encoded[offset : offset + 1], offset + 1
    if kind in _NUMBERS:
        number = _NUMBERS[kind]
        return number.unpack_from(encoded, offset)[0], offset + number.size
    if kind == b"A" or kind == b"F":
        return _open_part(encoded, offset, depth, todo, kind == b"F")
    try:
        read = _OTHERS[kind]
    except KeyError:
        raise _Unknown from None
    return read(encoded, offset)


def _open_part(encoded: bytes, offset: int, depth: int, todo: list[_Part], table: bool) -> tuple[object, int]:
    start = offset + 4
    end = start + _LENGTH.unpack_from(encoded, offset)[0]
    if depth >= DEEPEST:
        return encoded[start:end], end
    if depth == 1 and end - start <= LONGEST_KNOWN:
        return _read_copy(encoded[start:end], table), end
    inner: Table | list[object] = {} if table else []
    todo.append((inner, start, end, depth + 1))
    return inner, end


@lru_cache(maxsize=MOST_KNOWN)
def _read_known(encoded: bytes, table: bool) -> Table | list[object]:
    """Read a table or array in the outermost table. To be copied: whoever has it may change it."""
    inner: Table | list[object] = {} if table else []
    _read_parts(encoded, (inner, 0, len(encoded), 2))
    return inner


def _copy(value: object) -> object:
    """Copy a table or an array with those in it, which are no deeper than they are read."""
    if isinstance(value, dict):
        return {name: _copy(inner) if type(inner) in _PARTS else inner for name, inner in value.items()}
    if isinstance(value, list):
        return [_copy(inner) if type(inner) in _PARTS else inner for inner in value]
    return value


def _read_copy(encoded: bytes, table: bool) -> object:
    return _copy(_read_known(encoded, table))


_shapes = Shapes(_read_copy, longest_part=LONGEST_KNOWN)


def _text(encoded: bytes, offset: int) -> tuple[str | bytes, int]:
    raw, end = _raw(encoded, offset)
    return _decode(raw), end


def _raw(encoded: bytes, offset: int) -> tuple[bytes, int]:
    start, end = _extent(encoded, offset)
    return encoded[start:end], end


def _flag(encoded: bytes, offset: int) -> tuple[bool, int]:
    return bool(struct.unpack_from("B", encoded, offset)[0]), offset + 1


def _nothing(_encoded: bytes, offset: int) -> tuple[None, int]:
    return None, offset


def _time(encoded: bytes, offset: int) -> tuple[datetime | int, int]:
    (seconds,) = _TIME.unpack_from(encoded, offset)
    try:
        return datetime.fromtimestamp(seconds, UTC), offset + _TIME.size
    except (ValueError, OverflowError, OSError):
        return int(seconds), offset + _TIME.size


def _decimal(encoded: bytes, offset: int) -> tuple[Decimal, int]:
    scale, digits = _DECIMAL.unpack_from(encoded, offset)
    return Decimal(digits).scaleb(-scale), offset + _DECIMAL.size


def _extent(encoded: bytes, offset: int) -> tuple[int, int]:
    (length,) = _LENGTH.unpack_from(encoded, offset)
    start = offset + _LENGTH.size
    return start, start + int(length)


def _decode(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


_OTHERS: dict[bytes, Callable[[bytes, int], tuple[object, int]]] = {
    b"S": _text,
    b"x": _raw,
    b"t": _flag,
    b"V": _nothing,
    b"T": _time,
    b"D": _decimal,
}


class _Unknown(Exception):
    """A kind of value that nobody defined; where it ends is unknown too."""
