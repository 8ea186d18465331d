"""A child: runs one message after the other, and answers each.

It is ended by the worker in two ways. SIGKILL needs no help from here. SIGTERM says that the time of a message is over:
it raises in the main thread, wherever the handler is, so that its `finally` blocks run and the trace says where it was.
The signal may come late, when that message is over and another runs, so it counts only if the worker has laid down
beforehand that it is the running message it means.
"""

import atexit
import logging
import os
import signal
import time
import weakref
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import NoReturn

from redrive.handler import Awaiting, Handler, flush_streams, run_handler
from redrive.outcome import Failed, Result
from redrive.runners.attempts import time_out
from redrive.runners.channel import LARGEST_REST, UNTAKEN, Inbox, LostFileError
from redrive.runners.lineage import die_with
from redrive.runners.parcel import pack_result, unpack_message
from redrive.runners.verdicts import CUT_OFF, NO_FILES
from redrive.runners.whereabouts import describe_work


class TimeIsUp(BaseException):
    """Raised in a handler whose time is over. Not an Exception, so that no handler catches it by accident."""


def live(descriptors: list[int], handler: Handler, *, timeout: timedelta, zygote: int) -> None:
    """Be a child, of the zygote with this pid, until there is leave to go."""
    die_with(zygote)
    _disown_exit_hooks()
    os.setsid()  # a group of its own, which is killed with it
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # if the kernel must kill, rather this than the worker
    desk = Desk(Inbox(descriptors), handler, timeout)
    signal.signal(signal.SIGTERM, desk.interrupt)
    desk.serve()


class Desk:
    """Where the messages are handled."""

    def __init__(self, inbox: Inbox, handler: Handler, timeout: timedelta) -> None:
        self._inbox = inbox
        self._handler = handler
        self._awaiting = Awaiting()
        self._timeout = timeout
        self._pid = os.getpid()
        # The number of the job whose handler runs. An interruption raises only while there is one, and takes it away:
        # it raises once, and never in what is done around a handler.
        self._running: int | None = None
        self._stack = ""  # where the handler was when it was interrupted

    def serve(self) -> None:
        """Run what comes until there is leave to go."""
        try:
            while order := self._inbox.receive():
                number, head, body = order
                begun = time.perf_counter()
                result = self._run(number, head, body)
                if os.getpid() != self._pid:
                    os._exit(0)  # a fork, past `end_copy`: this is not the process that was asked
                signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm that is left would end the next message
                self._answer(number, time.perf_counter() - begun, result)
        except LostFileError as lost:
            self._refuse(lost.number)
        except OSError:
            os._exit(CUT_OFF)
        self._awaiting.close()

    def interrupt(self, _number: int, frame: FrameType | None) -> None:
        """Handle SIGTERM, in the middle of anything."""
        number = self._running
        if number is not None and self._inbox.is_condemned(number):
            self._running = None
            self._stack = describe_work(frame, below=Desk._call.__code__)
            raise TimeIsUp

    def _run(self, number: int, head: bytes, body: bytes) -> Result:
        self._stack = ""
        try:
            result = self._call(number, head, body)
        except TimeIsUp:  # past the handler, which was just done
            pass
        else:
            if not self._stack:
                return result
        # Who swallowed the interruption and went on has not done all of its work, whatever it returned.
        return time_out(self._timeout, self._stack)

    def _call(self, number: int, head: bytes, body: bytes) -> Result:
        try:
            message = unpack_message(head, body)
            self._running = number
            return run_handler(self._handler, message, self._awaiting)
        finally:
            self._running = None

    def _refuse(self, number: int) -> NoReturn:
        """Say that this job has not begun, and go: who follows has fewer open files."""
        with suppress(OSError):
            self._inbox.answer(number, 0.0, UNTAKEN)
            self._inbox.tell()
        flush_streams()
        os._exit(NO_FILES)

    def _answer(self, number: int, seconds: float, result: Result) -> None:
        kind, rest = pack_result(result)
        if len(rest) > LARGEST_REST:
            kind, rest = pack_result(Failed("it failed, and what came of it is too large to be told"))
        self._inbox.answer(number, seconds, kind, rest)


def _disown_exit_hooks() -> None:
    """Have nothing done at the exit of this child that the import asked for: all children share what that would undo.

    Whatever is registered from here on is this child's own.
    """
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        finalizer.atexit = False
    atexit._clear()
    # It is registered with the first finalizer of a process, and that was before the fork.
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    atexit.register(logging.shutdown)  # it writes what a child's own messages have left in buffers
