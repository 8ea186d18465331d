"""Programs in another root file system, sealed off so that nothing of them can stay behind.

Each runs in a mount namespace, so this machine never sees its mounts and they end with it, and in a pid namespace,
whose first process takes every other with it when it ends, daemons too. Several may share one root file system: each
has its own home folder, mounted over the home of its user inside.
"""

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from redrive_testbed.errors import NotReady
from redrive_testbed.processes import Process, Processes
from redrive_testbed.say import say
from redrive_testbed.shell import wait_until

TOOLS = ("unshare", "setpriv", "chroot", "mount")

_FIRST_PROCESS = Path(__file__).with_name("sealed.sh")


@dataclass(frozen=True)
class Seal:
    """Where sealed programs run: a root file system, a user in it, and the folder that is this user's home."""

    root: Path
    user: str
    home: Path

    def command(self, *words: str | Path, env: Mapping[str, str], leashed: bool = False) -> list[str | Path]:
        """Return the command that runs `words` inside; a leashed one is killed when its starter ends."""
        leash = ("setpriv", "--pdeathsig", "KILL") if leashed else ()
        unshare = ("unshare", "--mount", "--propagation", "private", "--pid", "--kill-child")
        # Nothing of this machine's environment goes in: it speaks of another file system.
        inside = ("env", "-i", *(f"{name}={value}" for name, value in env.items()), *words)
        return [*leash, *unshare, "sh", _FIRST_PROCESS, self.root, self.home, self.user, *inside]

    def own(self, *paths: Path) -> None:
        """Give files below the home folder to the user inside."""
        uid, gid = find_ids((self.root / "etc/passwd").read_text(), self.user)
        for path in paths:
            os.chown(path, uid, gid)


def find_ids(passwd: str, user: str) -> tuple[int, int]:
    """Find the numbers of a user and its group in the text of an /etc/passwd: they differ from this machine's."""
    [fields] = [line.split(":") for line in passwd.splitlines() if line.startswith(f"{user}:")]
    return int(fields[2]), int(fields[3])


def end(processes: Processes, name: str, *, patience: float) -> None:
    """End a sealed program politely, by force when its patience is over."""
    process = processes.find(name)
    if process is not None:
        _signal_inside(process, signal.SIGTERM)
        try:
            _await_end(process, within=patience)
        except NotReady as error:
            say(f"{error}; it is ended by force")
    kill(processes, name)


def kill(processes: Processes, name: str) -> None:
    """End a sealed program and everything inside at once, as a power cut would."""
    process = processes.find(name)
    if process is not None:
        _signal_inside(process, signal.SIGKILL)
        _await_end(process, within=20)
    processes.kill(name)


def pids_inside(process: Process) -> list[int]:
    """List every process that a sealed program consists of, by the pids that this machine knows them by."""
    first = _first_inside(process)
    return [] if first is None else [pid for pid in _all_pids() if _namespace(pid) == _namespace(first)]


def _signal_inside(process: Process, how: signal.Signals) -> None:
    # `unshare` itself passes no signal on.
    first = _first_inside(process)
    if first is not None:
        with suppress(ProcessLookupError):
            os.kill(first, how)


def _first_inside(process: Process) -> int | None:
    """Find the first process inside: the one child of `unshare`."""
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(children[0]) if children else None


def _all_pids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal()]


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return f"none: {pid} has ended or is not ours to see"


def _await_end(process: Process, *, within: float) -> None:
    # `unshare` reaps the first process inside, which the kernel lets end last: when it is gone, all are.
    wait_until(f"{process.name} still runs", lambda: not process.alive(), within=within, every=0.05)
