"""One worker as a process of its own, started as in a pod, watched, and ended with all its children.

It is leashed, like the brokers: however this process ends, no worker goes on looking for a broker that is gone.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.errors import Abandoned
from bench.measure import OwnMeter, TreeMeter
from redrive_testbed.places import REPOSITORY
from redrive_testbed.shell import tail

STOP_SECONDS = 60


class WorkerProcess:
    """A running worker; its log goes to a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid
        self.meter = TreeMeter((process.pid,))
        self.own_meter = OwnMeter((process.pid,))  # without the processes of its handlers

    def must_live(self) -> None:
        if self._process.poll() is not None:
            raise Abandoned(f"the worker ended by itself with {self._process.returncode}: {self._last_words()}")

    def tell(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self, *, must_be_polite: bool) -> None:
        """Ask it to end; one that `must_be_polite` has to do so with 0."""
        self._process.terminate()
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise Abandoned(f"the worker did not end within {STOP_SECONDS} s of being told to") from error
        if must_be_polite and code != 0:
            raise Abandoned(f"the worker ended with {code} when told to end: {self._last_words()}")

    def kill(self) -> None:
        """End it and its children at once, also those that are in a process group of their own."""
        children = [pid for pid in self.meter.processes() if pid != self.pid]
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def _last_words(self) -> str:
        return tail(self._log.read_text(errors="replace"), 1) or "it said nothing"


def _without_odd_habits(environment: Mapping[str, str]) -> dict[str, str]:
    """Let every worker keep its bytecode, as an installed one does.

    Compiling everything at each start takes seconds, and leaves megabytes of heap behind that would count as its own.
    """
    return {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def run_worker(command: Sequence[str], *, log: Path, env: Mapping[str, str]) -> Iterator[WorkerProcess]:
    leash = ("setpriv", "--pdeathsig", "KILL")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*leash, *command],
            cwd=REPOSITORY,
            env={**_without_odd_habits(os.environ), **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    worker = WorkerProcess(process, log)
    try:
        yield worker
    finally:
        worker.kill()
