"""What this machine must have before the test bed changes anything; what is missing is `Refused` in a sentence."""

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from random import Random

from redrive_testbed.errors import Refused
from redrive_testbed.shell import succeeds

# Below the range from which the kernel takes ports for outgoing connections (32768 and up) and below the node ports
# of Kubernetes (30000 and up): a port that was free when it was chosen is still free when a program takes it.
FREE_PORTS = range(20000, 30000)


def docker_answers() -> bool:
    """Say whether there is an engine; the client alone builds and runs nothing."""
    return succeeds("docker", "version", "--format", "{{.Server.Version}}", timeout=20)


def require_root(what: str) -> None:
    if os.geteuid() != 0:
        raise Refused(f"{what} needs root: run this command with sudo")


def require_tools(*tools: str) -> None:
    absent = [tool for tool in tools if shutil.which(tool) is None]
    if absent:
        raise Refused(f"{', '.join(absent)} not found: install it (on Debian: apt-get install util-linux coreutils)")


def require_disk(folder: Path, megabytes: int) -> None:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(there).free // 2**20
    if free < megabytes:
        raise Refused(f"{folder} needs {megabytes} MB of disk and has {free} MB: make room there")


def require_memory(megabytes: int) -> None:
    available = available_memory(Path("/proc/meminfo").read_text())
    if available < megabytes:
        raise Refused(f"{megabytes} MB of memory are needed and {available} MB are free: end something else first")


def available_memory(meminfo: str) -> int:
    """Read the available megabytes from the text of /proc/meminfo."""
    [kilobytes] = [line.split()[1] for line in meminfo.splitlines() if line.startswith("MemAvailable:")]
    return int(kilobytes) // 1024


def require_port(address: str, port: int) -> None:
    """Refuse a port that somebody listens on, and an address that is not this machine's."""
    try:
        _try_port(address, port)
    except OSError as error:
        if not _is_ours(address):
            raise Refused(f"{address} is not an address of this machine: bring up the bridge that has it") from error
        raise Refused(
            f"port {port} on {address} is busy: `ss -ltnp 'sport = :{port}'` shows who holds it; "
            "end that program or choose another port"
        ) from error


def accepts(address: str, port: int) -> bool:
    """Say whether somebody listens there."""
    try:
        socket.create_connection((address, port), timeout=5).close()
    except OSError:
        return False
    return True


def free_ports(random: Random) -> Iterator[int]:
    """Yield ports on which nobody listens, each once."""
    for port in random.sample(FREE_PORTS, len(FREE_PORTS)):
        try:
            _try_port("127.0.0.1", port)
        except OSError:
            continue
        yield port


def _try_port(address: str, port: int) -> None:
    with socket.socket() as door:
        # As servers do: connections of an earlier listener that are still closing do not count as busy.
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((address, port))


def _is_ours(address: str) -> bool:
    try:
        _try_port(address, 0)
    except OSError:
        return False
    return True
