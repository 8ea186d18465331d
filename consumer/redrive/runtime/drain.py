"""When a worker that was told to stop has done so: nothing runs, and the broker has heard about everything.

A handler that has begun is waited for: its own timeout ends it. A broker that does not answer is waited for only while
there is progress: it keeps what it has not heard about, and gives it to another worker.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from redrive.runtime.ports import Loop

PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """What is left: handlers that run, and messages that the broker has not heard about."""

    running: int
    unsettled: int


class Draining(Protocol):
    """Who is being drained."""

    def progress(self) -> Progress: ...

    def finish(self, exit_code: int) -> None: ...


class Once:
    """Calls something once, however often it is called."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def __call__(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()


class Drain:
    """Waits until nothing is left, or nothing moves any more."""

    def __init__(self, loop: Loop, draining: Draining, exit_code: int) -> None:
        self._loop = loop
        self._draining = draining
        self._finish = Once(lambda: draining.finish(exit_code))
        self._is_paused = False
        self._last = draining.progress()
        loop.later(PATIENCE_SECONDS, self._watch)

    def paused(self) -> None:
        """Be told that nothing more comes from the queue."""
        self._is_paused = True
        self.look()

    def look(self) -> None:
        left = self._draining.progress()
        if self._is_paused and left == Progress(0, 0):
            self._finish()

    def _watch(self) -> None:
        left = self._draining.progress()
        if left == self._last and not left.running:
            self._finish()
            return
        self._last = left
        self._loop.later(PATIENCE_SECONDS, self._watch)
