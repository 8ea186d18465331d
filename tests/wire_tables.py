"""Header tables as a peer writes them, byte by byte: more kinds of values than the client library can write."""

import struct
from datetime import UTC, datetime
from decimal import Decimal

from redrive.field_tables import encode_float


def table(*entries):
    body = b"".join(bytes([len(name)]) + name + value for name, value in entries)
    return struct.pack(">I", len(body)) + body


def text(value):
    return struct.pack(">I", len(value)) + value


VALUES = [
    (b"t\x01", True),
    (b"b\xff", -1),
    (b"B\xff", 255),
    (b"s\xff\xfe", -2),
    (b"u\xff\xfe", 65534),
    (b"I\xff\xff\xff\xff", -1),
    (b"i\xff\xff\xff\xff", 2**32 - 1),
    (b"l" + struct.pack(">q", -(2**40)), -(2**40)),
    (b"f" + struct.pack(">f", 0.5), 0.5),
    (encode_float(1.25), 1.25),
    (b"D\x02" + struct.pack(">i", 1234), Decimal("12.34")),
    (b"S" + text("ü".encode()), "ü"),
    (b"S" + text(b"\xff"), b"\xff"),
    (b"x" + text(b"raw"), b"raw"),
    (b"T" + struct.pack(">Q", 0), datetime(1970, 1, 1, tzinfo=UTC)),
    (b"T" + struct.pack(">Q", 2**64 - 1), 2**64 - 1),
    (b"V", None),
    (b"A" + text(b"t\x00" + b"V" + b"F" + table((b"k", b"V"))), [False, None, {"k": None}]),
    (b"F" + table((b"k", b"A" + text(b""))), {"k": []}),
]
