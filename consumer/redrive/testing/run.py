"""One attempt of one message, as a value: what its handler did, and what became of it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, assert_never

from redrive.ladder import round_up
from redrive.message import Message
from redrive.outcome import Cause, DeadLetter, DeadReason, Done, RetryLater
from redrive.runtime.held import Held
from redrive.settle import Disposal, GiveBack, Suspect


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt. `outcome` is one of the words that the metrics and logs of a worker use.

    A `retry` or `snooze` sleeps for `delay`, until `due_at`: what was decided, rounded up to the 125 ms in which the
    ladder counts. A `dead` one has a `reason`. `tries` are the calls of the handler; a body that is not what the
    handler takes, or a message past its expiration, is dead without any.

    `error_type`, `error` and `trace` are what the headers of the retry or the dead letter say; `exception` is what the
    handler raised, or what reading its body did.
    """

    id: str
    attempt: int
    outcome: Literal["done", "retry", "snooze", "dead"]
    tries: int
    delay: timedelta | None = None
    due_at: datetime | None = None
    reason: DeadReason | None = None
    error_type: str | None = None
    error: str | None = None
    trace: str | None = field(default=None, repr=False)
    exception: BaseException | None = field(default=None, repr=False)
    message: Message = field(kw_only=True, repr=False)

    def raise_error(self) -> None:
        """Raise what the handler raised, if it raised anything: for a test that expects it to do its work."""
        if self.exception is not None:
            raise self.exception


def tell_run(held: Held, disposal: Disposal, raised: BaseException | None) -> Run | None:
    """Tell what became of a message; None when it only went round its queue."""
    match disposal:
        case Done():
            return _run(held, "done", raised)
        case RetryLater(delay=decided, snoozed=snoozed, cause=cause):
            delay = round_up(decided)
            due_at = held.planned_at + delay if held.planned_at else None
            return _run(held, "snooze" if snoozed else "retry", raised, cause, delay=delay, due_at=due_at)
        case DeadLetter(reason=reason, cause=cause):
            return _run(held, "dead", raised, cause, reason=reason)
        case Suspect() | GiveBack():
            return None
        case _:
            assert_never(disposal)


def _run(
    held: Held,
    outcome: Literal["done", "retry", "snooze", "dead"],
    raised: BaseException | None,
    cause: Cause | None = None,
    *,
    delay: timedelta | None = None,
    due_at: datetime | None = None,
    reason: DeadReason | None = None,
) -> Run:
    return Run(
        id=held.message.id,
        attempt=held.message.attempt,
        outcome=outcome,
        tries=0 if reason is DeadReason.UNREADABLE else held.tries,
        delay=delay,
        due_at=due_at,
        reason=reason,
        error_type=None if cause is None else cause.error_type,
        error=None if cause is None else cause.error,
        trace=None if cause is None else cause.trace,
        exception=raised,
        message=held.message,
    )
