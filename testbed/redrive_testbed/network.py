"""The network of a Docker-less cluster: one bridge on this machine, and a cable from it to each node.

    this machine 10.240.0.1 ── bridge ─┬─ node0 10.240.0.10 ── pods 10.244.0.0/24
                                       └─ node1 10.240.0.11 ── pods 10.244.1.0/24

Nodes have no default route, this machine forwards nothing, and its own packets for pods and Services are routed to
the bridge: no packet of or for the cluster can leave the machine. Linux answers for its addresses on every interface,
so a rule drops what comes for the bridge's address from anywhere but the bridge and the machine itself.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from redrive_testbed.errors import Refused, TestbedError
from redrive_testbed.shell import run, succeeds

BRIDGE = "redrive0"
HOST = "10.240.0.1"
NODES = ipaddress.IPv4Network("10.240.0.0/24")
PODS = ipaddress.IPv4Network("10.244.0.0/16")
SERVICES = ipaddress.IPv4Network("10.96.0.0/16")
API_SERVICE = "10.96.0.1"
MOST_NODES = 10

WALL = "redrive_testbed"
_WALL_RULES = f"""
table inet {WALL} {{
  chain input {{
    type filter hook input priority -10
    ip daddr {NODES} iifname != {{ "lo", "{BRIDGE}" }} drop
  }}
}}
"""


@dataclass(frozen=True)
class NodeNetwork:
    """The addresses of the `index`-th node."""

    index: int

    @property
    def address(self) -> str:
        return str(NODES[10 + self.index])

    @property
    def pods(self) -> str:
        return f"{PODS[256 * self.index]}/24"

    @property
    def cable(self) -> str:
        return f"{BRIDGE}n{self.index}"


def raise_bridge() -> None:
    """Make the bridge, its routes and its wall where they are missing."""
    if not succeeds("ip", "link", "show", BRIDGE):
        run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "addr", "replace", f"{HOST}/{NODES.prefixlen}", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    # The whole ranges, so that nothing meant for the cluster takes the machine's default route when a node is gone.
    # Services are reached through the first node, whose kube-proxy knows them.
    run("ip", "route", "replace", str(PODS), "dev", BRIDGE)
    run("ip", "route", "replace", str(SERVICES), "via", NodeNetwork(0).address, "dev", BRIDGE)
    if not succeeds("nft", "list", "table", "inet", WALL):
        run("nft", "--file", "-", stdin=_WALL_RULES)


def remove_bridge() -> None:
    """Take the bridge away; cables of dead nodes and routes go with their ends."""
    if succeeds("ip", "link", "show", BRIDGE):
        run("ip", "link", "delete", BRIDGE)
    if succeeds("nft", "list", "table", "inet", WALL):
        run("nft", "delete", "table", "inet", WALL)


def connect(node: NodeNetwork, pid: int) -> None:
    """Lay a cable from the bridge into the network namespace of `pid`, with the routes on both sides.

    What is there already stays, so this also mends a cable that was half laid, or one whose bridge was made anew.
    """
    if not succeeds("ip", "link", "show", node.cable):
        run("ip", "link", "add", node.cable, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    run("ip", "link", "set", node.cable, "master", BRIDGE, "up")
    run("ip", "route", "replace", node.pods, "via", node.address, "dev", BRIDGE)
    inside = ("nsenter", "--target", str(pid), "--net", "ip")
    run(*inside, "link", "set", "lo", "up")
    run(*inside, "link", "set", "eth0", "up")
    run(*inside, "addr", "replace", f"{node.address}/{NODES.prefixlen}", "dev", "eth0")
    # A packet made on the node is routed before kube-proxy rewrites it: the Service range needs a way, to nowhere.
    run(*inside, "route", "replace", str(SERVICES), "dev", "eth0")
    for other in (NodeNetwork(index) for index in range(MOST_NODES) if index != node.index):
        run(*inside, "route", "replace", other.pods, "via", other.address, "dev", "eth0")


def cut(node: NodeNetwork) -> None:
    """Take a node's cable away, as if it were pulled. The kernel does so too, when the node's namespace goes."""
    there = "ip", "link", "show", node.cable
    if succeeds(*there) and not succeeds("ip", "link", "delete", node.cable) and succeeds(*there):
        raise TestbedError(f"the cable {node.cable} cannot be taken away")
    if succeeds("ip", "route", "show", "exact", node.pods):
        run("ip", "route", "flush", "exact", node.pods)


@dataclass(frozen=True)
class Route:
    """Where this machine sends packets for a network."""

    network: ipaddress.IPv4Network
    device: str


def read_routes(table: Path = Path("/proc/net/route")) -> list[Route]:
    """Read the kernel's own table: `ip` may not be installed yet."""
    return [_parse_route(line.split()) for line in table.read_text().splitlines()[1:]]


def _parse_route(fields: list[str]) -> Route:
    device, destination, mask = fields[0], fields[1], fields[7]
    address, netmask = (ipaddress.IPv4Address(int(word, 16).to_bytes(4, "little")) for word in (destination, mask))
    return Route(ipaddress.IPv4Network(f"{address}/{netmask}"), device)


def refuse_foreign_routes(routes: Iterable[Route]) -> None:
    """Refuse when somebody else on this machine uses our addresses: their traffic would end up with us."""
    for route in routes:
        if route.network.prefixlen == 0 or route.device == BRIDGE:
            continue
        for ours in (NODES, PODS, SERVICES):
            if route.network.overlaps(ours):
                raise Refused(
                    f"the test cluster needs {ours}, but {route.network} is routed to {route.device}: "
                    "take that network down first, or name a cluster of your own with CONTEXT="
                )
