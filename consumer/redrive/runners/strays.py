"""Buries what fell to the worker: processes that a program had started and that have outlived it.

A program may leave somebody in a session of its own, as `git gc --auto` does. When the program is gone, the first
process of the container becomes the parent, and who is not buried by it stays as a zombie, until there is no number
left for a new process.

Nobody's status may be taken away. What falls to a process becomes a child of its first thread, whereas programs are
children of the threads that started them; so only children of the first thread are buried, none that is known to be a
program, and none at the first sight of it. This is for a worker that runs programs and no code of the user's: that
could have started processes from anywhere, and mean to wait for them.
"""

import ctypes
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from redrive.runtime.ports import Loop, Timer

LOOK_SECONDS = 5.0

_FIRST_PROCESS = 1
_PR_GET_CHILD_SUBREAPER = 37


class Strays:
    """Looks for them from time to time, where they fall to us. `programs` are the numbers of those that run."""

    def __init__(self, loop: Loop, programs: Callable[[], Iterable[int]]) -> None:
        self._loop = loop
        self._programs = programs
        self._seen: set[int] = set()
        self._timer: Timer | None = None

    def start(self) -> None:
        if inherits_orphans():
            self._look()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        strays = list_children() - {*self._programs()}
        for pid in strays & self._seen:
            with suppress(ChildProcessError):  # its group was buried meanwhile
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
        self._seen = strays
        self._timer = self._loop.later(LOOK_SECONDS, self._look)


def inherits_orphans() -> bool:
    """Say whether this is the first process of a container, or one that has asked to be treated like it."""
    asked = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(asked), 0, 0, 0)
    return os.getpid() == _FIRST_PROCESS or bool(asked.value)


def list_children() -> set[int]:
    """List the children of the first thread; none where the kernel does not tell."""
    pid = os.getpid()
    try:
        return {int(child) for child in Path(f"/proc/self/task/{pid}/children").read_text().split()}
    except OSError:
        return set()
