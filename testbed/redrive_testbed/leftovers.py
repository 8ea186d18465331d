"""What a test could leave on this machine: processes, mounts, network devices and rules, control groups, folders.

Looked for in the kernel's own lists and not in the test bed's records, since what was never recorded is just what
would leak. Each thing has a name that says what it is, whoever runs it: a server of a standing cluster that was
started anew is no left-over. Of namespaces only the outside is looked at: what is inside ends with it.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from redrive_testbed import cgroups, clusters, network, standing_broker
from redrive_testbed.node import HARDWIRED
from redrive_testbed.places import Places
from redrive_testbed.shell import run

CLUSTER, BROKER = "a cluster that is up", "a broker that is up"


def look(places: Places) -> dict[str, str]:
    """Name everything of the test bed's that is on this machine now, with where to find it."""
    standing = {CLUSTER: clusters.current(places) is not None, BROKER: standing_broker.stands(places)}
    kernel = [*_processes(places), *_mounts(places), *_devices(), *_rules(), *_groups()]
    return {name: name for name, is_up in standing.items() if is_up} | dict([*kernel, *_folders(places)])


def _processes(places: Places) -> Iterator[tuple[str, str]]:
    """Find processes that run a program of the cache, live in a root file system of it, or were told of our state."""
    ours = (str(places.state), str(places.cache))
    here = Path("/proc/self/ns/pid").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            exe, root, inside = ((folder / link).readlink() for link in ("exe", "root", "ns/pid"))
            words = (folder / "cmdline").read_text().split("\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended, or is a thread of the kernel, or somebody else's
        facts = [*words, str(exe), str(root)]
        if inside == here and any(fact.startswith(ours) for fact in facts):
            yield f"process {' '.join(words[:2])}", f"process {folder.name}: {' '.join(words)}"


def _mounts(places: Places) -> Iterator[tuple[str, str]]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        place = line.split()[1]
        if place.startswith((str(places.state), str(places.cache))):
            yield f"mount {place}", f"mount {place}"


def _devices() -> Iterator[tuple[str, str]]:
    for device in Path("/sys/class/net").glob(f"{network.BRIDGE}*"):
        yield f"network device {device.name}", f"network device {device.name}"


def _rules() -> Iterator[tuple[str, str]]:
    tables = run("nft", "list", "tables").splitlines() if shutil.which("nft") and os.geteuid() == 0 else []
    for table in tables:
        if network.WALL in table or "kube" in table:
            yield f"nftables {table}", f"nftables {table}"


def _groups() -> Iterator[tuple[str, str]]:
    for group in cgroups.TREES.glob(f"**/{cgroups.TOP}"):
        yield f"control group {group}", f"control group {group}"


def _folders(places: Places) -> Iterator[tuple[str, str]]:
    for folder in (places.state, *HARDWIRED):
        if folder.exists():
            yield f"folder {folder}", f"folder {folder}"
