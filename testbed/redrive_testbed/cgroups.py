"""Control groups of the nodes: each kubelet gets a root of its own, so that two on one machine do not fight.

A kubelet removes every pod group below its root that it does not know; with a shared root it would end the pods of
its neighbour. Version 1 has a tree per controller, version 2 one tree for all, and a hybrid machine has both.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from redrive_testbed.shell import wait_until

TREES = Path("/sys/fs/cgroup")
TOP = "redrive-testbed"


def root_of(node: str) -> str:
    """A node's root, as the kubelet's configuration wants it."""
    return f"/{TOP}/{node}"


def prepare(node: str) -> None:
    for tree in _trees():
        for group in (tree / TOP, tree / TOP / node):
            group.mkdir(exist_ok=True)
            _pass_on(group)


def remove(node: str | None = None) -> None:
    """End what is left in a node's groups, or in all of them, and remove the groups."""
    for tree in _trees():
        top = tree / TOP / node if node else tree / TOP
        if top.exists():
            wait_until(f"processes are left in {top}", lambda top=top: _emptied(top), within=30)  # type: ignore[misc]
            for group in sorted(top.rglob("*/"), key=lambda path: len(path.parts), reverse=True):
                group.rmdir()
            top.rmdir()


def _trees() -> Iterator[Path]:
    if (TREES / "cgroup.controllers").exists():
        yield TREES
        return
    # A controller may be there under two names, one a link to the other.
    yield from sorted({tree.resolve() for tree in TREES.iterdir() if (tree / "cgroup.procs").exists()})


def _pass_on(group: Path) -> None:
    """Hand down what a fresh group does not inherit: cpusets in version 1, controllers in version 2."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (group / "cgroup.clone_children").exists() and (group / name).exists():
            (group / name).write_text((group.parent / name).read_text())
    if (group / "cgroup.subtree_control").exists():
        controllers = (group.parent / "cgroup.controllers").read_text().split()
        (group.parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def _emptied(top: Path) -> bool:
    """Kill everything in a tree of groups; true once nothing is left."""
    empty = True
    for procs in top.rglob("cgroup.procs"):
        for pid in map(int, procs.read_text().split()):
            empty = False
            if pid > 0:  # 0 would be a process that we cannot see, and to `kill` it means ourselves
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    return empty
