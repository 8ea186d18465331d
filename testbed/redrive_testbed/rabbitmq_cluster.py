"""Several RabbitMQ nodes on this machine as one cluster, for tests of what happens when a node goes away.

All nodes find each other by one epmd, which is a process of its own here: inside a node it would die with that node,
and the others could not be found any more.
"""

import shutil
from pathlib import Path
from random import SystemRandom

from redrive_testbed import sealed
from redrive_testbed.errors import TestbedError
from redrive_testbed.machine import free_ports, require_port
from redrive_testbed.places import Places
from redrive_testbed.processes import Processes
from redrive_testbed.rabbitmq import START_SECONDS, Broker, prepare
from redrive_testbed.rabbitmq_settings import LOOPBACK, Credentials, NodeSettings, Ports, environment
from redrive_testbed.say import step
from redrive_testbed.sealed import Seal
from redrive_testbed.shell import wait_until


class Cluster:
    """The nodes of one cluster; each is a `Broker` that can be stopped, killed and started by itself."""

    def __init__(self, nodes: tuple[Broker, ...], *, root: Path, state: Path, leashed: bool = False) -> None:
        self.nodes = nodes
        self._processes = Processes(state)
        self._epmd = Seal(root, user="rabbitmq", home=state / "epmd")
        self._leashed = leashed

    def start(self) -> None:
        """Start every node that does not run, all at once since they wait for each other, until all are together."""
        with step(f"starting a cluster of {len(self.nodes)} RabbitMQ {self.nodes[0].version} nodes"):
            try:
                self._start_together()
            except TestbedError:
                self.kill()
                raise

    def complete(self) -> bool:
        """Say whether every node sees every other one running."""
        wanted = {node.settings.node for node in self.nodes}
        return all(running_nodes(node) == wanted for node in self.nodes)

    def stop(self) -> None:
        """Stop every node in order, then epmd; the data stays."""
        for node in self.nodes:
            node.stop()
        sealed.kill(self._processes, "epmd")

    def kill(self) -> None:
        """End every node at once, as a power cut of the whole room would; the data stays as it is on disk."""
        for node in self.nodes:
            node.kill()
        sealed.kill(self._processes, "epmd")

    def remove(self) -> None:
        """End every node and delete all data."""
        self.kill()
        for node in self.nodes:
            node.remove()
        shutil.rmtree(self._epmd.home, ignore_errors=True)

    def _start_together(self) -> None:
        self._start_epmd()
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_ready()
        wait_until("the nodes have not found each other", self.complete, within=START_SECONDS)

    def _start_epmd(self) -> None:
        if self._processes.find("epmd") is None:
            settings = self.nodes[0].settings
            require_port(LOOPBACK, settings.ports.epmd)
            self._epmd.home.mkdir(parents=True, exist_ok=True)
            epmd = self._epmd.command("epmd", env=environment(settings), leashed=self._leashed)
            self._processes.start("epmd", epmd)


def running_nodes(node: Broker) -> set[str]:
    """Ask a node which nodes of its cluster run."""
    return {other["name"] for other in node.api.get("nodes") if other["running"]}


def start_cluster(
    places: Places, release: str, *, nodes: int = 3, conf: tuple[str, ...] = (), leashed: bool = False
) -> Cluster:
    """Start a cluster of a release below the state folder, on free ports of loopback (see `start_broker`)."""
    settings = plan_nodes(nodes, conf)
    root = prepare(places, release, settings)
    brokers = tuple(Broker(node, root=root, state=places.state, leashed=leashed) for node in settings)
    cluster = Cluster(brokers, root=root, state=places.state, leashed=leashed)
    cluster.start()
    return cluster


def plan_nodes(count: int, conf: tuple[str, ...] = ()) -> list[NodeSettings]:
    """Plan nodes that share an administrator, a cookie and epmd, and nothing else."""
    free = free_ports(SystemRandom())
    epmd = next(free)
    shared = Credentials.make()
    peers = tuple(f"rabbit{i}" for i in range(count))
    return [NodeSettings(peer, Ports.take(free, epmd=epmd), shared, conf=conf, peers=peers) for peer in peers]
