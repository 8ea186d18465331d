"""What a process asks of the kernel about its parent and its descendants. Linux only.

A child that outlived its worker would go on with a message that the broker has given to somebody else by then.
"""

import ctypes
import os
import signal
from collections.abc import Collection, Iterable
from contextlib import suppress

from redrive.memory import find_families, list_processes

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_MOST_LOOKS = 8  # for those that were started while others were being stopped

_libc = ctypes.CDLL(None, use_errno=True)


def die_with(parent: int) -> None:
    """Have this process killed when its parent dies: when the thread dies, to be exact, that started this process."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before we asked


def kill_family(pid: int) -> None:
    """Kill a child and all that it has started, in sessions of their own too. Only while it is not yet buried."""
    kill_families([pid])


def kill_families(pids: Iterable[int]) -> None:
    """Kill several at once, which takes no longer than one.

    Who is killed has no children any more: they are another's. So all are stopped first, the heads before those that
    they have started; who is stopped starts nothing, and buries nobody whose number could then be a stranger's.
    While no file can be opened, nobody knows whom they have started: then it is they and their groups.
    """
    heads = {pid for pid in pids if pid > 0}  # 0, not born yet, would be ourselves
    found = set(heads)
    _signal(heads, signal.SIGSTOP)
    for _ in range(_MOST_LOOKS if heads else 0):
        others = find_families(heads, list_processes()).keys() - found
        if not others:
            break
        _signal(others, signal.SIGSTOP)
        found |= others
    _signal(found, signal.SIGKILL)
    for pid in heads:
        kill_group(pid)


def kill_group(pid: int) -> None:
    """Kill what a child that is dead, and not yet buried, has left behind in its group."""
    with suppress(ProcessLookupError, PermissionError):
        if pid > 0:
            os.killpg(pid, signal.SIGKILL)


def kill_descendants() -> bool:
    """Kill all that this process has started, or that fell to it; say whether there may be anybody, dead ones too."""
    processes = list_processes()
    others = find_families([os.getpid()], processes).keys() - {os.getpid()}
    _signal(others, signal.SIGKILL)
    return bool(others) or os.getpid() not in processes


def adopt_orphans() -> None:
    """Have those whose parent dies become children of this process, so that there is somebody to bury them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _signal(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _prctl(option: int, argument: int) -> None:
    if _libc.prctl(option, argument, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
