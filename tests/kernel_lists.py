"""What the kernel says of processes, any of which may end, and close what it had open, while one looks."""

from contextlib import suppress
from pathlib import Path

LISTENING = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}  # 127.0.0.1 and ::1, as the kernel writes them
GONE = (FileNotFoundError, ProcessLookupError)


def program_of(pid):
    """Name the program that a process runs; nothing for one that has ended."""
    with suppress(*GONE):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def listening_addresses(pids):
    """List the addresses on which these processes listen, as the kernel writes them.

    RabbitMQ's management API says "::" for the port between nodes wherever that listens.
    """
    sockets = {link for pid in pids for link in _open_files(pid) if link.startswith("socket:[")}
    tables = [Path("/proc/net", table).read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    return [row[1].partition(":")[0] for row in rows if row[3] == LISTENING and f"socket:[{row[9]}]" in sockets]


def _open_files(pid):
    with suppress(*GONE):
        for opened in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(*GONE):
                yield str(opened.readlink())
