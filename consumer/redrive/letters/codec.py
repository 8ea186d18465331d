"""Letters as lines of JSON (NDJSON), one a line, so that a backup can be put back: nothing of a message is lost.

A line has `messageId` for who reads it, `exchange` and `routingKey`, `properties` by their names in the protocol,
`headers` with their types (see `typed_json`), and the body: `text` where it is UTF-8, else `base64`.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from redrive.delivery import Delivery
from redrive.errors import RedriveError
from redrive.letters.harmless_json import dump_json
from redrive.letters.typed_json import BadValue, read_value, write_value
from redrive.properties import Properties

VERSION = 1

_NUMBERS = {"delivery_mode": 255, "priority": 255, "timestamp": 2**64 - 1}
_PROPERTIES = tuple(name for name in Properties.__slots__ if name != "headers")
_FIELDS = frozenset({"version", "messageId", "exchange", "routingKey", "properties", "headers", "text", "base64"})


class BadLine(RedriveError):
    """A line that is no letter, and why: `line 3: ...`."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"line {number}: {problem}")
        self.number = number


@dataclass(frozen=True, slots=True)
class Stored:
    """A letter as it was written down. `number` is that of its line."""

    number: int
    exchange: str | bytes
    routing_key: str | bytes
    properties: Properties
    body: bytes


def write_line(delivery: Delivery) -> str:
    """Write a letter as one line, without its end."""
    properties = delivery.properties
    line = {
        "version": VERSION,
        "messageId": write_value(properties.message_id),
        "exchange": write_value(delivery.exchange),
        "routingKey": write_value(delivery.routing_key),
        "properties": {
            name: write_value(value) for name in _PROPERTIES if (value := getattr(properties, name)) is not None
        },
        "headers": write_value(dict(properties.headers)),
        **_write_body(delivery.body),
    }
    return dump_json(line, separators=(",", ":"))


def read_lines(lines: Iterable[bytes | str]) -> Iterator[Stored]:
    """Read letters; empty lines are passed over. BadLine says which line is wrong, and why."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield read_line(line, number)


def read_line(line: bytes | str, number: int) -> Stored:
    try:
        raw = json.loads(line)
    except UnicodeDecodeError as error:
        raise BadLine(number, "is not text in UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise BadLine(number, "is no JSON: one letter is one object on one line") from error
    if not isinstance(raw, dict):
        raise BadLine(number, "is no JSON object: one letter is one object on one line")
    try:
        return _read_letter(raw, number)
    except (BadValue, RecursionError) as error:
        raise BadLine(number, str(error)) from error


def _read_letter(raw: Mapping[str, Any], number: int) -> Stored:
    unknown = sorted(raw.keys() - _FIELDS)
    if unknown:
        raise BadValue(f"has the unknown field {unknown[0]!r}: there are {', '.join(sorted(_FIELDS))}")
    if raw.get("version", VERSION) != VERSION:
        raise BadValue(f"has version {raw['version']!r}, and this program reads {VERSION}: use a newer one")
    return Stored(
        number=number,
        exchange=_read_name(raw, "exchange"),
        routing_key=_read_name(raw, "routingKey"),
        properties=_read_properties(raw),
        body=_read_body(raw),
    )


def _read_name(raw: Mapping[str, Any], name: str) -> str | bytes:
    value = read_value(raw.get(name, ""))
    if not isinstance(value, str | bytes):
        raise BadValue(f"{name} must be a text")
    return value


def _read_properties(raw: Mapping[str, Any]) -> Properties:
    given = raw.get("properties", {})
    if not isinstance(given, dict):
        raise BadValue("properties must be an object")
    unknown = sorted(given.keys() - frozenset(_PROPERTIES))
    if unknown:
        raise BadValue(f"properties has the unknown field {unknown[0]!r}: there are {', '.join(_PROPERTIES)}")
    read = {name: _read_property(name, value) for name, value in given.items()}
    if "messageId" in raw and "message_id" not in read:
        read["message_id"] = _read_property("message_id", raw["messageId"])
    return Properties(headers=_read_headers(raw), **read)


def _read_property(name: str, raw: object) -> Any:  # noqa: ANN401 - what the property of this name holds
    value = read_value(raw)
    if value is None:
        return None
    if name in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _NUMBERS[name]:
            raise BadValue(f"properties.{name} must be an integer from 0 to {_NUMBERS[name]}")
        return value
    if not isinstance(value, str | bytes) or len(value if isinstance(value, bytes) else _encode(value, name)) > 255:
        raise BadValue(f"properties.{name} must be a text of at most 255 bytes")
    return value


def _encode(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadValue(f"properties.{name} has half a character, which cannot be sent") from error


def _read_headers(raw: Mapping[str, Any]) -> dict[str, object]:
    headers = read_value(raw.get("headers", {}))
    if not isinstance(headers, dict):
        raise BadValue("headers must be an object")
    return headers


def _write_body(body: bytes) -> dict[str, str]:
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(body).decode()}


def _read_body(raw: Mapping[str, Any]) -> bytes:
    match raw:
        case {"text": str(text)} if "base64" not in raw:
            return _encode_body(text)
        case {"base64": str(text)} if "text" not in raw:
            try:
                return b64decode(text, validate=True)
            except ValueError as error:
                raise BadValue("base64 holds something else") from error
        case _:
            raise BadValue("must have its body in `text` or in `base64`, one of them")


def _encode_body(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadValue("text has half a character: write the bytes in base64") from error
