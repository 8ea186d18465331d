"""A node of the Docker-less cluster: namespaces of its own, as a machine would have, with containerd, kubelet, proxy.

A node is one process tree in its own process, mount, network and host-name namespaces. Killing its first process is
pulling the plug: the kernel ends everything inside and undoes every mount. So nothing of a node can leak, whatever
crashes. Only its folder, its cable and its control groups lie outside.
"""

import json
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from redrive_testbed import cgroups, network, sealed
from redrive_testbed.files import write_whole
from redrive_testbed.processes import Process, Processes
from redrive_testbed.shell import wait_until

# Folders that a kubelet and containerd use whatever they are told. Each node has its own, mounted over these; the
# places themselves must exist on the machine, stay empty there, and are removed with the cluster.
HARDWIRED = (Path("/var/lib/kubelet"), Path("/var/lib/cni"))


@dataclass(frozen=True)
class NodeSpec:
    """What may differ between nodes."""

    index: int
    taints: tuple[str, ...] = ()  # key=value:Effect
    labels: tuple[str, ...] = ()  # key=value
    reserved_cpu: str = "0"  # withheld from pods, so that a node can be small

    @property
    def name(self) -> str:
        return f"node{self.index}"

    @property
    def network(self) -> network.NodeNetwork:
        return network.NodeNetwork(self.index)


@dataclass(frozen=True)
class NodeParts:
    """What the first process of a node must know; it reads this from a file, in another namespace."""

    name: str
    folder: str
    address: str
    pods: str
    cgroup_root: str
    kubernetes: str
    pause_archive: str
    kubeconfig: str
    proxy_kubeconfig: str
    authority: str
    dns: str
    taints: list[str]
    labels: list[str]
    reserved_cpu: str

    @classmethod
    def read(cls, path: Path) -> "NodeParts":
        return cls(**json.loads(path.read_text()))


class Node:
    """One node: its folder, and its process tree under one name."""

    def __init__(self, spec: NodeSpec, *, folder: Path, processes: Processes) -> None:
        self.spec = spec
        self.folder = folder
        self._processes = processes

    @property
    def containerd(self) -> Path:
        return self.folder / "containerd.sock"

    def running(self) -> bool:
        return self._processes.find(self.spec.name) is not None

    def start(self, parts: NodeParts) -> None:
        """Boot the node, unless it runs, and see to its cable."""
        if not self.running():
            self._clear_away()
            cgroups.prepare(self.spec.name)
            write_whole(self.folder / "node.json", json.dumps(asdict(parts), indent=2))
        first = self._processes.start(self.spec.name, self._boot_command())
        network.connect(self.spec.network, self._inner(first))

    def stop(self) -> None:
        """Pull the plug, and take away what lies outside of the node's namespaces."""
        sealed.kill(self._processes, self.spec.name)
        network.cut(self.spec.network)
        cgroups.remove(self.spec.name)

    def _clear_away(self) -> None:
        """Remove what a plug pulled earlier left behind, and have the places that the node mounts over."""
        network.cut(self.spec.network)
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.containerd.unlink(missing_ok=True)
        for place in HARDWIRED:
            place.mkdir(parents=True, exist_ok=True)

    def _boot_command(self) -> list[str]:
        namespaces = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net", "--uts", "--ipc"]
        init = [sys.executable, "-m", "redrive_testbed.node_init", str(self.folder / "node.json")]
        return ["unshare", *namespaces, *init]

    def _inner(self, outer: Process) -> int:
        """The node's first process as this machine sees it: the one child of `unshare`."""
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")

        def born() -> bool:
            self._processes.must_live(self.spec.name)
            return bool(children.read_text().split())

        wait_until(f"{self.spec.name} has no process of its own", born, within=20, every=0.05)
        return int(children.read_text().split()[0])


def remove_hardwired() -> None:
    """Remove the places that nodes mounted over, if nobody else put something there."""
    for place in HARDWIRED:
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
