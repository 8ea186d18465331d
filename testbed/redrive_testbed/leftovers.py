"""What a test could leave on this machine: processes, mounts, network devices and rules, control groups, folders.

Looked for in the kernel's own lists and not in the test bed's records, since a record that was never written is
just what would leak.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from redrive_testbed import cgroups, clusters, network, standing_broker
from redrive_testbed.node import HARDWIRED
from redrive_testbed.places import Places
from redrive_testbed.shell import run, succeeds

CLUSTER, BROKER = "a cluster is up", "a broker is up"


def look(places: Places) -> frozenset[str]:
    """Name everything of the test bed's that is on this machine now."""
    standing = [CLUSTER] * bool(clusters.current(places)) + [BROKER] * bool(standing_broker.status(places))
    kernel = [*_processes(places), *_mounts(places), *_devices(), *_rules(), *_groups()]
    return frozenset([*standing, *kernel, *_folders(places)])


def _processes(places: Places) -> Iterator[str]:
    """Find processes that run a program of the cache, live in a root file system of it, or were told of our state."""
    ours = (str(places.state), str(places.cache))
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            places_of_it = [str((folder / link).readlink()) for link in ("exe", "root")]
            facts = (folder / "cmdline").read_text().split("\0") + places_of_it
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended, or is a thread of the kernel, or somebody else's
        if any(fact.startswith(ours) for fact in facts):
            yield f"process {folder.name} ({facts[0]})"


def _mounts(places: Places) -> Iterator[str]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        place = line.split()[1]
        if place.startswith((str(places.state), str(places.cache))):
            yield f"mount {place}"


def _devices() -> Iterator[str]:
    for link in json.loads(run("ip", "-json", "link")):
        if link["ifname"].startswith(network.BRIDGE):
            yield f"network device {link['ifname']}"


def _rules() -> Iterator[str]:
    if succeeds("nft", "list", "tables"):
        yield from (f"nftables {line}" for line in run("nft", "list", "tables").splitlines() if "kube" in line)


def _groups() -> Iterator[str]:
    yield from (f"control group {group}" for group in cgroups.TREES.glob(f"**/{cgroups.TOP}"))


def _folders(places: Places) -> Iterator[str]:
    yield from (f"folder {folder}" for folder in (places.state, *HARDWIRED) if folder.exists())
