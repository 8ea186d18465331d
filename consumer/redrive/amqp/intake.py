"""Reads deliveries and confirms from what the broker sent; every other frame is left to the client library.

Reading is most of what a fast worker does. The library makes six objects of each message, looks for somebody to call
for each frame, and copies all that it has not read yet after each of them: more than twice the work of reading straight
from what was received, and for a confirm of a few bytes ten times. What is read here is the same, and a test holds it
to that.
"""

import struct
from collections.abc import Callable

from pika import exceptions as foreign

from redrive.content_header import read_content_header, read_short
from redrive.delivery import Delivery
from redrive.properties import Properties
from redrive.quickly import quickly

_FRAME = struct.Struct(">BHI")
_METHOD, _HEADER, _BODY, _END = 1, 2, 3, 0xCE
_DELIVER = struct.pack(">HH", 60, 60)
_ACK = struct.pack(">HH", 60, 80)
_NACK = struct.pack(">HH", 60, 120)
_TAG = struct.Struct(">QB")

_delivery = quickly(Delivery)

Take = Callable[[Delivery], None]
Hear = Callable[[int, bool, bool], None]  # the number of a publish, whether all before it are meant, and taken or not


class Intake:
    """`takers` are told what is delivered on their channels, and `hearers` what of theirs is confirmed, or refused.

    A channel has one of them at most. `others` is given every other frame, whole. With `keeps_headers` deliveries have
    their properties also as they came.
    """

    def __init__(self, others: Callable[[bytes], None]) -> None:
        self._others = others
        self.takers: dict[int, Take] = {}
        self.hearers: dict[int, Hear] = {}
        self.keeps_headers = False
        self._begun: dict[int, tuple[int, str | bytes, str | bytes, bool]] = {}
        self._parts: dict[int, tuple[Properties, bytes, int, list[bytes]]] = {}

    def forget(self, channel: int) -> None:
        """Have nobody any more for a channel that is closed."""
        self.takers.pop(channel, None)
        self.hearers.pop(channel, None)
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
            offset, frame = stop + 1, offset
            if channel in self.takers:
                if kind == _METHOD and (behind := self._take_whole(channel, buffer, start, offset)):
                    offset = behind
                    continue
                is_read = self._take(kind, channel, buffer, start, stop)
            else:
                is_read = kind == _METHOD and channel in self.hearers and self._hear(channel, buffer, start)
            if not is_read:
                self._others(buffer[frame:offset])
        return offset

    def _take_whole(self, channel: int, buffer: bytes, start: int, header: int) -> int:
        """Read a delivery of which all is there, with a body in one frame; give where it ends, or 0 where it is none.

        That is nearly every one. `start` is where the method begins, and `header` where the next frame does.
        """
        if buffer[start : start + 4] != _DELIVER:
            return 0
        start_of_header, stop_of_header = _find_frame(buffer, header, _HEADER, channel)
        if not stop_of_header:
            return 0
        properties, size = read_content_header(buffer, start_of_header)
        body, behind = b"", stop_of_header + 1
        if size:
            start_of_body, stop_of_body = _find_frame(buffer, behind, _BODY, channel)
            if stop_of_body - start_of_body != size:
                return 0
            body, behind = buffer[start_of_body:stop_of_body], stop_of_body + 1
        tag, exchange, routing_key, redelivered = _read_deliver(buffer, start + 4)
        raw = buffer[start_of_header:stop_of_header] if self.keeps_headers else b""
        self.takers[channel](_delivery(tag, exchange, routing_key, redelivered, body, properties, raw))
        return behind

    def _take(self, kind: int, channel: int, buffer: bytes, start: int, stop: int) -> bool:
        """Read a frame, if it is one of a delivery."""
        if kind == _METHOD:
            if buffer[start : start + 4] != _DELIVER:
                return False
            self._begun[channel] = _read_deliver(buffer, start + 4)
        elif kind == _HEADER:
            properties, size = read_content_header(buffer, start)
            raw = buffer[start:stop] if self.keeps_headers else b""
            if size:
                self._parts[channel] = properties, raw, size, []
            else:
                self._deliver(channel, properties, raw, b"")
        elif kind == _BODY:
            self._add_body(channel, buffer[start:stop])
        else:
            return False
        return True

    def _hear(self, channel: int, buffer: bytes, start: int) -> bool:
        """Read a confirm, if it is one."""
        method = buffer[start : start + 4]
        if method != _ACK and method != _NACK:
            return False
        number, flags = _TAG.unpack_from(buffer, start + 4)
        self.hearers[channel](number, flags & 1 == 1, method == _ACK)
        return True

    def _add_body(self, channel: int, part: bytes) -> None:
        properties, raw, left, parts = self._parts[channel]
        parts.append(part)
        left -= len(part)
        if left > 0:
            self._parts[channel] = properties, raw, left, parts
        else:
            self._deliver(channel, properties, raw, part if len(parts) == 1 else b"".join(parts))

    def _deliver(self, channel: int, properties: Properties, raw: bytes, body: bytes) -> None:
        tag, exchange, routing_key, redelivered = self._begun[channel]
        self.takers[channel](_delivery(tag, exchange, routing_key, redelivered, body, properties, raw))


def _find_frame(buffer: bytes, offset: int, kind: int, channel: int) -> tuple[int, int]:
    """Say from where to where the payload of such a frame at this place is; (0, 0) where it is not all there."""
    if len(buffer) - offset <= _FRAME.size:
        return 0, 0
    its_kind, its_channel, size = _FRAME.unpack_from(buffer, offset)
    start = offset + _FRAME.size
    stop = start + size
    if its_kind != kind or its_channel != channel or stop >= len(buffer) or buffer[stop] != _END:
        return 0, 0
    return start, stop


def _read_deliver(buffer: bytes, offset: int) -> tuple[int, str | bytes, str | bytes, bool]:
    offset += 1 + buffer[offset]  # the consumer's tag
    tag, flags = _TAG.unpack_from(buffer, offset)
    exchange, offset = read_short(buffer, offset + _TAG.size)
    routing_key, _ = read_short(buffer, offset)
    return tag, exchange, routing_key, flags & 1 == 1
