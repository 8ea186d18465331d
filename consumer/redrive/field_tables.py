"""Reads the field tables of AMQP, whatever is in them: it never raises, and never recurses.

The client library's own reader cuts floats down to integers, so that a header of 1.5 would be sent on as 1, and its
writer knows no floats at all. The reader also raises on a float that is no number, on a time beyond the year 9999, and
on a table some hundreds deep. It does so while taking a delivery, which ends the connection, and the message comes back
to the next one: one message could stop every worker for ever. What cannot be read here is left out or kept as bytes.
"""

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

# Tables in tables; deeper ones stay bytes. What republishes takes no more than that anyway.
DEEPEST = 64

Table = dict[str | bytes, object]

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
_LENGTH = struct.Struct(">I")
_TIME = struct.Struct(">Q")
_DECIMAL = struct.Struct(">Bi")


def decode_table(encoded: bytes, offset: int) -> tuple[Table, int]:
    """Read a table at `offset`; return it, and where it ends."""
    start, end = _extent(encoded, offset)
    table: Table = {}
    todo: list[_Part] = [(table, start, end, 1)]
    while todo:
        _read_part(encoded, *todo.pop(), todo)
    return table, end


def encode_float(value: float) -> bytes:
    return b"d" + _NUMBERS[b"d"].pack(value)


_Part = tuple[Table | list[object], int, int, int]


def _read_part(
    encoded: bytes, into: Table | list[object], offset: int, end: int, depth: int, todo: list[_Part]
) -> None:
    """Read the values of one table or array, and note the tables and arrays among them in `todo`."""
    try:
        while offset < end:
            name: str | bytes = ""
            if isinstance(into, dict):
                name, offset = _short_text(encoded, offset)
            value, offset = _read_value(encoded, offset, depth, todo)
            if isinstance(into, dict):
                into[name] = value
            else:
                into.append(value)
    except (struct.error, _Unknown):
        return  # the rest cannot be told apart


def _read_value(encoded: bytes, offset: int, depth: int, todo: list[_Part]) -> tuple[object, int]:
    kind, offset = encoded[offset : offset + 1], offset + 1
    if kind in _NUMBERS:
        number = _NUMBERS[kind]
        return number.unpack_from(encoded, offset)[0], offset + number.size
    if kind in b"FA" and kind:
        return _open_part(encoded, offset, depth, todo, table=kind == b"F")
    try:
        read = _OTHERS[kind]
    except KeyError:
        raise _Unknown from None
    return read(encoded, offset)


def _open_part(encoded: bytes, offset: int, depth: int, todo: list[_Part], *, table: bool) -> tuple[object, int]:
    start, end = _extent(encoded, offset)
    if depth >= DEEPEST:
        return encoded[start:end], end
    inner: Table | list[object] = {} if table else []
    todo.append((inner, start, end, depth + 1))
    return inner, end


def _text(encoded: bytes, offset: int) -> tuple[str | bytes, int]:
    raw, end = _raw(encoded, offset)
    return _decode(raw), end


def _raw(encoded: bytes, offset: int) -> tuple[bytes, int]:
    start, end = _extent(encoded, offset)
    return encoded[start:end], end


def _short_text(encoded: bytes, offset: int) -> tuple[str | bytes, int]:
    (length,) = struct.unpack_from("B", encoded, offset)
    end = offset + 1 + int(length)
    return _decode(encoded[offset + 1 : end]), end


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
