"""Mode Process: a handler runs in a child process, one message at a time, and can harm nothing but that message.

A crash, a kill or a timeout is pinned on exactly one message; what was sent ahead to the same child goes to another.
The children are forked from a process that has imported the handler and does nothing else, so a new one is there in
milliseconds. Before the container runs out of memory, the biggest child is ended.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta

from redrive.memory import Memory
from redrive.runners import Job, Report
from redrive.runners.household import Household
from redrive.runners.open_files import FILES_BESIDE, allow_files
from redrive.runners.rounds import Rounds
from redrive.runtime.ports import Loop

FILES_A_CHILD = 6  # that are open: both ends of its channel, and of its two bells

RUNS = 10_000  # messages of one child, give or take a tenth: whatever a handler leaks is gone with it


class ProcessRunner:
    """Runs the handler of this name in so many children. Without `memory` nobody looks after it."""

    def __init__(
        self,
        handler: str,
        *,
        concurrency: int,
        timeout: timedelta,
        loop: Loop,
        memory: Memory | None,
        runs: int = RUNS,
    ) -> None:
        self._loop = loop
        self._household = Household(handler, size=concurrency, runs=runs, timeout=timeout, loop=loop, memory=memory)
        self._rounds = Rounds(self._household, timeout=timeout, loop=loop, memory=memory)
        self._stopped = False

    def start(self, report: Report, fail: Callable[[str], None]) -> None:
        """Begin, which takes as long as importing the handler does."""
        allow_files(FILES_A_CHILD * self._household.size + FILES_BESIDE)
        self._household.start(report, fail)

    def submit(self, jobs: Iterable[Job]) -> None:
        self._household.crew.put(jobs, self._loop.now())
        self._rounds.begin()
        if self._household.crew.unsendable:
            self._loop.soon(lambda: self._household.tell([]))

    def withdraw(self) -> list[Job]:
        return self._household.take_back()

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._rounds.stop()
            self._household.stop()
