"""Threads that jobs run in, one job at a time each: what the Thread, command and http runners share.

All take from one inbox, so a thread whose job was short takes the next at once, and wakes nobody. A job that is in the
inbox has not begun, and can be taken back; whoever takes it out, a thread or the loop, has it alone.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from queue import Empty, SimpleQueue
from time import monotonic

from redrive.outcome import Result
from redrive.raised import describe, result_of
from redrive.runners import Job, Report
from redrive.runners.attempts import Attempt, Overseer, time_out
from redrive.runners.reports import Reports
from redrive.runtime.ports import Loop

# How long the end of what was interrupted is waited for when all is to end at once.
FAREWELL_SECONDS = 2.0

Run = Callable[[Attempt], Result]


class SlotRunner(ABC):
    """Runs jobs in as many threads as its concurrency. A kind says how, and what it means when one does not end."""

    def __init__(self, *, concurrency: int, timeout: timedelta, loop: Loop) -> None:
        self.concurrency = concurrency
        self.timeout = timeout
        self.stopped = False
        self._loop = loop
        self._inbox: SimpleQueue[Job | None] = SimpleQueue()
        self._running: list[Attempt | None] = [None] * concurrency
        self._threads: list[threading.Thread] = []
        self._overseer = Overseer(loop, timeout, self.running, self._give_up)

    @abstractmethod
    def equip(self) -> AbstractContextManager[Run]:
        """Give a thread what it needs from job to job, as a function that runs one: it arms it and finishes it.

        The function never raises. What it returns for a try that was interrupted must be a TimedOut.
        """

    @property
    @abstractmethod
    def stuck(self) -> str:
        """Say why this process must be replaced: something does not end, though its time is over."""

    def start(self, report: Report, fail: Callable[[str], None]) -> None:
        self._reports = Reports(self._loop, report, fail)
        for slot in range(self.concurrency):
            thread = threading.Thread(target=self._live, args=(slot,), name=f"redrive-slot-{slot}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._overseer.start()

    def submit(self, jobs: Iterable[Job]) -> None:
        put = self._inbox.put
        for job in jobs:
            put(job)

    def withdraw(self) -> list[Job]:
        taken: list[Job] = []
        while True:
            try:
                job = self._inbox.get_nowait()
            except Empty:
                return taken
            if job is not None:
                taken.append(job)

    def stop(self) -> None:
        if self.stopped or not self._threads:
            return
        self.stopped = True
        self._overseer.stop()
        self._reports.close()
        self.withdraw()
        for _ in self._threads:
            self._inbox.put(None)
        self.interrupt_all()
        farewell = monotonic() + FAREWELL_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, farewell - monotonic()))

    def interrupt_all(self) -> None:
        """End whatever runs, when all is to end."""
        for attempt in self.running():
            attempt.interrupt()

    def running(self) -> list[Attempt]:
        return [attempt for attempt in self._running if attempt is not None]

    def _live(self, slot: int) -> None:
        try:
            self._serve(slot)
        except BaseException as error:  # what it needs cannot be had, say
            attempt, self._running[slot] = self._running[slot], None
            if attempt is not None and attempt.tell():
                self._reports.add(attempt, result_of(error))
            what = f"a thread that runs messages has ended: {type(error).__name__}: {describe(error)}"
            self._reports.fail(f"{what}; this process must be replaced")

    def _serve(self, slot: int) -> None:
        take, running, add, pid = self._inbox.get, self._running, self._reports.add, os.getpid()
        with self.equip() as run:
            while (job := take()) is not None:
                running[slot] = attempt = Attempt(job)
                result = run(attempt)
                if os.getpid() != pid:
                    os._exit(1)  # somebody's code forked, and came back in the copy too: the rest is not its business
                running[slot] = None
                if not attempt.interrupted or attempt.tell():
                    add(attempt, result)
                del job, attempt, result  # or a thread that waits for its next message would keep the one before

    def _give_up(self, attempt: Attempt) -> None:
        where = attempt.find_itself(below=SlotRunner._serve.__code__)
        self._reports.give_up(attempt, time_out(self.timeout, where), self.stuck)
