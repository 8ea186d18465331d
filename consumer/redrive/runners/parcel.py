"""A message on its way to a child, and a result on its way back, as bytes.

Packing a message is on the way of every one of them, in the thread of the loop: it takes a tenth of the time that
pickling the dataclass as it is would take. Times are numbers meanwhile, for pickling a single one takes longer than all
the rest. A child may be anything by the time that it answers, so a result is made of plain values alone, and reading it
calls nothing.
"""

import io
import pickle
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from redrive.message import Message
from redrive.outcome import Failed, Rejected, Result, Snoozed, Succeeded, TimedOut, Unreadable
from redrive.properties import Properties
from redrive.quickly import quickly
from redrive.story import FRESH, Story

_MESSAGE = ("id", "exchange", "routing_key", "redelivered", "max_attempts")

_message_of = attrgetter(*_MESSAGE)
_properties_of = attrgetter(*(field.name for field in fields(Properties)))
_story_of = attrgetter(*(field.name for field in fields(Story)))

_HEADERS = Properties.__slots__.index("headers")
_STORY_TIMES = tuple(Story.__slots__.index(name) for name in ("first_attempt_at", "due_at", "expires_at"))

_RESULTS = (Succeeded, Failed, TimedOut, Snoozed, Rejected, Unreadable)
_NUMBERS = {kind: number for number, kind in enumerate(_RESULTS)}
SUCCEEDED = _NUMBERS[Succeeded]

_NO_PROPERTIES = Properties()
_EPOCH = datetime.fromtimestamp(0, UTC)

_message = quickly(Message)
_properties = quickly(Properties)
_story = quickly(Story)


def pack_head(message: Message) -> bytes:
    """Pack all of a message but its body, which may be large and is bytes already."""
    story = message.story
    told = None if story is FRESH else _tell(story)
    properties = list(_properties_of(message.properties))
    headers = properties[_HEADERS]
    flat = [name for name, value in headers.items() if type(value) in _TO_FLATTEN] if headers else None
    if flat:
        properties[_HEADERS] = headers = dict(headers)
        for name in flat:
            headers[name] = _flatten(headers[name])
    return pickle.dumps((*_message_of(message), _flatten(message.received_at), properties, flat, told), 5)


def unpack_message(head: bytes, body: bytes) -> Message:
    """Put a message together again; without a head it is for a handler that is given the body alone."""
    if not head:
        return _message("", body, _NO_PROPERTIES, "", "", False, _EPOCH, 0, FRESH)
    id_, exchange, key, redelivered, attempts, at, properties, flat, told = pickle.loads(head)  # noqa: S301
    if flat:
        headers = properties[_HEADERS]
        for name in flat:
            headers[name] = _restore(headers[name])
    story = FRESH if told is None else _hear(told)
    return _message(id_, body, _properties(*properties), exchange, key, redelivered, _restore(at), attempts, story)


def _tell(story: Story) -> list[Any]:
    told = list(_story_of(story))
    for place in _STORY_TIMES:
        if told[place] is not None:
            told[place] = _flatten(told[place])
    return told


def _hear(told: list[Any]) -> Story:
    for place in _STORY_TIMES:
        if told[place] is not None:
            told[place] = _restore(told[place])
    return _story(*told)


def _flatten(value: Any) -> Any:  # noqa: ANN401 - what a header may be
    """Make a tuple of each time, which no header is, in tables and arrays too."""
    kind = type(value)
    if kind is datetime:
        if value.tzinfo is not UTC:
            return value
        age = value - _EPOCH
        return age.days, age.seconds, age.microseconds
    if kind is dict:
        return {name: _flatten(inner) if type(inner) in _TO_FLATTEN else inner for name, inner in value.items()}
    return [_flatten(inner) if type(inner) in _TO_FLATTEN else inner for inner in value]


def _restore(value: Any) -> Any:  # noqa: ANN401
    """Make times of tuples again."""
    kind = type(value)
    if kind is tuple:
        return _EPOCH + timedelta(*value)
    if kind is dict:
        for name, inner in value.items():
            if type(inner) in _TO_RESTORE:
                value[name] = _restore(inner)
    elif kind is list:
        for place, inner in enumerate(value):
            if type(inner) in _TO_RESTORE:
                value[place] = _restore(inner)
    return value


_TO_FLATTEN = frozenset({datetime, dict, list})
_TO_RESTORE = frozenset({tuple, dict, list})


def pack_result(result: Result) -> tuple[int, bytes]:
    """Say which kind of result it is, and pack the rest of it."""
    match result:
        case Succeeded():
            return SUCCEEDED, b""
        case Snoozed(delay):
            values: tuple[Any, ...] = (_plain(delay),)
        case Rejected(error, trace) | Unreadable(error, trace):
            values = (error, trace)
        case Failed():
            values = (result.error, result.error_types, result.trace, _plain(result.asked_delay))
        case _:
            raise TypeError(f"no handler ends as {result!r}")
    return _NUMBERS[type(result)], pickle.dumps(values, 5)


def unpack_result(number: int, packed: bytes) -> Result:
    """Read a result; raises anything when it is none."""
    kind = _RESULTS[number]
    return kind() if kind is Succeeded else kind(*_PlainReader(io.BytesIO(packed)).load())


class _PlainReader(pickle.Unpickler):
    """Reads plain values, and calls nothing."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as the base class has it
        if (module, name) == ("datetime", "timedelta"):
            return timedelta
        raise pickle.UnpicklingError(f"a result has no {module}.{name} in it")


def _plain(delay: timedelta | None) -> timedelta | None:
    """Make it one of Python's own: a wish may come with one of a class of the user's."""
    return None if delay is None else timedelta(delay.days, delay.seconds, delay.microseconds)
