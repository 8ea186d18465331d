"""`redrive dev` as a process: what it shows, and everything that it has started, by a mark in the environment."""

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

from redrive_testbed.shell import wait_until

MARK = "REDRIVE_TEST_MARK"
COMMAND = (sys.executable, "-m", "redrive_cli", "dev")


class Dev:
    """One run of it. All that it starts inherits the mark, so nobody of them can hide."""

    def __init__(self, folder, *words, prefix=(), command=COMMAND, env=None, cwd=None):
        self._mark = secrets.token_hex(8)
        self._out, self._err = folder / "out", folder / "err"
        (folder / "tmp").mkdir()
        self.temp = folder / "tmp"
        (folder / "tmp").chmod(0o1777)
        environment = {**os.environ, "TMPDIR": str(self.temp), MARK: self._mark, **(env or {})}
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*prefix, *command, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment,
                cwd=cwd or folder,
                start_new_session=True,
            )

    @property
    def out(self):
        return self._out.read_text()

    @property
    def err(self):
        return self._err.read_text()

    @property
    def said(self):
        return f"it showed:\n{self.out}\nand complained:\n{self.err}"

    def lines(self, *words):
        """List the lines that have all these words."""
        return [line for line in self.out.splitlines() if all(word in line for word in words)]

    def wait_for(self, *words, count=1, within=120):
        def seen():
            ended = self.process.poll()
            found = len(self.lines(*words)) >= count
            assert found or ended is None, f"it ended with {ended}; {self.said}"
            return found

        wait_until(lambda: f"no {count} lines with {words}; {self.said}", seen, within=within, every=0.05)
        return self.lines(*words)

    def interrupt(self):
        """Send SIGINT as a terminal does: to the whole group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait(self, within=120):
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end; {self.said}") from None

    def pids(self, *words):
        """List all that runs of it, or those whose command line has these words."""
        return [pid for pid in _marked(self._mark) if all(word in _command(pid) for word in words)]

    def workers(self):
        """List the workers themselves, without their leashes and their children."""
        return [pid for pid in self.pids("-m redrive.worker") if "leash.py" in _command(_parent(pid))]

    def wait_for_nobody(self, within=60):
        def left():
            return f"{[_command(pid) for pid in self.pids()]} are still there"

        wait_until(left, lambda: not self.pids(), within=within)

    def end(self):
        """End all of it, whatever a test has left."""
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(30)
        self.wait_for_nobody()


def _marked(mark):
    needle = f"{MARK}={mark}".encode()
    pids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal()]
    return [pid for pid in pids if needle in _read(Path(f"/proc/{pid}/environ"))]


def _parent(pid):
    return int(_read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()[1])


def _command(pid):
    return _read(Path(f"/proc/{pid}/cmdline")).replace(b"\0", b" ").decode(errors="replace")


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""
