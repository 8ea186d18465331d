"""Reads the properties of a message as they are on the wire: the payload of the frame between method and body.

What cannot be read of it is left out or kept as bytes, as `field_tables` says; `redrive.properties.clean` makes sense
of the rest.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from redrive.field_tables import decode_table
from redrive.properties import Properties
from redrive.quickly import quickly

_SIZE = struct.Struct(">QH")
_TIME = struct.Struct(">Q")

_properties = quickly(Properties)

_Read = Callable[[bytes, int], tuple[Any, int]]


def read_content_header(buffer: bytes, offset: int) -> tuple[Properties, int]:
    """Read what begins with the class and the weight, which say nothing; give the size of the body too."""
    size, flags = _SIZE.unpack_from(buffer, offset + 4)
    offset += 4 + _SIZE.size
    values: list[Any] = _NOTHING.copy()
    for place, read in _present(flags):
        values[place], offset = read(buffer, offset)
    if values[_HEADERS] is None:
        values[_HEADERS] = {}
    return _properties(*values), size


@lru_cache(maxsize=1024)
def _present(flags: int) -> list[tuple[int, _Read]]:
    """Say which properties are there, in the protocol's order, which is ours too: the first has the highest bit."""
    return [(place, _KINDS.get(name, read_short)) for place, name in enumerate(_NAMES) if flags & 1 << 15 - place]


def read_short(buffer: bytes, offset: int) -> tuple[str | bytes, int]:
    start = offset + 1
    stop = start + buffer[offset]
    raw = buffer[start:stop]
    try:
        return raw.decode(), stop
    except UnicodeDecodeError:
        return raw, stop


def _read_octet(buffer: bytes, offset: int) -> tuple[int, int]:
    return buffer[offset], offset + 1


def _read_time(buffer: bytes, offset: int) -> tuple[int, int]:
    return _TIME.unpack_from(buffer, offset)[0], offset + _TIME.size


_NAMES = tuple(Properties.__slots__)
_HEADERS = _NAMES.index("headers")
_NOTHING = [None] * len(_NAMES)
_KINDS: dict[str, _Read] = {
    "headers": decode_table,
    "delivery_mode": _read_octet,
    "priority": _read_octet,
    "timestamp": _read_time,
}
