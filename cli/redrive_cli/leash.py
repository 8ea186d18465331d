"""Holds one program on a leash: whatever becomes of us, nothing of it stays behind.

`python leash.py PATIENCE FOLDER COMMAND…` runs the command, and ends as it ended (as shells say it: 128 and the number
of the signal). Its standard input is the leash: a pipe whose other end only its starter holds. `t` in it sends SIGTERM,
`k` ends everything at once, and its end means that the starter is gone, however it ended: then the command has PATIENCE
seconds to finish, and FOLDER is removed. A pipe cannot be forgotten: the kernel closes it also for a starter that was
killed.

The rule the code does not show: on Linux, orphans of the command come to us (a subreaper), so that also those are found
that left its process group, as a daemon does; and if we are killed ourselves, the kernel sends SIGTERM to the command.
Elsewhere the process group is all that is ended. This file is run alone, isolated from any path: it may import nothing
but the standard library.
"""

import ctypes
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

TERMINATE, KILL = b"t", b"k"
# Of a program that was told a second time to end; a worker then ends at once.
SHORT_PATIENCE = 2.0
SWEEP_SECONDS = 5.0

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(patience: str, folder: str, *command: str) -> int:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    leash = Leash(_start(command), float(patience))
    status = leash.hold()
    _sweep(leash.child)
    if leash.abandoned:
        _remove(Path(folder))
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


class Leash:
    """One child, and how far its ending has come."""

    def __init__(self, child: int, patience: float) -> None:
        self.child = child
        self.abandoned = False
        self._patience = patience
        self._ending: Iterator[float] = iter(())
        self._next_step: float | None = None
        self._wake = _wake_by_signals(self._forward)

    def hold(self) -> int:
        """Wait until the child has ended, and return its status."""
        while True:
            status = self._reap()
            if status is not None:
                return status
            watched = [self._wake] if self.abandoned else [self._wake, sys.stdin.fileno()]
            ready = select.select(watched, [], [], self._seconds_left())[0]
            if self._wake in ready:
                os.read(self._wake, 512)
            elif ready:
                self._obey(os.read(ready[0], 512))
            elif self._next_step is not None:
                self._take_step()

    def _obey(self, words: bytes) -> None:
        if not words:
            self.abandoned = True
            self._ending = self._end()
            self._take_step()
        elif KILL in words:
            self._signal(signal.SIGKILL)
        elif TERMINATE in words:
            self._signal(signal.SIGTERM)

    def _end(self) -> Iterator[float]:
        """Do one step after the other; what it yields is how long to wait for the next."""
        if self._patience:
            self._signal(signal.SIGTERM)
            yield self._patience
            self._signal(signal.SIGTERM)
            yield SHORT_PATIENCE
        self._signal(signal.SIGKILL)

    def _take_step(self) -> None:
        pause = next(self._ending, None)
        self._next_step = None if pause is None else time.monotonic() + pause

    def _seconds_left(self) -> float | None:
        return None if self._next_step is None else max(0.0, self._next_step - time.monotonic())

    def _reap(self) -> int | None:
        """Take note of all that have ended, also of orphans that came to us."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self.child:
                    return status
                if pid == 0:
                    break
        return None

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        self._signal(signal.Signals(number))

    def _signal(self, how: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.child, how)


def _start(command: Sequence[str]) -> int:
    """Start it as the leader of a group of its own. A plain fork will do: there is one thread here."""
    us = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != us:
            os._exit(1)
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(command[0], [*command])  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"error: {command[0]} cannot be started: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _wake_by_signals(forward: Callable[[int, FrameType | None], None]) -> int:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler the wake-up would not be written
    for one in _FORWARDED:
        signal.signal(one, forward)
    return reading


def _sweep(group: int) -> None:
    """End what the command left behind, and wait for it. What is ended hands its own children over to us."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    deadline = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < deadline:
        for pid in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.01)


def _children() -> list[int]:
    us = os.getpid()
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{us}/task/{us}/children").read_text().split()]
    return []


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # the last of several takes the folder around them, too
        folder.parent.rmdir()


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
