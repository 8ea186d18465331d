"""One run of a program, in a process group of its own, watched over by the thread that started it.

All is done by that thread, signals too: it alone knows that the program is not yet reaped, and that its number is
therefore still its own. Others ring a bell; where the thread does not hear it, they kill while it is kept from reaping.
The program's group is killed when the program has ended, whatever is left in it; what has left the group, by becoming a
session of its own, cannot be found.
"""

import os
import select
import selectors
import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

# How long a program may take to end after it was asked to.
TERM_SECONDS = 2.0

# Bytes of the end of what it wrote to stderr.
LONGEST_SAID = 8192

# How often to look where the kernel cannot tell of the end of a process.
_LOOK_SECONDS = 0.02

_CHUNK = 65_536
_MOST_CHUNKS = 16  # what a pipe can hold
_MOST_LOOKS = 100  # at those that were killed and are still there, a ms each

_STDERR = 2

# How long whoever reads our own stderr may take to make room, before what a program says is not passed on.
_HEARING_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Exit:
    """How a program ended: its code, or below zero the signal; and the end of what it wrote to stderr."""

    code: int
    said: bytes


class Bell:
    """Wakes a thread that waits for something to read."""

    def __init__(self) -> None:
        self.fd, self._ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def ring(self) -> None:
        with suppress(OSError):  # it is full of rings, or nobody is there any more
            os.write(self._ring, b".")

    def hush(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.fd, _CHUNK)

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._ring)


class Program:
    """A program that is to run once. `end` and `kill` are for any thread, at any time; the rest is for one thread."""

    def __init__(self, bell: Bell) -> None:
        self.pid: int | None = None
        self._bell = bell
        self._reaping = threading.Lock()
        self._end_it = self._at_once = False
        self._kill_at: float | None = None

    def end(self, *, at_once: bool) -> None:
        """Ask it to end, and kill it if it does not soon; or kill it at once."""
        self._at_once |= at_once
        self._end_it = True
        self._bell.ring()

    def kill(self) -> None:
        """Kill it where its own thread does not get to it."""
        if self._reaping.acquire(blocking=False):  # otherwise it is over
            try:
                self._signal(signal.SIGKILL)
            finally:
                self._reaping.release()

    def run(self, args: Sequence[str], environment: Mapping[bytes, bytes], body: bytes) -> Exit:
        """Run it to its end; OSError when it cannot be started."""
        process = subprocess.Popen(
            args,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=_STDERR,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        with process, _exit_watch(process.pid) as exit_watch:
            self.pid = process.pid
            _offer_to_killers(process.pid)
            try:
                said = self._watch(process, body, exit_watch)
            finally:
                # While it is not reaped its number is its own, and so is that of the group.
                self._signal(signal.SIGKILL)
            said.drain()
            with self._reaping:
                self.pid = None
                code = process.wait()
        _bury(process.pid)
        return Exit(code, said.tail)

    def _watch(self, process: subprocess.Popen[bytes], body: bytes, exit_watch: int | None) -> "_Said":
        assert process.stdin is not None  # noqa: S101 - it was asked for
        assert process.stderr is not None  # noqa: S101
        with selectors.PollSelector() as selector:
            feed = _Feed(process.stdin.fileno(), body, lambda: _leave(selector, process.stdin))
            said = _Said(process.stderr.fileno(), lambda: _leave(selector, process.stderr))
            selector.register(process.stdin, selectors.EVENT_WRITE, feed.write)
            selector.register(process.stderr, selectors.EVENT_READ, said.read)
            selector.register(self._bell.fd, selectors.EVENT_READ, self._bell.hush)
            if exit_watch is not None:
                selector.register(exit_watch, selectors.EVENT_READ, lambda: None)
            while not _is_over(process.pid):
                self._press()
                for key, _ in selector.select(self._patience(exit_watch)):
                    key.data()
        return said

    def _press(self) -> None:
        """Send the signals that are due."""
        if self._at_once or (self._kill_at is not None and monotonic() >= self._kill_at):
            self._signal(signal.SIGKILL)
        elif self._end_it and self._kill_at is None:
            self._kill_at = monotonic() + TERM_SECONDS
            self._signal(signal.SIGTERM)

    def _patience(self, exit_watch: int | None) -> float | None:
        if exit_watch is None or self._at_once:
            return _LOOK_SECONDS
        return None if self._kill_at is None else max(_LOOK_SECONDS, self._kill_at - monotonic())

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):  # it has none left, or became somebody else's
                os.killpg(self.pid, number)


