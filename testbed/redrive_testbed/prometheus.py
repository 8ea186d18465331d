"""Prometheus and Alertmanager, as Debian has them: fetched once into the cache, not installed, and run on loopback.

Which version it is, this machine's Debian release says; remove the folder from the cache to get a newer one. Debian's
programs look for their own files below /usr/share, so those of the packages are mounted there, where only they see it.
Whoever runs one of them has it as a context: it is ended with it, and also when the process that started it is killed.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import SystemRandom
from typing import Any

from redrive_testbed import debian
from redrive_testbed.files import write_whole
from redrive_testbed.machine import free_ports, require_disk, require_root, require_tools
from redrive_testbed.places import Places
from redrive_testbed.processes import Processes
from redrive_testbed.shell import wait_until

LOOPBACK = "127.0.0.1"
PACKAGES = ("prometheus", "prometheus-alertmanager")
_OWN_MOUNTS = ("unshare", "--mount", "--propagation", "private", "sh", "-euc")
_ENTER = 'mount --bind "$0" /usr/share; exec "$@"'
# Unpacked 140 MB; the packages lie beside that for a moment.
MEGABYTES = 400
# It takes a second; on a machine that builds something beside it, many times as long.
START_SECONDS = 60


@dataclass(frozen=True)
class Programs:
    """The unpacked packages."""

    folder: Path

    @property
    def prometheus(self) -> Path:
        return self.folder / "usr/bin/prometheus"

    @property
    def promtool(self) -> Path:
        return self.folder / "usr/bin/promtool"

    @property
    def alertmanager(self) -> Path:
        return self.folder / "usr/bin/prometheus-alertmanager"

    @property
    def amtool(self) -> Path:
        return self.folder / "usr/bin/amtool"


def prepare(places: Places) -> Programs:
    """Return the programs; the first time they are fetched, which takes some seconds."""
    folder = places.cache / "prometheus"
    if not folder.exists():
        require_disk(places.cache, MEGABYTES)
        debian.unpack(PACKAGES, folder, if_any=["promtool"])  # from Debian 13 on
    return Programs(folder)


@contextmanager
def run_prometheus(programs: Programs, folder: Path, config: Mapping[str, Any]) -> Iterator[str]:
    """Run a Prometheus with this configuration and all that it keeps below `folder`; give its address."""
    port = next(free_ports(SystemRandom()))
    flags = (f"--storage.tsdb.path={folder / 'prometheus'}", "--log.level=warn")
    command = (programs.prometheus, *flags, f"--config.file={_write(folder / 'prometheus.yml', config)}")
    with _running(programs, folder, "prometheus", command, port) as address:
        yield address


@contextmanager
def run_alertmanager(programs: Programs, folder: Path, config: Mapping[str, Any]) -> Iterator[str]:
    """Run an Alertmanager with this configuration and all that it keeps below `folder`; give its address."""
    port = next(free_ports(SystemRandom()))
    # It would listen for others of its kind otherwise, on every address of this machine.
    flags = ("--cluster.listen-address=", f"--storage.path={folder / 'alertmanager'}", "--log.level=warn")
    command = (programs.alertmanager, *flags, f"--config.file={_write(folder / 'alertmanager.yml', config)}")
    with _running(programs, folder, "alertmanager", command, port) as address:
        yield address


def _write(path: Path, config: Mapping[str, Any]) -> Path:
    write_whole(path, json.dumps(config, indent=1))  # which is YAML as well
    return path


@contextmanager
def _running(programs: Programs, folder: Path, name: str, command: tuple[str | Path, ...], port: int) -> Iterator[str]:
    require_root(f"giving {name} its own files")
    require_tools("setpriv", "unshare", "mount")
    processes = Processes(folder)
    leash = ("setpriv", "--pdeathsig", "KILL", *_OWN_MOUNTS, _ENTER, programs.folder / "usr/share")
    processes.start(name, (*leash, *command, f"--web.listen-address={LOOPBACK}:{port}"))
    try:
        wait_until(f"{name} is not ready", lambda: _is_ready(processes, name, port), within=START_SECONDS)
        yield f"http://{LOOPBACK}:{port}"
        processes.must_live(name)
    finally:
        processes.stop(name)


def _is_ready(processes: Processes, name: str, port: int) -> bool:
    processes.must_live(name)
    connection = HTTPConnection(LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", "/-/ready")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
