"""Runs a handler in place: in the thread of the test, one message at a time, when the loop comes to it.

What the handler raised is a value, as in production, and is kept beside it, so that a test can look at it. But what
was meant for the test itself is not the handler's to fail with, and goes to the test: Ctrl-C, and `pytest.fail()`.
"""

import asyncio
import inspect
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from contextvars import Context
from dataclasses import replace
from threading import Thread
from typing import Any, TypeVar

from redrive.handler import Awaiting, Handler, run_handler
from redrive.message import Message
from redrive.outcome import Failed, Result
from redrive.runners import Ended, Job, Report
from redrive.runtime.ports import Loop

T = TypeVar("T")

# Everything else that is no Exception is not the handler's.
_HANDLERS_OWN = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)


class InlineRunner:
    """Begins the next job when the one before has ended. `raised` has what the last try of each raised."""

    def __init__(self, handler: Handler, loop: Loop) -> None:
        self._loop = loop
        self._watched = _Watched(handler)
        self._awaiting = _Awaiting()
        self._inbox: deque[Job] = deque()
        self._report: Report | None = None
        self._is_running = False
        self.raised: dict[Job, BaseException] = {}
        weakref.finalize(self, self._awaiting.close)  # nobody is told when a test is over

    @property
    def is_running(self) -> bool:
        return self._is_running

    def start(self, report: Report, fail: Callable[[str], None]) -> None:  # noqa: ARG002 - it never has to
        self._report = report

    def submit(self, jobs: Iterable[Job]) -> None:
        self._inbox.extend(jobs)
        self._loop.soon(self._run_next)

    def withdraw(self) -> list[Job]:
        withdrawn = list(self._inbox)
        self._inbox.clear()
        return withdrawn

    def stop(self) -> None:
        self._inbox.clear()
        self._report = None
        if not self._is_running:
            self._awaiting.close()

    def _run_next(self) -> None:
        # A handler that lets time pass has the loop turn while it runs.
        if self._is_running or not self._inbox:
            return
        job = self._inbox.popleft()
        began = self._loop.now()
        result = self._run(job)
        if self._report is None:
            self._awaiting.close()
            return
        self._loop.soon(self._run_next)
        self._report([Ended(job, result, self._loop.now() - began)])

    def _run(self, job: Job) -> Result:
        self._is_running = True
        try:
            result, raised = self._watched.run(job.message, self._awaiting)
        finally:
            self._is_running = False
        self.raised.pop(job, None)
        if raised is not None:
            self.raised[job] = raised
        return result


class _Watched:
    """A handler, and what it raised."""

    def __init__(self, handler: Handler) -> None:
        self._raised: BaseException | None = None
        self._handler = replace(handler, parse=self._watch(handler.parse), function=self._watch(handler.function))

    def run(self, message: Message, awaiting: Awaiting) -> tuple[Result, BaseException | None]:
        self._raised = None
        result = run_handler(self._handler, message, awaiting)
        raised, self._raised = self._raised, None
        if raised is not None and not isinstance(raised, _HANDLERS_OWN):
            raise raised
        if isinstance(result, Failed) and result.error_types[:1] == ("KeyboardInterrupt",):
            raise KeyboardInterrupt  # an event loop tells its task that it is cancelled
        return result, raised

    def _watch(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: object) -> object:
            try:
                returned = call(*given)
            except BaseException as error:
                self._raised = error
                raise
            return self._wait_for(returned) if inspect.isawaitable(returned) else returned

        return watched

    async def _wait_for(self, awaitable: Awaitable[object]) -> None:
        try:
            await awaitable
        except BaseException as error:
            self._raised = error
            raise


class _Awaiting(Awaiting):
    """Awaits in another thread where the test itself is `async`: two event loops cannot run in one."""

    def run(self, awaitable: Awaitable[object], context: Context) -> Result:
        return _beside_any_loop(lambda: Awaiting.run(self, awaitable, context))

    def close(self) -> None:
        if self._runner is not None:
            _beside_any_loop(lambda: Awaiting.close(self))


def _beside_any_loop(call: Callable[[], T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    # No executor, and a daemon: the others share a lock, and the collector may call this while somebody has it.
    answer: Future[T] = Future()
    thread = Thread(target=_answer, args=(answer, call), daemon=True)
    thread.start()
    thread.join()
    return answer.result()


def _answer(answer: Future[T], call: Callable[[], T]) -> None:
    try:
        answer.set_result(call())
    except BaseException as error:
        answer.set_exception(error)
