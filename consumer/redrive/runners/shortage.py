"""Ends the biggest program before the memory of the container is gone.

The kernel would end one too, or on a modern cluster the container as a whole, with every message in flight.
"""

from collections.abc import Callable, Iterable

from redrive.memory import Memory, Reading, resident_by_family
from redrive.outcome import Crashed
from redrive.runners.pressure import is_short, is_worth_ending, next_look
from redrive.runners.verdicts import too_big
from redrive.runtime.ports import Loop, Timer

# When to look again where the memory cannot be read.
LOOK_SECONDS = 1.0

# How long the memory of one that was ended may take to come back, before another is ended.
RELIEF_SECONDS = 0.5


class Shortage:
    """Looks at the memory, more often the less there is left.

    `sessions` are the programs that run, by their sessions; `end` ends one, which counts as the given crash.
    """

    def __init__(
        self,
        loop: Loop,
        memory: Memory | None,
        sessions: Callable[[], Iterable[int]],
        end: Callable[[int, Crashed], None],
    ) -> None:
        self._loop = loop
        self._memory = memory
        self._sessions = sessions
        self._end = end
        self._next_at = 0.0
        self._timer: Timer | None = None

    def start(self) -> None:
        if self._memory is not None:
            self._look(self._memory)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, memory: Memory) -> None:
        reading = memory.read()
        if reading is not None and is_short(reading) and self._loop.now() >= self._next_at:
            self._relieve(reading)
        pause = LOOK_SECONDS if reading is None else next_look(reading)
        self._timer = self._loop.later(pause, lambda: self._look(memory))

    def _relieve(self, reading: Reading) -> None:
        sizes = resident_by_family(self._sessions())
        size, biggest = max(((size, session) for session, size in sizes.items()), default=(0, 0))
        if is_worth_ending(size, newborn=0, limit=reading.limit):
            self._next_at = self._loop.now() + RELIEF_SECONDS
            self._end(biggest, too_big(used=reading.used, limit=reading.limit, size=size))
