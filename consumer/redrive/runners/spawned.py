"""A zygote as the worker holds it: its process, and the connection to it.

That the connection is closed does not tell of its death: the connection may be held by what the import has started.
"""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from redrive.runners.lineage import kill_family
from redrive.runners.verdicts import describe_exit
from redrive.runners.zygote import GRACE_AT_END, LONGEST_ORDER

# Not `-m`, which would look for modules in the working folder before all others. The path is the worker's own, so that
# a handler is found where the worker itself would find it.
_PROGRAM = (
    "import json, sys; control, worker, handler, seconds, path = json.loads(sys.argv[1]); sys.path[:] = path; "
    "from redrive.runners.zygote import main; main(control, worker, handler, seconds)"
)

_TIME_TO_DIE = 1.0  # seconds


class Spawned:
    """A fresh interpreter that imports the handler. News from it are lists; ["lost", how] is the last.

    `death` can be read when it is dead; None where the kernel cannot tell.
    """

    def __init__(self, handler: str, timeout: timedelta) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setblocking(False)
        path = [str(entry) for entry in sys.path]
        facts = json.dumps([theirs.fileno(), os.getpid(), handler, timeout.total_seconds(), path])
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, facts], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        except OSError:
            self.control.close()
            raise
        finally:
            theirs.close()
        self.death = _watch_death(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def descriptors(self) -> list[int]:
        """What can be read when there are news."""
        return [self.control.fileno()] + ([] if self.death is None else [self.death])

    def wait(self, seconds: float) -> list[Any]:
        """Wait for news, for so long; if there are none, say so as if it were lost."""
        poll = select.poll()
        for descriptor in self.descriptors:
            poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)
        return self.hear() or self.mourn() or ["lost", f"took longer than {seconds:g} s"]

    def hear(self) -> list[Any] | None:
        try:
            data = self.control.recv(LONGEST_ORDER)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        return _read_news(data) or ["lost", self._how()]

    def mourn(self) -> list[Any] | None:
        """If it is dead, give the last that it said, and then that it is lost."""
        if self._process.poll() is None:
            return None
        return self.hear() or ["lost", self._how()]

    def tell(self, *order: object, give: Sequence[int] = ()) -> bool:
        """Order something, and say whether it could be sent. That the zygote is gone is news, and comes as such."""
        try:
            socket.send_fds(self.control, [json.dumps(order).encode()], give)
        except OSError:
            return False
        return True

    def end(self) -> bool:
        """Let it see its children off, and wait for that; say whether it did."""
        self.tell("end")
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_AT_END + 2 * _TIME_TO_DIE)
        orderly = self._process.returncode == 0
        self.kill()
        return orderly

    def kill(self) -> None:
        """Kill it, if it lives, with all that it has started."""
        self.control.close()
        if self.death is not None:
            os.close(self.death)
            self.death = None
        if self._process.poll() is None:
            kill_family(self.pid)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_TIME_TO_DIE)

    def _how(self) -> str:
        """Say how it ended. Its connection closes a moment before it is dead."""
        try:
            return describe_exit(self._process.wait(_TIME_TO_DIE))
        except subprocess.TimeoutExpired:
            return "closed its connection to the worker"


def _watch_death(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:  # it is forbidden here, or the kernel is too old
        return None


def _read_news(data: bytes) -> list[Any] | None:
    """Read what the zygote said; None when it said nothing, or when somebody else in its process wrote nonsense."""
    try:
        news = json.loads(data)
    except ValueError:
        return None
    return news if isinstance(news, list) else None
