"""A real cluster where no Docker engine runs: servers built from Go modules, containers by Debian's containerd.

There is one such cluster on a machine, whichever checkout asks for it. `up` starts what does not run, so it heals
after a crash or a reboot and takes a second when all is well; `down` removes every trace but the cache.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from redrive_testbed import cgroups, debian, network, programs
from redrive_testbed.archives import import_into_containerd, single_binary_archive
from redrive_testbed.control_plane import API_PORT, LOOPBACK_PORTS, ControlPlane
from redrive_testbed.errors import Refused
from redrive_testbed.files import write_whole
from redrive_testbed.machine import require_disk, require_memory, require_port, require_root
from redrive_testbed.node import Node, NodeParts, NodeSpec, remove_hardwired
from redrive_testbed.node_init import PAUSE_IMAGE
from redrive_testbed.places import Places
from redrive_testbed.processes import Processes
from redrive_testbed.say import say, step
from redrive_testbed.shell import run, wait_until

PACKAGES = (
    *("containerd", "runc", "containernetworking-plugins"),
    *("nftables", "conntrack", "iproute2", "curl", "util-linux", "hostname", "openssl", "socat", "mount"),
)
# The Go module cache and build cache of Kubernetes, before and after the first build.
DISK_TO_BUILD, DISK_TO_RUN = 9_000, 2_000
MEMORY = 2_000
# A kubelet renews its lease every 10 s.
SIGN_OF_LIFE = timedelta(seconds=20)


class Dockerless:
    """The cluster of this machine, known by its state folder."""

    kind = "a cluster built from Go modules, without Docker"

    def __init__(self, places: Places) -> None:
        self._cache = places.cache
        self._folder = places.state / "cluster"
        self._processes = Processes(self._folder)

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "admin.kubeconfig"

    reaches_this_machine = True

    @property
    def kubectl(self) -> str:
        """A kubectl of the cluster's own version: people need not have one."""
        return str(self._folder / "bin" / "kubectl")

    def up(self, nodes: int = 1) -> None:
        """Start everything that does not run, and wait until every node is ready."""
        self._refuse_what_cannot_work(nodes)
        debian.install(PACKAGES)
        kubernetes, _ = self._build()
        network.raise_bridge()
        self.start_servers()
        self._link_kubectl(kubernetes)
        self._wait_for_nodes(dict(self._start_node(spec) for spec in self._wanted_nodes(nodes)))
        say(f"the cluster is up: export KUBECONFIG={self.kubeconfig}")

    def down(self) -> None:
        """End every process and remove every mount, cable, group and folder of the cluster."""
        require_root("taking the cluster down")
        for node in self.nodes():
            node.stop()
        for name in self._processes.names():
            self._processes.kill(name)  # nothing of a test cluster is worth the half minute that the servers linger
        cgroups.remove()
        network.remove_bridge()
        remove_hardwired()
        shutil.rmtree(self._folder, ignore_errors=True)

    def is_dead(self) -> bool:
        """Say whether nothing of it runs."""
        return not any(self._processes.find(name) for name in self._processes.names())

    def start_servers(self) -> None:
        """Start every server of the control plane that does not run, and see that each answers."""
        with step("starting the control plane"):
            names = [NodeSpec(index).name for index in range(network.MOST_NODES)]
            self._control_plane(*self._build()).start(names)

    def kill_server(self, name: str) -> None:
        """End a server of the control plane at once; `start_servers` brings it back."""
        self._processes.kill(name)

    def nodes(self) -> list[Node]:
        """The nodes that were started and not removed, running or not."""
        records = sorted(self._folder.glob("nodes/*/spec.json"))
        return [self._node(_read_spec(record)) for record in records]

    def add_node(self, spec: NodeSpec) -> None:
        """Boot a further node, or one whose plug was pulled, and wait until it is ready."""
        self._wait_for_nodes(dict([self._start_node(spec)]))

    def kill_node(self, index: int) -> None:
        """Pull a node's plug; the API server is told nothing."""
        self._node(NodeSpec(index)).stop()

    def remove_node(self, index: int) -> None:
        """Pull a node's plug for good, and forget it on the API server too."""
        node = self._node(NodeSpec(index))
        node.stop()
        shutil.rmtree(node.folder, ignore_errors=True)
        self._kubectl("delete", "node", node.spec.name, "--ignore-not-found")

    def _start_node(self, spec: NodeSpec) -> tuple[str, datetime]:
        """Boot a node unless it runs; return its name, and since when it must have shown a sign of life."""
        node = self._node(spec)
        since = datetime.now(UTC) - (SIGN_OF_LIFE if node.running() else timedelta(0))
        write_whole(node.folder / "spec.json", json.dumps(asdict(spec)))
        node.start(self._parts(spec, node.folder))
        return spec.name, since

    def load(self, archive: Path) -> None:
        for node in self.nodes():
            import_into_containerd(node.containerd, archive)

    def status(self) -> str:
        if not self._folder.exists():
            return "down"
        servers = [f"{name}: {'running' if self._processes.find(name) else 'DEAD'}" for name in self._processes.names()]
        return "\n".join(servers)

    def _kubectl(self, *words: str) -> str:
        return run(self.kubectl, "--kubeconfig", self.kubeconfig, *words)

    def _refuse_what_cannot_work(self, nodes: int) -> None:
        require_root("a cluster without Docker")
        if not 1 <= nodes <= network.MOST_NODES:
            raise Refused(f"a cluster has 1 to {network.MOST_NODES} nodes, not {nodes}: say NODES=1")
        built = all(programs.cached(program, self._cache) for program in needed_programs())
        if not built:
            programs.require_go()
            for cache in programs.go_caches():
                require_disk(cache, DISK_TO_BUILD)
        require_disk(self._folder, DISK_TO_RUN)
        if not self._processes.find("kube-apiserver"):
            require_memory(MEMORY)
            network.refuse_foreign_routes(network.read_routes())
            require_port("0.0.0.0", API_PORT)  # noqa: S104 - asks whether anybody has it, on whatever address
        for server, port in LOOPBACK_PORTS.items():
            if not self._processes.find(server.removesuffix("'s peers")):
                require_port("127.0.0.1", port)

    def _build(self) -> tuple[Path, Path]:
        kubernetes, coredns, pause = (programs.build(program, self._cache) for program in needed_programs())
        self._folder.mkdir(parents=True, exist_ok=True)
        single_binary_archive(pause, PAUSE_IMAGE, self._pause_archive())
        return kubernetes, coredns

    def _pause_archive(self) -> Path:
        return self._folder / "pause.tar"

    def _control_plane(self, kubernetes: Path, coredns: Path) -> ControlPlane:
        return ControlPlane(self._folder, kubernetes=kubernetes, coredns=coredns, processes=self._processes)

    def _link_kubectl(self, kubernetes: Path) -> None:
        link = Path(self.kubectl)
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(kubernetes)

    def _wanted_nodes(self, count: int) -> Sequence[NodeSpec]:
        known = {node.spec.index: node.spec for node in self.nodes()}
        return [known.pop(index, NodeSpec(index)) for index in range(count)] + list(known.values())

    def _node(self, spec: NodeSpec) -> Node:
        return Node(spec, folder=self._folder / "nodes" / spec.name, processes=self._processes)

    def _parts(self, spec: NodeSpec, folder: Path) -> NodeParts:
        kubernetes, coredns = self._build()
        control_plane = self._control_plane(kubernetes, coredns)
        return NodeParts(
            name=spec.name,
            folder=str(folder),
            address=spec.network.address,
            pods=spec.network.pods,
            cgroup_root=cgroups.root_of(spec.name),
            kubernetes=str(kubernetes),
            pause_archive=str(self._pause_archive()),
            kubeconfig=str(control_plane.kubeconfig(spec.name)),
            proxy_kubeconfig=str(control_plane.kubeconfig("proxy")),
            authority=str(control_plane.authority.certificate),
            dns=network.HOST,
            taints=list(spec.taints),
            labels=list(spec.labels),
            reserved_cpu=spec.reserved_cpu,
        )

    def _wait_for_nodes(self, signs: Mapping[str, datetime]) -> None:
        listed = ", ".join(signs)
        with step(f"waiting for {listed}"):
            wait_until(f"not all of {listed} are Ready", lambda: self._ready(signs), within=180, every=0.5)

    def _ready(self, signs: Mapping[str, datetime]) -> bool:
        """Ask for a sign of life too: for a while, the API server believes what a node said before it died."""
        nodes, leases = self._list("nodes"), self._list("leases", "--namespace", "kube-node-lease")
        renewed = {lease["metadata"]["name"]: _renewed(lease) for lease in leases}
        ready = {node["metadata"]["name"] for node in nodes if _is_ready(node)}
        return all(name in ready and name in renewed and renewed[name] >= since for name, since in signs.items())

    def _list(self, *what: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self._kubectl("get", *what, "--output", "json"))["items"]
        return items


def needed_programs() -> tuple[programs.Program, ...]:
    """What is built of Go modules for a cluster, the dearest first."""
    return (programs.kubernetes(), programs.COREDNS, programs.PAUSE)


def _read_spec(record: Path) -> NodeSpec:
    raw = json.loads(record.read_text())
    return NodeSpec(raw["index"], tuple(raw["taints"]), tuple(raw["labels"]), raw["reserved_cpu"])


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _renewed(lease: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(lease["spec"]["renewTime"])
