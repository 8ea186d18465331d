"""Mode Thread: a handler runs in a thread of this process, beside others.

When its time is over, an exception is raised in its thread: the only way to end a function from outside, and one that
works while Python code runs, not while a system call blocks. Then only the end of the process helps. An `async def`
handler has an event loop in each thread, and is cancelled there.
"""

import asyncio
import ctypes
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import Context, copy_context
from datetime import timedelta
from functools import partial
from threading import get_ident

from redrive.handler import Awaiting, Handler, call_handler
from redrive.outcome import Failed, Result
from redrive.raised import trace_of
from redrive.runners.attempts import Attempt, time_out
from redrive.runners.slots import Run, SlotRunner
from redrive.runtime.ports import Loop

_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc


class Overdue(BaseException):
    """Raised in a handler whose time is over. Not an Exception: few mean to catch this when they catch all of those."""


class ThreadRunner(SlotRunner):
    """Calls a Python handler in a thread."""

    def __init__(self, handler: Handler, *, concurrency: int, timeout: timedelta, loop: Loop) -> None:
        super().__init__(concurrency=concurrency, timeout=timeout, loop=loop)
        self._handler = handler

    @property
    def stuck(self) -> str:
        return (
            f"the handler {self._handler.name} does not end though its time is over, because it waits outside of "
            f"Python or catches what should end it, so this process must be replaced; mode Process is safe from that"
        )

    @contextmanager
    def equip(self) -> Iterator[Run]:
        with closing(Awaiting()) as awaiting:
            yield partial(self._run, awaiting, partial(_interrupt, get_ident()))

    def _run(self, awaiting: Awaiting, interrupt: partial[None], attempt: Attempt) -> Result:
        context = copy_context()
        try:
            attempt.arm(interrupt)
            came = context.run(call_handler, self._handler, attempt.job.message)
            if attempt.finish():
                return came if isinstance(came, Result) else self._await(awaiting, came, context, attempt)
            _forget_interrupt()
            if isinstance(came, Coroutine):
                came.close()
        except Overdue as overdue:
            # It was raised and cannot come again. Until here it may come at any step, also in our own code.
            return time_out(self.timeout, trace_of(overdue))
        return time_out(self.timeout, came.trace if isinstance(came, Failed) else "")

    def _await(self, awaiting: Awaiting, awaitable: Awaitable[object], context: Context, attempt: Attempt) -> Result:
        waiting = _Cancellable(awaitable)
        attempt.arm(waiting.cancel)
        result = awaiting.run(waiting.wait(), context)
        if attempt.finish():
            return result
        return time_out(self.timeout, result.trace if isinstance(result, Failed) else "")


class _Cancellable:
    """Something awaited that the loop's thread can cancel, also before it has begun."""

    def __init__(self, awaitable: Awaitable[object]) -> None:
        self._awaitable = awaitable
        self._wake: Callable[[], object] | None = None
        self._cancelled = False

    async def wait(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - this is a coroutine, and runs in one
        self._wake = partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel)
        # In this order on both sides, so that one of them sees what the other did.
        if self._cancelled:
            task.cancel()
        await self._awaitable

    def cancel(self) -> None:
        self._cancelled = True
        if self._wake is not None:
            with suppress(RuntimeError):  # the event loop has just been closed
                self._wake()


def _interrupt(thread: int) -> None:
    _raise_in_thread(ctypes.c_ulong(thread), ctypes.py_object(Overdue))


def _forget_interrupt() -> None:
    """Have an exception that was raised in this thread, and may not have come yet, come here, and no later.

    To take it back would do for this thread. But CPython before 3.13 then waits for ever for it to come somewhere:
    every call looks whether it does, and under a profiler or a debugger none gets any further.
    """
    try:
        # In place of one that has not come, if there is one.
        _raise_in_thread(ctypes.c_ulong(get_ident()), ctypes.py_object(Overdue))
        while True:
            pass
    except Overdue:
        pass
