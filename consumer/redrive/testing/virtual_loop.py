"""A loop whose time passes only when it is told to.

Time is counted in whole microseconds: sums of floats would bring a delay that is advanced in steps early or late.
"""

import heapq
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

_MICROSECOND = timedelta(microseconds=1)
_PER_SECOND = 1_000_000

# Like the real clock, it does not begin at zero.
_START = 1000 * _PER_SECOND


class VirtualTimer:
    """A call that waits for its time."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class VirtualLoop:
    """Calls what is due, in order, and never waits. `began` is what the calendar says at first."""

    def __init__(self, began: datetime = BEGAN) -> None:
        self._began = began
        self._now = _START
        self._numbers = count()
        self._due: list[tuple[int, int, VirtualTimer]] = []
        self._soon: deque[Callable[[], None]] = deque()

    def now(self) -> float:
        return self._now / _PER_SECOND

    def clock(self) -> datetime:
        """Say the time of day."""
        return self._began + (self._now - _START) * _MICROSECOND

    def later(self, seconds: float, call: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(call)
        heapq.heappush(self._due, (self._now + max(0, round(seconds * _PER_SECOND)), next(self._numbers), timer))
        return timer

    def soon(self, call: Callable[[], None]) -> None:
        self._soon.append(call)

    def watch(self, fd: int, call: Callable[[], None]) -> None:
        raise NotImplementedError("there are no files in virtual time")

    def unwatch(self, fd: int) -> None:
        raise NotImplementedError("there are no files in virtual time")

    def turn(self) -> None:
        """Do the next thing that can be done without time passing, if there is one."""
        self._do_next(self._now)

    def settle(self) -> None:
        """Do everything that can be done without time passing."""
        self.advance(0)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is to be done now."""
        return not self._soon

    def advance(self, seconds: float) -> None:
        """Let time pass, and do what becomes due meanwhile, at its time.

        Called from inside of a callback, that is time in which the callback does something.
        """
        self._advance_to(self._now + round(seconds * _PER_SECOND))

    def advance_to_next(self) -> bool:
        """Let time pass until something is due, and do it; say whether there was anything."""
        while self._due and self._due[0][2].call is None:
            heapq.heappop(self._due)
        if not self._due:
            return False
        self._advance_to(max(self._now, self._due[0][0]))
        return True

    def _advance_to(self, end: int) -> None:
        while self._do_next(end):
            pass
        self._now = max(self._now, end)

    def _do_next(self, end: int) -> bool:
        if self._soon:
            self._soon.popleft()()
        elif self._due and self._due[0][0] <= end:
            at, _, timer = heapq.heappop(self._due)
            self._now = max(self._now, at)
            if timer.call is not None:
                timer.call()
        else:
            return False
        return True
