"""A try while it runs, its time, and its end: of those who may end it, exactly one does.

A thread that runs a handler is done with it at the very moment at which the loop finds that its time is over; then the
loop must not interrupt what that thread does next. So each claim is one operation that cannot be divided, popping from
a list, and there are no locks: a thread that is interrupted while it holds one would keep it.
"""

import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from threading import get_ident
from time import monotonic, sleep
from types import CodeType

from redrive.outcome import TimedOut
from redrive.runners import Job
from redrive.runners.whereabouts import describe_work
from redrive.runtime.ports import Loop, Timer

# How long what was interrupted may take to end: it has files to close.
GRACE_SECONDS = 5.0

# When to look again at a try whose time is over and that is beginning or ending just now.
SOON_SECONDS = 0.05

Interrupt = Callable[[], None]


class Attempt:
    """A job that has begun. `began` may be set anew by who runs it, when its time is to be counted from later on."""

    __slots__ = ("_armed", "_thread", "_untold", "began", "interrupted", "job", "overdue_since")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.began = monotonic()
        self.interrupted = False
        self.overdue_since: float | None = None  # the overseer's own
        self._armed: list[Interrupt] = []
        self._untold = [True]
        self._thread = get_ident()

    def arm(self, interrupt: Interrupt) -> None:
        """Let it be interrupted from now on, in this way, by the loop. It must not raise."""
        self._armed.append(interrupt)

    def finish(self) -> bool:
        """Let it be interrupted no more. False: it was, and the interruption is over when this returns."""
        try:
            self._armed.pop()
        except IndexError:
            while not self.interrupted:
                sleep(0.001)
            return False
        return True

    def interrupt(self) -> bool:
        """Interrupt it, in the loop. False: there is nothing to interrupt, since it is not armed."""
        try:
            interrupt = self._armed.pop()
        except IndexError:
            return False
        try:
            interrupt()
        finally:
            self.interrupted = True
        return True

    def tell(self) -> bool:
        """Claim to tell what came of it; True for the first who does. Needed only where it was interrupted."""
        try:
            self._untold.pop()
        except IndexError:
            return False
        return True

    def find_itself(self, *, below: CodeType) -> str:
        """Say where its thread is at this moment, from the call of `below` down, like a trace."""
        frame = sys._current_frames().get(self._thread)
        return describe_work(frame, below=below) if frame else ""


class Overseer:
    """Interrupts each try when its time is over, and gives up the one that does not end even then.

    There is one timer for all: whatever begins after a look is due no sooner than one timeout later.
    """

    def __init__(
        self,
        loop: Loop,
        timeout: timedelta,
        running: Callable[[], Iterable[Attempt]],
        give_up: Callable[[Attempt], None],
        is_stuck: Callable[[Attempt], bool] = lambda _: True,
    ) -> None:
        self._loop = loop
        self._timeout = timeout.total_seconds()
        self._running = running
        self._give_up = give_up
        self._is_stuck = is_stuck
        self._timer: Timer | None = None

    def start(self) -> None:
        self._timer = self._loop.later(self._timeout, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now = monotonic()
        again = [self._see_to(attempt, now) for attempt in self._running()]
        self._timer = self._loop.later(min([now + self._timeout, *again]) - now, self._look)

    def _see_to(self, attempt: Attempt, now: float) -> float:
        """Do what is due and say when the next thing is."""
        if attempt.overdue_since is None:
            due = attempt.began + self._timeout
            if now < due:
                return due
            if not attempt.interrupt():
                return now + SOON_SECONDS
            attempt.overdue_since = now
        given_up = attempt.overdue_since + GRACE_SECONDS
        if now < given_up:
            return given_up
        if self._is_stuck(attempt) and attempt.tell():
            self._give_up(attempt)
        return now + 1


def time_out(timeout: timedelta, trace: str = "") -> TimedOut:
    return TimedOut(f"it was not done within {timeout.total_seconds():g} s, and was ended", trace=trace)