class _Feed:
    """The body on its way into a program, which may never read it, or close its ears."""

    def __init__(self, fd: int, body: bytes, done: Callable[[], None]) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._left = memoryview(body)
        self._done = done

    def write(self) -> None:
        try:
            if self._left:
                self._left = self._left[os.write(self._fd, self._left[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self._left = self._left[:0]
        if not self._left:
            self._done()


class _Said:
    """What a program writes to stderr: passed on to our own as it comes, if that is read, and the end of it kept."""

    def __init__(self, fd: int, done: Callable[[], None]) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._done = done
        self._open = True
        self._patience = _HEARING_SECONDS
        self.tail = b""

    def read(self) -> bool:
        """Take what is there; False when there is nothing, or never will be."""
        try:
            chunk = os.read(self._fd, _CHUNK) if self._open else b""
        except BlockingIOError:
            return False
        if not chunk and self._open:
            self._open = False
            self._done()
        self.tail = (self.tail + chunk)[-LONGEST_SAID:]
        # Who does not read is waited for once, and then not until he reads again.
        self._patience = _HEARING_SECONDS if _pass_on(chunk, self._patience) else 0.0
        return self._open

    def drain(self) -> None:
        """Take what is left, and no more: whoever has left the program's group may go on writing."""
        for _ in range(_MOST_CHUNKS):
            if not self.read():
                return


def _pass_on(said: bytes, patience: float) -> bool:
    """Write to our own stderr, as long as it takes something within so many seconds; say whether it took all.

    The thread that does this has the time of a program to keep, so it must never wait for who reads there. A pipe that
    can be written to takes PIPE_BUF bytes, in one piece, and pieces end with lines where they can.
    """
    with suppress(OSError), _unblocking(_STDERR) as fd:
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        while said and poll.poll(patience * 1000):
            piece = said[: said.rfind(b"\n", 0, select.PIPE_BUF) + 1 or select.PIPE_BUF]
            said = said[os.write(fd, piece) :]
    return not said


@contextmanager
def _unblocking(fd: int) -> Iterator[int]:
    """Give a pipe anew, so that no write to it waits, also when others fill it at the same moment.

    The flag that says so is shared by all who have the pipe, programs too, unless it is opened again. Where that cannot
    be, and for what is no pipe, the descriptor itself is given.
    """
    own = None
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        with suppress(OSError):  # it is another user's
            own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield fd if own is None else own
    finally:
        if own is not None:
            os.close(own)


def _leave(selector: selectors.BaseSelector, file: object) -> None:
    with suppress(KeyError, ValueError, RuntimeError):  # the selector is closed already
        selector.unregister(file)  # type: ignore[arg-type]
    file.close()  # type: ignore[attr-defined]


@contextmanager
def _exit_watch(pid: int) -> Iterator[int | None]:
    """Give what can be read when the process has ended; None where there is no such thing."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def _is_over(pid: int) -> bool:
    """Say whether it has ended, and leave it unreaped."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _offer_to_killers(pid: int) -> None:
    """If the kernel must kill for memory, rather this than the worker."""
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def _bury(group: int) -> None:
    """Reap what was left of a group, where it is ours to reap: the first process of a container inherits it."""
    for _ in range(_MOST_LOOKS):
        try:
            reaped, _ = os.waitpid(-group, os.WNOHANG)
        except ChildProcessError:
            return
        if not reaped:
            sleep(0.001)
