"""Background programs that outlive the command that started them.

Each leaves a record in the state folder (`<name>.json`: pid, the kernel's start time of that pid, and of which boot).
A pid alone is not enough: after a reboot or a wrap-around it may be somebody else's, and the test bed ends only what
it started.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from redrive_testbed.errors import NotReady
from redrive_testbed.files import write_whole
from redrive_testbed.shell import environment, tail

# Held until they have ended: a dropped Popen warns that its program still runs, which is the purpose here.
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Process:
    """A started program, known by its pid and the moment that pid was born."""

    name: str
    pid: int
    born: int
    log: Path

    def alive(self) -> bool:
        return _birth(self.pid) == self.born


class Processes:
    """The background programs of one state folder."""

    def __init__(self, state: Path) -> None:
        self._records = state / "processes"
        self._logs = state / "logs"

    def start(
        self, name: str, command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Process:
        """Start a program in a session of its own, unless it runs already."""
        running = self.find(name)
        if running is not None:
            return running
        self._records.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"{name}.log"
        with log.open("ab") as output:
            child = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environment(), **(env or {})},
                cwd=cwd,
                start_new_session=True,
            )
        _CHILDREN[child.pid] = child
        process = Process(name, child.pid, _birth(child.pid) or 0, log)
        try:
            write_whole(self._record(name), json.dumps({"pid": process.pid, "born": process.born, "boot": _boot()}))
        except OSError:
            child.kill()  # nobody could find it again
            raise
        return process

    def find(self, name: str) -> Process | None:
        """Return the running program of that name, if it is still the one that was started."""
        try:
            record = json.loads(self._record(name).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        process = Process(name, record["pid"], record["born"], self._logs / f"{name}.log")
        return process if record["boot"] == _boot() and process.alive() else None

    def names(self) -> list[str]:
        return sorted(record.stem for record in self._records.glob("*.json"))

    def stop(self, name: str, *, patience: float = 20) -> None:
        """End a program: politely, then by force; its record goes too."""
        process = self.find(name)
        if process is not None:
            _end(process, signal.SIGTERM)
            if not _gone(process, within=patience):
                _end(process, signal.SIGKILL)
                if not _gone(process, within=patience):
                    raise NotReady(f"{name} (pid {process.pid}) does not end, even with SIGKILL,")
        self._record(name).unlink(missing_ok=True)
        _reap()

    def kill(self, name: str) -> None:
        """End a program at once, as a power cut would."""
        process = self.find(name)
        if process is not None:
            _end(process, signal.SIGKILL)
            _gone(process, within=20)
        self._record(name).unlink(missing_ok=True)
        _reap()

    def must_live(self, name: str) -> None:
        """Fail with the tail of its log when a program has ended by itself."""
        if self.find(name) is None:
            log = self._logs / f"{name}.log"
            said = tail(log.read_text(errors="replace")) if log.exists() else "(it printed nothing)"
            raise NotReady(f"{name} ended by itself; the end of {log}:\n{said}\nIt was not running")

    def _record(self, name: str) -> Path:
        return self._records / f"{name}.json"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _birth(pid: int) -> int | None:
    """The start time of a pid in clock ticks since boot; None when there is no such process or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def _end(process: Process, how: signal.Signals) -> None:
    try:
        os.kill(process.pid, how)
    except ProcessLookupError:
        return


def _gone(process: Process, *, within: float) -> bool:
    deadline = time.monotonic() + within
    while process.alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _reap() -> None:
    """Take note of the children that have ended, so that none stays a zombie."""
    for pid, child in list(_CHILDREN.items()):
        if child.poll() is not None:
            del _CHILDREN[pid]
