"""The process that has imported the handler, and forks a child whenever the worker asks for one.

The worker itself has threads and connections, and must not fork. This one has nothing: it imports once, for all, and
what it has imported is shared by all children. It talks with the worker in short messages of JSON, one a datagram:

    from the worker:    ["fork", seat] with three descriptors, ["bury", pid], ["end"]
    to the worker:      ["ready", takes_message] or ["failed", why], then
                        ["born", seat, pid], ["unborn", seat, why], ["died", seat, status], ["buried", pid]

Every order but the last has an answer, so that the worker notices when there is nobody to give one.

A child that has died stays a zombie until the worker says that it has no more use for its number: so the worker can
kill it, and what it has started, at any time, and never hits a stranger. Deaths are therefore told one after the other.
"""

import atexit
import gc
import io
import json
import os
import select
import signal
import socket
import sys
import time
import warnings
from contextlib import suppress
from datetime import timedelta
from typing import Any

from redrive.handler import Handler, HandlerError, flush_streams, load_handler
from redrive.runners.channel import read_descriptors
from redrive.runners.child import live
from redrive.runners.lineage import adopt_orphans, die_with, kill_descendants, kill_group

LONGEST_ORDER = 65_536  # bytes
_LONGEST_REASON = 4096  # characters

# As it is before a handler's module may have put another in its place, which waits in its own way.
_poll = select.poll

_DESCRIPTORS = 3  # of a channel's far end
_SPACE = socket.CMSG_SPACE(4 * _DESCRIPTORS)
_HEAR = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC

GRACE_AT_END = 1.0  # seconds for children to leave by themselves, with what they do at exit
_TIME_TO_DIE = 1.0  # seconds for a killed one to be gone; longer takes one that hangs in the kernel


def main(control: int, worker: int, handler: str, seconds: float) -> None:
    """Be the zygote, or one of its children, until the end."""
    die_with(worker)
    for number in (signal.SIGINT, signal.SIGTERM):
        # They are the worker's, which decides when to end. A function, because what is ignored would be ignored by
        # the programs, too, that a handler starts.
        signal.signal(number, _nothing)
    _write_by_line()
    zygote = Zygote(socket.socket(fileno=control))
    loaded = zygote.load(handler)
    channel = zygote.run() if loaded else None
    if loaded and channel is not None:
        live(channel, loaded, timeout=timedelta(seconds=seconds), zygote=zygote.pid)
        return  # a child leaves as every program does, with what the handler has registered to be done at exit
    if os.getpid() == zygote.pid:  # else the import has forked, and this is the other one
        zygote.end()
        with suppress(BaseException):
            atexit._run_exitfuncs()  # those of the import, once for all
    flush_streams()
    os._exit(0)


class Zygote:
    """Forks, and tells of births and deaths."""

    def __init__(self, control: socket.socket) -> None:
        self.pid = os.getpid()
        self._control = control
        self._children: dict[int, int] = {}  # pid to seat
        self._unburied = 0
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # The connection is to be closed when this process is dead, whoever else was started by the import.
        control.set_inheritable(False)
        os.register_at_fork(after_in_child=control.close)
        adopt_orphans()

    def load(self, name: str) -> Handler | None:
        try:
            handler = load_handler(name)
        except HandlerError as error:
            self._tell("failed", str(error)[:_LONGEST_REASON])
            return None
        signal.signal(signal.SIGCHLD, _nothing)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        gc.collect()
        gc.freeze()  # collecting garbage in a child must not touch, and so copy, what is shared
        self._tell("ready", handler.takes_message)
        return handler

    def run(self) -> list[int] | None:
        """Do as told until the end; in a child, return the descriptors that it is to talk by."""
        poll = _poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            poll.poll()
            self._look()
            order, descriptors = self._hear()
            match order:
                case ["fork", int(seat)]:
                    if self._fork(seat, descriptors):
                        return descriptors
                case ["bury", int(pid)]:
                    self._bury(pid)
                case ["end"]:
                    return None

    def _hear(self) -> tuple[Any, list[int]]:
        try:  # socket.recv_fds would do, if it did not ignore its flags
            data, attached, _, _ = self._control.recvmsg(LONGEST_ORDER, _SPACE, _HEAR)
        except BlockingIOError:
            return None, []
        except ConnectionError:
            data, attached = b"", []  # the worker has died with news from us unread
        return json.loads(data or b'["end"]'), read_descriptors(attached)

    def _fork(self, seat: int, descriptors: list[int]) -> bool:
        """Fork, and say whether this is the child."""
        if len(descriptors) < _DESCRIPTORS:
            _close(descriptors)
            self._tell("unborn", seat, "the process that has imported the handler may have no more open files")
            return False
        flush_streams()  # what is in the buffers would be written by every child once more
        try:
            pid = _fork_quietly()
        except OSError as error:
            self._tell("unborn", seat, str(error))
            _close(descriptors)
            return False
        if pid == 0:
            self._be_nobody()
            return True
        self._children[pid] = seat
        _close(descriptors)
        self._tell("born", seat, pid)
        return False

    def _be_nobody(self) -> None:
        """Forget, in a child, that this was the zygote."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (self._woken, self._wake):
            os.close(descriptor)

    def _look(self) -> None:
        """Find the next of our dead and tell of it; bury the orphans that fell to us."""
        with suppress(BlockingIOError):
            os.read(self._woken, 65_536)
        while not self._unburied and (found := _find_dead()):
            seat = self._children.get(found.si_pid)
            if seat is None:
                os.waitpid(found.si_pid, 0)
                continue
            self._unburied = found.si_pid
            self._tell("died", seat, found.si_status if found.si_code == os.CLD_EXITED else -found.si_status)

    def _bury(self, pid: int) -> None:
        self._children.pop(pid, None)
        os.waitpid(pid, 0)
        self._unburied = 0
        self._tell("buried", pid)
        self._look()

    def end(self) -> None:
        """Let the children leave, and kill whoever is left, of what they and the import have started too."""
        self._wait_for_children(GRACE_AT_END)
        deadline = time.monotonic() + _TIME_TO_DIE
        while kill_descendants() and time.monotonic() < deadline:
            _bury_all()
            time.sleep(0.005)

    def _wait_for_children(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._children and time.monotonic() < deadline:
            for pid in [pid for pid in self._children if _is_dead(pid)]:
                kill_group(pid)
                os.waitpid(pid, 0)
                del self._children[pid]
            time.sleep(0.005 if self._children else 0)

    def _tell(self, *news: object) -> None:
        with suppress(OSError):  # the worker is gone, and we go with it
            self._control.send(json.dumps(news).encode())


def _fork_quietly() -> int:
    """Fork. That a module which the handler imports has started threads is its author's risk, and is documented."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _find_dead() -> os.waitid_result | None:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None


def _bury_all() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _is_dead(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _write_by_line() -> None:
    """What a handler prints is seen at once, and is not lost with a child that is killed."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def _nothing(*_: object) -> None:
    pass
