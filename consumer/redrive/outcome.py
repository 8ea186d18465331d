"""What one run of a handler came to, and what becomes of the message: both as values, before anything is done.

A runner reports a `Result` and decides nothing; `redrive.retry.decide` turns it into an `Outcome`; who settles does
what the outcome says and asks nothing more. A runner therefore never raises for what a handler did.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache

from redrive.quickly import quickly


class DeadReason(StrEnum):
    """Why a message is in the dead letter queue."""

    EXHAUSTED = "Exhausted"
    REJECTED = "Rejected"
    UNREADABLE = "Unreadable"
    CRASHED = "Crashed"
    EXPIRED = "Expired"


def type_names(error: type[BaseException]) -> tuple[str, ...]:
    """Name an exception's class and its bases, nearest first, as people write them: builtins without a module."""
    try:
        return _known_names(error)  # type: ignore[arg-type]  # a class may say that it has no hash
    except TypeError:
        return _names(error)


def _names(error: type[BaseException]) -> tuple[str, ...]:
    return tuple(_full_name(kind) for kind in error.__mro__ if kind is not object)


_known_names = lru_cache(maxsize=256)(_names)


def _full_name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True, slots=True)
class Cause:
    """What went wrong, for people: it goes into the headers and decides nothing."""

    error_type: str
    error: str
    trace: str = ""


_cause = quickly(Cause)


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned, the program exited with 0, the answer was 2xx."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler did not do its work, and said so.

    `error_types` are the class of the exception and its bases, as `type_names` gives them. A handler's own
    `Retry` is reported with its own name alone: it is a wish, and no rule about exceptions in general is meant for it.
    """

    error: str
    error_types: tuple[str, ...] = ()
    trace: str = ""
    asked_delay: timedelta | None = None
    http_status: int | None = None
    exit_code: int | None = None

    @property
    def cause(self) -> Cause:
        return _cause(self._name(), self.error, self.trace)

    def _name(self) -> str:
        if self.error_types:
            return self.error_types[0]
        if self.http_status is not None:
            return f"HTTP {self.http_status}"
        return "" if self.exit_code is None else f"exit code {self.exit_code}"


@dataclass(frozen=True, slots=True)
class TimedOut(Failed):
    """The try was ended because it took longer than `worker.timeout`. A failure like any other to the rules."""

    error_types: tuple[str, ...] = ("redrive.TimedOut", *type_names(TimeoutError))


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Not now, and nobody's fault. Without a delay it waits as long as a failure of this attempt would."""

    delay: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The handler wants no more of this message."""

    reason: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Crashed:
    """The worker died over the message. Only when nothing else ran beside it is it known to be the killer."""

    error: str
    alone: bool


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The body is not what the handler's annotation says; the handler was not called."""

    error: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Expired:
    """The message was past the time that its publisher gave it; the handler was not called."""


Result = Succeeded | Failed | Snoozed | Rejected | Crashed | Unreadable | Expired


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing more to do: acknowledge it."""


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Send it through the ladder; when it comes back it is on `attempt`. A suspect then runs alone."""

    delay: timedelta
    attempt: int
    crashes: int = 0
    suspect: bool = False
    snoozed: bool = False
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Park it where a person will look."""

    reason: DeadReason
    cause: Cause
    crashes: int = 0


Outcome = Done | RetryLater | DeadLetter
