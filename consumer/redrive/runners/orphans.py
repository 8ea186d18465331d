"""Processes whose parent, the zygote, has died.

The kernel kills the children with the zygote; what they have started is killed here. A worker that is the first process
of its container inherits all of them, and has to bury them; elsewhere the machine's first process does.
"""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress

from redrive.runtime.ports import Loop, Timer

_PAUSE = 0.1  # seconds
_LOOKS = 50
_LAST_LOOKS = 1.0  # seconds


class Orphans:
    """Those who are not gone yet, by the numbers of their groups."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._groups: dict[int, int] = {}  # and how often each is looked at yet
        self._timer: Timer | None = None

    def take(self, pids: Iterable[int]) -> None:
        """Kill these and their groups, and bury what there is of them."""
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            self._groups[pid] = _LOOKS
        self._look()

    def stop(self) -> None:
        """Bury the last of them now; what does not die within a second stays."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        deadline = time.monotonic() + _LAST_LOOKS
        while self._bury() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _look(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.later(_PAUSE, self._look) if self._bury() else None

    def _bury(self) -> bool:
        """Bury who is dead, and say whether there are others."""
        for group, looks in list(self._groups.items()):
            if looks and _is_here(group):
                self._groups[group] = looks - 1
            else:
                del self._groups[group]
        return bool(self._groups)


def _is_here(group: int) -> bool:
    """Bury the dead of a group that are ours, and say whether anybody is left in it."""
    with suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
