"""A message on its way to a child, and a result on its way back, as bytes.

Packing a message is on the way of every one of them, in the thread of the loop. So its properties go as they came over
the wire, and the child reads them when its handler looks at them, which few do: reading, packing and unpacking those of
a retried message takes longer than all the rest of the way. A child may be anything by the time that it answers, so a
result is made of plain values alone, and reading it calls nothing.
"""

import io
import marshal
import pickle
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from redrive.content_header import read_content_header
from redrive.delivery import Delivery
from redrive.message import Message, read_message, welcome_back
from redrive.outcome import Failed, Rejected, Result, Snoozed, Succeeded, TimedOut, Unreadable
from redrive.properties import Properties
from redrive.quickly import quickly
from redrive.runners import Job
from redrive.story import FRESH

_RESULTS = (Succeeded, Failed, TimedOut, Snoozed, Rejected, Unreadable)
_NUMBERS = {kind: number for number, kind in enumerate(_RESULTS)}
SUCCEEDED = _NUMBERS[Succeeded]

_NO_PROPERTIES = Properties()
_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)

_message, _failed = quickly(Message), quickly(Failed)


def pack_head(job: Job) -> bytes:
    """Pack all of a message but its body, which may be large and is bytes already."""
    message = job.message
    at = (message.received_at - _EPOCH) // _MICROSECOND
    seen = message.id, message.redelivered, message.max_attempts, message.attempt
    return marshal.dumps((*seen, (message.exchange, message.routing_key, at, job.header)))


def unpack_message(head: bytes, body: bytes) -> Message:
    """Put a message together again; without a head it is for a handler that is given the body alone."""
    if not head:
        return _message("", body, _NO_PROPERTIES, "", "", False, _EPOCH, 0, FRESH)
    message = Unread.__new__(Unread)
    values = marshal.loads(head)  # noqa: S302 - the worker has written it
    for fill, value in zip(_FILL, (*values, body), strict=True):
        fill(message, value)
    return message


class Unread(Message):
    """A message of which the rest is read when somebody looks at it. To everybody else it is a message like any."""

    __slots__ = ("_attempt", "_unread")

    _attempt: int
    _unread: tuple[str, str, int, bytes]

    @property
    def attempt(self) -> int:
        return self._attempt

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what is not there yet
        if name == "_attempt":  # of one that was made by `replace`
            return self.story.attempt
        if name not in _READ_LATER:
            raise AttributeError(f"a message has no {name!r}")
        message = self._read()
        for each in _READ_LATER:
            object.__setattr__(self, each, getattr(message, each))
        return getattr(message, name)

    def __eq__(self, other: object) -> bool:
        return self._plain() == (other._plain() if isinstance(other, Unread) else other)

    __hash__ = Message.__hash__

    def __repr__(self) -> str:
        return repr(self._plain())

    def __reduce__(self) -> tuple[type[Message], tuple[object, ...]]:
        return Message, tuple(getattr(self, field.name) for field in fields(Message))

    def _plain(self) -> Message:
        kind, values = self.__reduce__()
        return kind(*values)  # type: ignore[arg-type]  # they are those of its fields

    def _read(self) -> Message:
        exchange, routing_key, at, header = self._unread
        properties = read_content_header(header, 0)[0] if header else _NO_PROPERTIES
        delivery = Delivery(0, exchange, routing_key, self.redelivered, self.body, properties)
        now = _EPOCH + at * _MICROSECOND
        return welcome_back(read_message(delivery, now=now, max_attempts=self.max_attempts, new_id=lambda: self.id))


_READ_AT_ONCE = ("id", "redelivered", "max_attempts", "_attempt", "_unread", "body")  # in the order of a head
_READ_LATER = ("properties", "exchange", "routing_key", "received_at", "story")
_FILL = [getattr(Unread, name).__set__ for name in _READ_AT_ONCE]  # past the guard of a frozen value


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
    if kind is Succeeded:
        return Succeeded()
    values = _PlainReader(io.BytesIO(packed)).load()
    return _failed(*values) if kind is Failed else kind(*values)


class _PlainReader(pickle.Unpickler):
    """Reads plain values, and calls nothing."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as the base class has it
        if (module, name) == ("datetime", "timedelta"):
            return timedelta
        raise pickle.UnpicklingError(f"a result has no {module}.{name} in it")


def _plain(delay: timedelta | None) -> timedelta | None:
    """Make it one of Python's own: a wish may come with one of a class of the user's."""
    return None if delay is None else timedelta(delay.days, delay.seconds, delay.microseconds)
