"""The operator as a process of this machine, with the account and the rights of an installed one.

A process is easily measured, restarted at once, and runs the tree as it is, without an image. It differs from a pod in
nothing that costs: the same program, the same rights, TLS to the same API server.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from random import SystemRandom
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import yaml

from bench.fleet_cluster import Bed
from bench.measure import Meter
from redrive_testbed.errors import NotReady
from redrive_testbed.machine import free_ports
from redrive_testbed.operator_manifests import CONSUMER_IMAGE, NAME, NAMESPACE
from redrive_testbed.shell import environment

READY_SECONDS = 120
STOP_SECONDS = 60
TOKEN_LIFE = "24h"  # noqa: S105 - a time
PROGRAM = (sys.executable, "-m", "redrive_operator.start")

_RECONCILED = re.compile(r'^redrive_reconciles_total\{result="([\w-]+)"\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True)
class Starter:
    """How operators are started: as whom, with which flags, and by which program."""

    kubeconfig: Path
    folder: Path
    program: tuple[str, ...] = PROGRAM
    flags: tuple[str, ...] = ()

    @contextmanager
    def running(self) -> Iterator["OperatorProcess"]:
        """Have an operator until the block ends; what it logs is kept in the folder."""
        port = next(free_ports(SystemRandom()))
        own = ("--kubeconfig", str(self.kubeconfig), "--namespace", NAMESPACE, "--port", str(port))
        command = [*self.program, *own, "--consumer-image", CONSUMER_IMAGE, *self.flags]
        log = self.folder / f"operator-{port}.log"
        with (
            log.open("wb") as sink,
            subprocess.Popen(command, stdout=sink, stderr=sink, env=environment()) as process,
        ):
            operator = OperatorProcess(process, port, log, began=time.monotonic())
            try:
                yield operator
            finally:
                operator.stop()


@dataclass(frozen=True)
class OperatorProcess:
    """One operator that runs, and what it says of itself."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path
    began: float

    @property
    def meter(self) -> Meter:
        return Meter((self.process.pid,))

    def is_ready(self) -> bool:
        return self.fetch("/readyz") is not None

    def wait_ready(self) -> float:
        """Wait until it is ready; give the seconds since it was started."""
        deadline = self.began + READY_SECONDS
        while not self.is_ready():
            self.must_live()
            if time.monotonic() > deadline:
                raise NotReady(f"the operator is not ready after {READY_SECONDS} s: {self.last_words()}")
            time.sleep(0.05)
        return time.monotonic() - self.began

    def reconciled(self) -> dict[str, int]:
        """Count the consumers seen to since the start, by how that went."""
        return {result: int(float(count)) for result, count in _RECONCILED.findall(self.fetch("/metrics") or "")}

    def must_live(self) -> None:
        if self.process.poll() is not None:
            raise NotReady(f"the operator ended with {self.process.returncode}: {self.last_words()}")

    def last_words(self, lines: int = 5) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def fetch(self, path: str) -> str | None:
        """Ask its own port; None where it does not answer, or not with yes."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                return str(answer.read().decode()) if answer.status == HTTPStatus.OK else None
        except (HTTPError, URLError, ConnectionError, TimeoutError):
            return None

    def stop(self) -> float:
        """End it as Kubernetes would; give the seconds that it took."""
        began = time.monotonic()
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return time.monotonic() - began


def write_kubeconfig(bed: Bed, folder: Path) -> Path:
    """Write a kubeconfig by which a process is the installed operator's account."""
    config = yaml.safe_load(bed.kubectl("config", "view", "--raw", "--flatten", "--minify"))
    token = bed.kubectl("create", "token", NAME, "--namespace", NAMESPACE, "--duration", TOKEN_LIFE).strip()
    (context,) = config["contexts"]
    config["users"] = [{"name": context["context"]["user"], "user": {"token": token}}]
    path = folder / "operator.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path
