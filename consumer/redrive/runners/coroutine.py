"""Mode Async: `async def` handlers run beside each other in one event loop, which has a thread of its own.

A handler that never waits is over within the step that began it, and the next begins in the same step: a task and a
turn of the event loop for each would cost more than they do. One that has waited is the last of its task, so that
nothing which libraries keep by task goes over to another message. Each runs in a context of its own.

A handler that blocks the event loop blocks all others too. Their time goes by meanwhile, but the one that blocks is
known, and is given up alone; the others have a moment more, and then go the way of those whose process has died.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from contextvars import Context, copy_context
from datetime import timedelta
from functools import partial
from time import monotonic
from types import coroutine
from typing import Any

from redrive.handler import Handler, HandlerError, call_handler, end_copy, finish
from redrive.outcome import Crashed, Failed, Result
from redrive.runners import Job, Report, attempts
from redrive.runners.attempts import Attempt, Overseer, time_out
from redrive.runners.reports import Reports
from redrive.runners.slots import FAREWELL_SECONDS
from redrive.runtime.ports import Loop

# How long handlers that never wait may follow each other, all together, before the event loop turns for those that do.
SLICE_SECONDS = 0.002

# A step that takes longer blocks the event loop.
BLOCKED_SECONDS = 1.0

_BLOCKED = Crashed("another message blocked the event loop that this one waited in", alone=False)

# Cancelling is a wish, which may be lost in the handler or in a library; it is said more than once.
AGAIN_SECONDS = 1.0


class AsyncRunner:
    """Awaits a Python handler, many at once."""

    def __init__(self, handler: Handler, *, concurrency: int, timeout: timedelta, loop: Loop) -> None:
        self._handler = handler
        self._concurrency = concurrency
        self._timeout = timeout
        self._loop = loop
        self._inbox: deque[Job] = deque()
        self._called = False  # whether the event loop is about to look into the inbox
        self._busy = 0
        self._slice_end = 0.0
        self._running: dict[Attempt, asyncio.Task[Any] | None] = {}
        self._step: tuple[Attempt, float] | None = None  # whose code runs just now, and since when
        self._gave_up: tuple[Attempt, float] | None = None  # who blocked the event loop, and when it was given up
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._overseer = Overseer(loop, timeout, lambda: list(self._running), self._give_up, self._is_stuck)

    def start(self, report: Report, fail: Callable[[str], None]) -> None:
        if not self._handler.is_async:
            problem = f"mode Async needs an `async def` handler: make {self._handler.name} one"
            raise HandlerError(f"{problem}, or set spec.worker.python.mode to Thread or Process")
        self._reports = Reports(self._loop, report, fail)
        self._pid = os.getpid()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._live, args=(ready,), name="redrive-async", daemon=True)
        self._thread.start()
        ready.wait()
        self._overseer.start()

    def submit(self, jobs: Iterable[Job]) -> None:
        # In this order: the event loop says that it has come, or that somebody is free, and then looks.
        self._inbox.extend(jobs)
        if not self._called and self._busy < self._concurrency:
            self._called = True
            self._call(self._begin)

    def withdraw(self) -> list[Job]:
        taken: list[Job] = []
        while (job := self._take()) is not None:
            taken.append(job)
        return taken

    def stop(self) -> None:
        if self._stopped or self._thread is None:
            return
        self._stopped = True
        self._overseer.stop()
        self._reports.close()
        self.withdraw()
        self._call(self._events.stop)
        self._thread.join(FAREWELL_SECONDS)

    # What happens in the thread of the event loop.

    def _live(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._events = runner.get_loop()
            ready.set()
            while not self._stopped and not self._events.is_closed():
                # A handler may stop the loop, and what one raises in a task of its own may come out of it here.
                try:
                    self._events.run_forever()
                except BaseException as error:
                    end_copy(self._pid, error)

    def _begin(self) -> None:
        end_copy(self._pid)
        self._called = False
        self._slice_end = monotonic() + SLICE_SECONDS
        for _ in range(min(self._concurrency - self._busy, len(self._inbox))):
            self._busy += 1
            self._events.create_task(self._serve()).add_done_callback(self._end)

    def _end(self, _: asyncio.Task[None]) -> None:
        """Have the next begin. Also a task that another has cancelled before it began comes here."""
        self._busy -= 1
        if self._inbox:
            self._begin()

    async def _serve(self) -> None:
        """Run jobs one after the other, until one has waited."""
        task = asyncio.current_task()
        over = False
        while not over and (job := self._take()) is not None:
            attempt = Attempt(job)
            self._running[attempt] = task
            waited = await self._run(attempt)
            # Who has cancelled the task that he is in, and has not waited since, has it ahead of him.
            over = waited or attempt.began > self._slice_end or bool(task and task.cancelling())

    async def _run(self, attempt: Attempt) -> bool:
        """Run one and say whether it waited."""
        attempt.arm(partial(self._call, self._cancel, attempt))
        result, waited = await self._drive(attempt, copy_context())
        end_copy(self._pid)
        del self._running[attempt]
        if attempt.finish():
            self._reports.add(attempt, result)
        elif attempt.tell():
            self._reports.add(attempt, time_out(self._timeout, result.trace if isinstance(result, Failed) else ""))
        return waited

    @coroutine
    def _drive(self, attempt: Attempt, context: Context) -> Generator[Any, None, tuple[Result, bool]]:
        """Let the handler go step by step in its own context, and hand on what it waits for."""
        self._step = attempt, attempt.began
        came = context.run(call_handler, self._handler, attempt.job.message)
        if isinstance(came, Result):
            self._step = None
            return came, False
        awaited, waited = finish(came), False
        step: Callable[[], Any] = partial(awaited.send, None)
        while True:
            try:
                waits_for = context.run(step)
            except StopIteration as end:
                return end.value, waited
            finally:
                self._step = None
            waited = True
            try:
                yield waits_for
            except BaseException as error:  # cancelled, most likely; it is the handler's to know
                step = partial(awaited.throw, error)
            else:
                step = partial(awaited.send, None)
            self._step = attempt, monotonic()

    def _cancel(self, attempt: Attempt) -> None:
        task = self._running.get(attempt)
        if task is not None:
            task.cancel()
            self._events.call_later(AGAIN_SECONDS, self._cancel, attempt)

    # What may happen in any thread.

    def _take(self) -> Job | None:
        try:
            return self._inbox.popleft()
        except IndexError:
            return None

    def _call(self, call: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the event loop is closed
            self._events.call_soon_threadsafe(call, *args)

    def _blocker(self) -> Attempt | None:
        step = self._step
        return step[0] if step is not None and monotonic() - step[1] > BLOCKED_SECONDS else None

    def _is_stuck(self, attempt: Attempt) -> bool:
        """While another blocks the event loop, this one could not have ended; nor will it, if that goes on and on."""
        blocker = self._blocker()
        if blocker is None or blocker is attempt:
            return True
        gave_up, since = self._gave_up or (None, 0.0)
        return blocker is gave_up and monotonic() - since > attempts.GRACE_SECONDS

    def _give_up(self, attempt: Attempt) -> None:
        blocker = self._blocker()
        if blocker not in (None, attempt):
            self._reports.add(attempt, _BLOCKED)
            return
        where = ""
        problem = "does not end though its time is over and it was cancelled"
        if blocker is attempt:
            self._gave_up = attempt, monotonic()
            where = attempt.find_itself(below=AsyncRunner._drive.__code__)
            problem = "blocks the event loop"
        reason = f"the handler {self._handler.name} {problem}, so this process must be replaced"
        advice = "let it await, or use mode Process, which is safe from that"
        self._reports.give_up(attempt, time_out(self._timeout, where), f"{reason}; {advice}")
