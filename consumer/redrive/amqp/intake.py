"""Reads deliveries from what the broker sent; every other frame is left to the client library.

Reading is most of what a fast worker does. The library makes six objects of each message, looks for somebody to call
for each frame, and copies all that it has not read yet after each of them: more than twice the work of reading straight
from what was received. What is read here is the same, and a test holds it to that.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pika import exceptions as foreign

from redrive.delivery import Delivery
from redrive.field_tables import decode_table
from redrive.properties import Properties
from redrive.quickly import quickly

_FRAME = struct.Struct(">BHI")
_METHOD, _HEADER, _BODY, _END = 1, 2, 3, 0xCE
_DELIVER = struct.pack(">HH", 60, 60)
_TAG = struct.Struct(">QB")
_SIZE = struct.Struct(">QH")
_TIME = struct.Struct(">Q")

_delivery = quickly(Delivery)
_properties = quickly(Properties)

Take = Callable[[Delivery], None]
_Read = Callable[[bytes, int], tuple[Any, int]]


class Intake:
    """`takers` are told what is delivered on their channels; `others` is given every other frame, whole."""

    def __init__(self, others: Callable[[bytes], None]) -> None:
        self._others = others
        self.takers: dict[int, Take] = {}
        self._begun: dict[int, tuple[int, str | bytes, str | bytes, bool]] = {}
        self._parts: dict[int, tuple[Properties, int, list[bytes]]] = {}

    def forget(self, channel: int) -> None:
        """Have no taker any more for a channel that is closed."""
        self.takers.pop(channel, None)
        self._begun.pop(channel, None)
        self._parts.pop(channel, None)

    def tell_nobody(self) -> None:
        """Go on reading deliveries, for whatever comes until a connection is closed."""
        self.takers = dict.fromkeys(self.takers, lambda _delivery: None)

    def read(self, buffer: bytes) -> int:
        """Read all whole frames; give where they end."""
        offset, end = 0, len(buffer)
        while end - offset > _FRAME.size:
            kind, channel, size = _FRAME.unpack_from(buffer, offset)
            start = offset + _FRAME.size
            stop = start + size
            if stop >= end:
                break
            if buffer[stop] != _END:
                raise foreign.InvalidFrameError("a frame does not end where it says")
            if channel not in self.takers or not self._take(kind, channel, buffer, start, stop):
                self._others(buffer[offset : stop + 1])
            offset = stop + 1
        return offset

    def _take(self, kind: int, channel: int, buffer: bytes, start: int, stop: int) -> bool:
        """Read a frame, if it is one of a delivery."""
        if kind == _METHOD:
            if buffer[start : start + 4] != _DELIVER:
                return False
            self._begun[channel] = _read_deliver(buffer, start + 4)
        elif kind == _HEADER:
            properties, size = _read_header(buffer, start)
            if size:
                self._parts[channel] = properties, size, []
            else:
                self._deliver(channel, properties, b"")
        elif kind == _BODY:
            self._add_body(channel, buffer[start:stop])
        else:
            return False
        return True

    def _add_body(self, channel: int, part: bytes) -> None:
        properties, left, parts = self._parts[channel]
        parts.append(part)
        left -= len(part)
        if left > 0:
            self._parts[channel] = properties, left, parts
        else:
            self._deliver(channel, properties, part if len(parts) == 1 else b"".join(parts))

    def _deliver(self, channel: int, properties: Properties, body: bytes) -> None:
        tag, exchange, routing_key, redelivered = self._begun[channel]
        self.takers[channel](_delivery(tag, exchange, routing_key, redelivered, body, properties))


def _read_deliver(buffer: bytes, offset: int) -> tuple[int, str | bytes, str | bytes, bool]:
    offset += 1 + buffer[offset]  # the consumer's tag
    tag, flags = _TAG.unpack_from(buffer, offset)
    exchange, offset = _read_short(buffer, offset + _TAG.size)
    routing_key, _ = _read_short(buffer, offset)
    return tag, exchange, routing_key, flags & 1 == 1


def _read_header(buffer: bytes, offset: int) -> tuple[Properties, int]:
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
    return [(place, _KINDS.get(name, _read_short)) for place, name in enumerate(_NAMES) if flags & 1 << 15 - place]


def _read_short(buffer: bytes, offset: int) -> tuple[str | bytes, int]:
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
