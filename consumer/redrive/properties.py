"""The basic properties of an AMQP message, as a value; what can be written of them, and how large that is.

They mirror the protocol, not the client library, which stays behind its door. Strings are text here: what came as
invalid UTF-8, which the protocol forbids and the broker lets through, is escaped by `clean` and named.

All properties travel in one frame, which the peer limits (128 KiB unless agreed otherwise) and which cannot be split:
one that is too large closes the connection. Sizes are therefore never estimated too small.
"""

from calendar import timegm
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from math import isfinite
from operator import attrgetter

from redrive.clip import clip_head, size
from redrive.field_tables import DEEPEST

FRAME_MAX = 131_072  # the broker's default
LONGEST_SHORT = 255  # bytes, of an AMQP short string

# 7 bytes before the payload and 1 after it, 12 of class, weight and body size, 2 of flags.
_FRAME_OVERHEAD = 22


@dataclass(frozen=True, slots=True)
class Properties:
    """The fields of basic.properties, under the names of the protocol. `expiration` is milliseconds, as text."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Mapping[str, object] = field(default_factory=dict)
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


_TEXTS = (
    "content_type",
    "content_encoding",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
)
_texts_of = attrgetter(*_TEXTS)
_TEXT_TYPES = frozenset({str, type(None)})
_NAME_TYPES = frozenset({str})


def clean(properties: Properties) -> tuple[Properties, tuple[str, ...]]:
    """Make all strings and header names text, and say which were not."""
    if _TEXT_TYPES.issuperset(map(type, _texts_of(properties))) and _NAME_TYPES.issuperset(
        map(type, properties.headers)
    ):
        return properties, ()
    bad: dict[str, object] = {
        name: value
        for name, value in zip(_TEXTS, _texts_of(properties), strict=True)
        if value is not None and not isinstance(value, str)
    }
    headers = {as_text(name): value for name, value in properties.headers.items()}
    texts = {name: as_text(value) for name, value in bad.items()}
    cleaned = replace(properties, headers=headers, **texts)  # type: ignore[arg-type]  # all of them are texts
    return cleaned, (*bad, *(name for name in headers if name not in properties.headers))


def as_text(value: object) -> str:
    if isinstance(value, bytes):
        return clip_head(value.decode(errors="backslashreplace"), LONGEST_SHORT)
    return clip_head(str(value), LONGEST_SHORT)


def frame_size(properties: Properties) -> int:
    """Measure the header frame: at least what the properties take when encoded."""
    total = _FRAME_OVERHEAD + 1 + 1 + 8  # delivery mode, priority and timestamp, there or not
    for text in _texts_of(properties):
        if text is not None:
            total += 1 + (len(text) if text.isascii() else size(text))
    return total + table_size(properties.headers)


def table_size(table: Mapping[str, object]) -> int:
    """Measure a header table. Not recursive: how deep it goes is for a stranger to choose."""
    total = 5
    todo: list[object] = []
    for name, value in table.items():
        total += 1 + len(name) if name.isascii() else _name_size(name)
        if isinstance(value, str):  # as most are, and every retry is measured
            total += 5 + (len(value) if value.isascii() else size(value))
        else:
            todo.append(value)
    while todo:
        value = todo.pop()
        total += _own_size(value)
        todo.extend(_children(value))
    return total


def is_writable(value: object) -> bool:
    """Say whether a table of headers, or a value of one, can be encoded, however it got here.

    A level less than is read: what the reader had to leave undone is not written as if it were whole.
    """
    level = [value]
    for _ in range(DEEPEST):
        if not all(map(_is_plain, level)):
            return False
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return True
    return False


def _children(value: object) -> Iterable[object]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def _own_size(value: object) -> int:
    match value:
        case str():
            return 5 + size(value)
        case bytes():
            return 5 + len(value)
        case dict():
            return 5 + sum(map(_name_size, value))
        case list():
            return 5
        case None | bool():
            return 2
        case _:
            return 9


def _name_size(name: str | bytes) -> int:
    return 1 + (size(name) if isinstance(name, str) else len(name))


def _is_plain(value: object) -> bool:
    match value:
        case None | bool() | bytes() | list():
            return True
        case float():
            return isfinite(value)  # a broker closes the connection over any other
        case str():
            return _is_unicode(value)
        case int():
            return -(2**63) <= value < 2**63
        case dict():
            return all(map(_is_plain_name, value))
        case Decimal():
            return _is_plain_decimal(value)
        case datetime():
            return _is_plain_time(value)
        case _:
            return False


def _is_plain_name(name: object) -> bool:
    if isinstance(name, str):
        return _is_unicode(name) and len(name.encode()) <= LONGEST_SHORT
    return isinstance(name, bytes) and len(name) <= LONGEST_SHORT


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _is_plain_time(value: datetime) -> bool:
    """Seconds since 1970, unsigned; the last year is left out, where changing the zone may leave the calendar."""
    return 1970 <= value.year < 9999 and timegm(value.utctimetuple()) >= 0


def _is_plain_decimal(value: Decimal) -> bool:
    """A scale of one byte and 32 bits of digits; checked by magnitude first, for 1E+999999 is a short text."""
    if not value.is_finite() or abs(value.adjusted()) > LONGEST_SHORT:
        return False
    scale = max(0, -int(value.normalize().as_tuple().exponent))
    return scale <= LONGEST_SHORT and abs(int(value.scaleb(scale))) < 2**31
