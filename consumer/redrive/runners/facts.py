"""What a program or a server is told about a message besides its body, as names and texts.

Everything here comes over the wire, so it may hold whatever a stranger put there. Each text is bounded; what cannot be
in an environment variable or in a header of HTTP is escaped, never left to raise or to be read as something else.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from math import isfinite
from urllib.parse import quote

from redrive.clip import encode
from redrive.message import Message
from redrive.story import write_time

# Headers that tell of the message's way through the broker and Redrive, and not what its publisher meant.
_NOT_THE_PUBLISHERS = ("redrive-", "x-death", "x-first-death-", "x-last-death-")

# The kernel takes 128 KiB for a variable.
LONGEST_VARIABLE = 65_536

# Many servers take 8 KiB for all headers together.
LONGEST_HEADER = 4096

# Printable ASCII, but for what escapes the rest.
_PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")

_DEEPEST = 32


def list_facts(message: Message, consumer: str) -> dict[str, str]:
    """Name what is known of a message, in the spelling of HTTP headers."""
    story = message.story
    return {
        "Message-Id": message.id,
        "Attempt": str(message.attempt),
        "Max-Attempts": str(message.max_attempts),
        "First-Attempt-At": write_time(message.first_attempt_at),
        "Redelivered": "true" if message.redelivered else "false",
        "Consumer": consumer,
        "Exchange": message.exchange if story.origin_exchange is None else story.origin_exchange,
        "Routing-Key": message.routing_key if story.origin_routing_key is None else story.origin_routing_key,
    }


def write_environment(message: Message, consumer: str) -> dict[bytes, bytes]:
    """Write the variables of a program: REDRIVE_MESSAGE_ID and so on, and the publisher's headers as JSON."""
    facts = list_facts(message, consumer)
    facts["Content-Type"] = message.properties.content_type or ""
    facts["Headers"] = write_headers(message.headers, LONGEST_VARIABLE)
    return {f"REDRIVE_{name.upper().replace('-', '_')}".encode(): _variable(text) for name, text in facts.items()}


def write_request_headers(message: Message, consumer: str) -> dict[str, str]:
    """Write the headers of a request: Redrive-Message-Id and so on, and the publisher's own as JSON."""
    properties = message.properties
    facts = list_facts(message, consumer)
    encoding = {"Content-Encoding": properties.content_encoding} if properties.content_encoding else {}
    return {
        "Content-Type": header_text(properties.content_type or "application/octet-stream"),
        **{name: header_text(text) for name, text in encoding.items()},
        **{f"Redrive-{name}": header_text(text) for name, text in facts.items()},
        "Redrive-Headers": write_headers(message.headers, LONGEST_HEADER),
    }


def write_headers(headers: Mapping[str, object], limit: int) -> str:
    """Write the publisher's headers as JSON in printable ASCII. Those that would make it too long are left out."""
    written: list[str] = []
    left = limit - len("{}")
    for name, value in headers.items():
        if not name.startswith(_NOT_THE_PUBLISHERS):
            # The one character that is neither printable nor escaped by JSON.
            entry = f"{json.dumps(name)}: {json.dumps(_plain(value))}".replace("\x7f", "\\u007f")
            if len(entry) + len(", ") <= left:
                written.append(entry)
                left -= len(entry) + len(", ")
    return f"{{{', '.join(written)}}}"


def header_text(text: str) -> str:
    """Escape like a URL what is not printable ASCII, and the percent sign."""
    return quote(text, safe=_PLAIN, errors="backslashreplace")


def _variable(text: str) -> bytes:
    return encode(text).replace(b"\0", b"\\x00")[:LONGEST_VARIABLE]


def _plain(value: object, depth: int = 0) -> object:
    """Turn a value of a header into one of JSON."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return value if isfinite(value) else str(value)
        case Decimal():
            return str(value)
        case bytes():
            return value.decode(errors="backslashreplace")
        case datetime():
            return value.isoformat()
        case dict() | list() if depth < _DEEPEST:
            return (
                dict(_entries(value, depth)) if isinstance(value, dict) else [_plain(one, depth + 1) for one in value]
            )
        case _:
            return None


def _entries(table: dict[object, object], depth: int) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        yield (name if isinstance(name, str) else str(_plain(name))), _plain(value, depth + 1)
