"""What a RabbitMQ node is told: its ports, its rabbitmq.conf, its environment.

As in production except where a node must not meet another one on this machine: every port is its own, epmd's too,
and what Erlang nodes say to each other stays on loopback.
"""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

LOOPBACK = "127.0.0.1"

# Where the folder of a node is seen inside its root file system.
HOME = "/var/lib/rabbitmq"


@dataclass(frozen=True)
class Ports:
    """The ports of one node; the nodes of a cluster share epmd's."""

    amqp: int
    management: int
    distribution: int
    epmd: int

    @classmethod
    def take(cls, free: Iterator[int], *, amqp: int = 0, management: int = 0, epmd: int = 0) -> "Ports":
        """Take what is not given (0) from free ports."""
        return cls(amqp or next(free), management or next(free), next(free), epmd or next(free))


@dataclass(frozen=True)
class Credentials:
    """The administrator, and the cookie by which Erlang nodes and rabbitmqctl trust each other."""

    user: str
    password: str
    cookie: str

    @classmethod
    def make(cls) -> "Credentials":
        return cls("redrive-testbed", secrets.token_urlsafe(18), secrets.token_hex(16))


@dataclass(frozen=True)
class NodeSettings:
    """One node: `listen` are addresses beside loopback, `conf` further lines of rabbitmq.conf, `peers` its cluster."""

    name: str
    ports: Ports
    credentials: Credentials
    listen: tuple[str, ...] = ()
    conf: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()

    @property
    def node(self) -> str:
        return node_name(self.name)

    @property
    def management_address(self) -> str:
        """RabbitMQ's management has one listener only: where others must reach it, it listens for them."""
        return self.listen[0] if self.listen else LOOPBACK

    @property
    def listeners(self) -> list[tuple[str, int]]:
        amqp = [(address, self.ports.amqp) for address in (LOOPBACK, *self.listen)]
        return [*amqp, (self.management_address, self.ports.management), (LOOPBACK, self.ports.distribution)]


def node_name(name: str) -> str:
    return f"{name}@localhost"


def amqp_url(settings: NodeSettings, *, vhost: str = "/", user: str = "", password: str = "", host: str = "") -> str:
    """Write the AMQP address of a vhost; the administrator's where no user is given."""
    admin = settings.credentials
    who = f"{quote(user or admin.user, safe='')}:{quote(password or admin.password, safe='')}"
    return f"amqp://{who}@{host or LOOPBACK}:{settings.ports.amqp}/{quote(vhost, safe='')}"


def management_url(settings: NodeSettings) -> str:
    return f"http://{settings.management_address}:{settings.ports.management}"


def registered_name(vhost: str, queue: str) -> bytes:
    """Write the name of a quorum queue as a node has it on disk: an Erlang atom behind (the low byte of) its length."""
    name = f"{vhost.replace('/', '%2F')}_{queue}".encode()
    return bytes([len(name) % 256]) + name


def rabbitmq_conf(settings: NodeSettings) -> str:
    addresses = (LOOPBACK, *settings.listen)
    lines = [
        *(f"listeners.tcp.{i} = {address}:{settings.ports.amqp}" for i, address in enumerate(addresses, 1)),
        f"management.tcp.ip = {settings.management_address}",
        f"management.tcp.port = {settings.ports.management}",
        f"default_user = {settings.credentials.user}",
        f"default_pass = {settings.credentials.password}",
        # The test bed keeps what a program prints; a second file would only hide half of it.
        "log.console = true",
        "log.console.use_colors = off",
        "log.file = false",
        *_cluster_lines(settings.peers),
        *settings.conf,
    ]
    return "".join(f"{line}\n" for line in lines)


def _cluster_lines(peers: tuple[str, ...]) -> list[str]:
    if not peers:
        return []
    nodes = [f"cluster_formation.classic_config.nodes.{i} = {node_name(peer)}" for i, peer in enumerate(peers, 1)]
    return ["cluster_formation.peer_discovery_backend = classic_config", *nodes]


def environment(settings: NodeSettings) -> Mapping[str, str]:
    """The environment of the server and of rabbitmqctl inside the root file system."""
    loopback_only = "-kernel inet_dist_use_interface {127,0,0,1}"
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": HOME,
        "ERL_EPMD_PORT": str(settings.ports.epmd),
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "ERL_CRASH_DUMP": f"{HOME}/erl_crash.dump",
        "RABBITMQ_NODENAME": settings.node,
        "RABBITMQ_DIST_PORT": str(settings.ports.distribution),
        "RABBITMQ_CONFIG_FILE": f"{HOME}/rabbitmq.conf",
        "RABBITMQ_ENABLED_PLUGINS_FILE": f"{HOME}/enabled_plugins",
        "RABBITMQ_MNESIA_BASE": f"{HOME}/mnesia",
        "RABBITMQ_LOG_BASE": f"{HOME}/log",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": loopback_only,
        "RABBITMQ_CTL_ERL_ARGS": loopback_only,
        # The default is eleven ports above the node's own: few for parallel calls, and perhaps past the last port.
        "RABBITMQ_CTL_DIST_PORT_MIN": "19000",
        "RABBITMQ_CTL_DIST_PORT_MAX": "19999",
        # The start script then becomes the Erlang VM instead of watching over it: SIGTERM reaches it at once.
        "RUNNING_UNDER_SYSTEMD": "true",
    }
