"""Writes the frames that a worker sends most: messages and acknowledgements. The library takes twice as long."""

import struct
from collections.abc import Mapping
from functools import lru_cache

import pika.data

from redrive.amqp.wire import FIELDS, fields_of
from redrive.confirms import Outgoing
from redrive.properties import Properties

_FRAME = struct.Struct(">BHI")
_METHOD, _HEADER, _BODY, _END = 1, 2, 3, b"\xce"
_PUBLISH = struct.pack(">HHH", 60, 40, 0)  # basic.publish, and a field that nobody uses
_MANDATORY = b"\x01"
_CONTENT = struct.Struct(">HHQH")  # class, weight, size of the body, and which properties there are
_ACK = struct.Struct(">HHQ?")
_NACK = struct.Struct(">HHQB")
_REQUEUE = 2  # a bit beside that of `multiple`
_BASIC = 60
_OVERHEAD = _FRAME.size + len(_END)


class CannotEncode(Exception):
    """Why this message cannot be written as it is."""


def encode_publish(channel: int, outgoing: Outgoing, frame_max: int) -> list[bytes]:
    """Write a message to be published, mandatory; a small one is one piece. CannotEncode says why it cannot be."""
    try:
        method = _encode_method(channel, outgoing.exchange, outgoing.routing_key)
        header = _encode_header(outgoing.properties, len(outgoing.body))
    except Exception as error:  # a header may be anything, and its message alone must suffer for it
        raise CannotEncode(f"it has a header or property that cannot be written ({type(error).__name__})") from error
    if len(header) + _OVERHEAD > frame_max:
        size = f"{len(header) + _OVERHEAD} bytes, and the broker takes {frame_max}"
        raise CannotEncode(f"its headers are too large: {size}")
    longest = frame_max - _OVERHEAD
    body = outgoing.body
    first = [method, _FRAME.pack(_HEADER, channel, len(header)), header, _END]
    if len(body) <= longest:
        part = [_FRAME.pack(_BODY, channel, len(body)), body, _END] if body else []
        return [b"".join(first + part)]
    bodies = [_frame(_BODY, channel, body[start : start + longest]) for start in range(0, len(body), longest)]
    return [b"".join([*first, *bodies[:1]]), *bodies[1:]]


def encode_ack(channel: int, tag: int, *, multiple: bool) -> bytes:
    return _frame(_METHOD, channel, _ACK.pack(_BASIC, 80, tag, multiple))


def encode_nack(channel: int, tag: int, *, multiple: bool) -> bytes:
    """Write that a message, or with `multiple` also every older one that is held, is given back to its queue."""
    return _frame(_METHOD, channel, _NACK.pack(_BASIC, 120, tag, _REQUEUE | multiple))


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return _FRAME.pack(kind, channel, len(payload)) + payload + _END


@lru_cache(maxsize=1024)
def _encode_method(channel: int, exchange: str, routing_key: str) -> bytes:
    """Write the frame that says where to, which is that of many messages."""
    return _frame(_METHOD, channel, b"".join((_PUBLISH, _short(exchange), _short(routing_key), _MANDATORY)))


def _encode_header(properties: Properties, size: int) -> bytes:
    flags = 0
    pieces = [b""]
    for value, (flag, write) in zip(fields_of(properties), _WRITERS, strict=True):
        if value is not None and (value or flag != _HEADERS):
            flags |= flag
            pieces.append(write(value))
    pieces[0] = _CONTENT.pack(_BASIC, 0, size, flags)
    return b"".join(pieces)


def _short(text: str) -> bytes:
    raw = text.encode()
    return _OCTET.pack(len(raw)) + raw


def _table(headers: Mapping[str, object]) -> bytes:
    """Write headers. Texts and small numbers, which most of them are, without the library."""
    pieces: list[bytes] = []
    add = pieces.append
    for name, value in headers.items():
        add(_name(name))
        if isinstance(value, str):
            raw = value.encode()
            add(_TEXT.pack(b"S", len(raw)))
            add(raw)
        elif type(value) is int and _LEAST <= value <= _MOST:
            add(_NUMBER.pack(b"I", value))
        else:
            pika.data.encode_value(pieces, value)
    fields = b"".join(pieces)
    return _LENGTH.pack(len(fields)) + fields


# Of headers, which are mostly those of the message before.
_name = lru_cache(maxsize=1024)(_short)

_TEXT = struct.Struct(">cI")
_NUMBER = struct.Struct(">ci")
_LEAST, _MOST = -(2**31), 2**31 - 1
_LENGTH = struct.Struct(">I")
_OCTET = struct.Struct("B")
_TIME = struct.Struct(">Q")
_KINDS = {"headers": _table, "delivery_mode": _OCTET.pack, "priority": _OCTET.pack, "timestamp": _TIME.pack}
# The protocol's order, and ours: the first property has the highest bit.
_WRITERS = [(1 << 15 - place, _KINDS.get(name, _short)) for place, name in enumerate(FIELDS)]
_HEADERS = 1 << 15 - FIELDS.index("headers")  # left out where there are none
