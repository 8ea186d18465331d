"""A real loop, small enough to be read at once, for tests of what runs beside the worker's own.

It keeps the promises of `redrive.runtime.ports.Loop` and no others; `run_until` is how a test waits.
"""

import contextlib
import heapq
import itertools
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable


class SmallTimer:
    """Something that will be called."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class SmallLoop:
    """Calls what is due while `run_until` runs, and nothing at other times. `close` it, or its pipe stays open."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, SmallTimer]] = []
        self._order = itertools.count()
        self._soon: deque[Callable[[], None]] = deque()
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._woken, selectors.EVENT_READ, self._drain)
        self._thread: int | None = None

    def now(self) -> float:
        return time.monotonic()

    def later(self, seconds: float, call: Callable[[], None]) -> SmallTimer:
        timer = SmallTimer(call)
        heapq.heappush(self._timers, (self.now() + seconds, next(self._order), timer))
        return timer

    def soon(self, call: Callable[[], None]) -> None:
        self._soon.append(call)
        if threading.get_ident() != self._thread:
            self._interrupt()

    def watch(self, fd: int, call: Callable[[], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, call)

    def unwatch(self, fd: int) -> None:
        self._selector.unregister(fd)

    def run_until(self, condition: Callable[[], object], within: float = 20.0) -> None:
        """Turn until the condition holds, looked at after each turn; AssertionError when it does not in time."""
        self._thread = threading.get_ident()
        deadline = self.now() + within
        while not condition():
            assert self.now() < deadline, f"not so within {within} s"
            self._turn(longest=0.02)

    def watched(self) -> set[int]:
        """Say which descriptors are being watched, of those that a test or its subject gave."""
        return {key.fd for key in self._selector.get_map().values()} - {self._woken}

    def close(self) -> None:
        self._selector.close()
        os.close(self._woken)
        os.close(self._wake)

    def _turn(self, longest: float) -> None:
        for key, _ in self._selector.select(self._until_due(longest)):
            # What was called before may have stopped watching this one, and the number may be another's by now.
            if self._selector.get_map().get(key.fd) is key:
                key.data()
        while self._timers and self._timers[0][0] <= self.now():
            timer = heapq.heappop(self._timers)[2]
            call, timer.call = timer.call, None
            if call:
                call()
        for _ in range(len(self._soon)):
            self._soon.popleft()()

    def _until_due(self, longest: float) -> float:
        if self._soon:
            return 0
        return max(0, min(longest, self._timers[0][0] - self.now())) if self._timers else longest

    def _interrupt(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full of wake-ups, one of which is enough
            os.write(self._wake, b".")

    def _drain(self) -> None:
        os.read(self._woken, 65_536)
