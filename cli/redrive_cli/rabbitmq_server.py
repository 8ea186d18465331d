"""What a throw-away RabbitMQ is told, so that it meets nobody: neither another node, nor the settings of this machine.

Every port is its own, epmd's too, and on loopback. Its home, data, plugins and cookie lie in one folder. Of the
environment only what has nothing to do with RabbitMQ or Erlang is handed on, and each file that a server would look for
below /etc is named, so that the machine's own is not read.
"""

import os
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from redrive.endpoints import Endpoint

LOOPBACK = "127.0.0.1"
PROGRAM = "rabbitmq-server"

# Homebrew's and the packages' folders are often not on the path of a person who is not root.
_FOLDERS = (
    "/usr/sbin",
    "/usr/local/sbin",
    "/opt/homebrew/sbin",
    "/opt/homebrew/opt/rabbitmq/sbin",
    "/usr/local/opt/rabbitmq/sbin",
    "/usr/lib/rabbitmq/bin",
)
# What Debian and Red Hat put into /usr/sbin goes over to the user rabbitmq, who may not read our folder, and refuses
# everybody else. It calls this one, which does neither.
_WRAPPED = (Path("/usr/sbin"), Path("/sbin"))
_UNWRAPPED = Path("/usr/lib/rabbitmq/bin") / PROGRAM

# Below the range from which systems take ports for outgoing connections: what is free now is so in a moment.
_PORTS = range(20000, 30000)
_ITS_OWN = ("RABBITMQ_", "ERL_", "NOTIFY_SOCKET")


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its name, its folder, its ports and its only user."""

    name: str
    home: Path
    amqp_port: int
    management_port: int
    distribution_port: int
    epmd_port: int
    password: str = field(repr=False)
    user: str = "redrive"

    @property
    def amqp(self) -> Endpoint:
        return Endpoint(LOOPBACK, self.amqp_port, self.user, self.password)

    @property
    def management(self) -> Endpoint:
        return Endpoint(LOOPBACK, self.management_port, self.user, self.password)


def find_server(path: str, exists: Callable[[Path], bool] = Path.exists) -> Path | None:
    """Find the program that starts a RabbitMQ, as any user."""
    found = shutil.which(PROGRAM, path=os.pathsep.join((path, *_FOLDERS)))
    if found is None:
        return None
    return _UNWRAPPED if Path(found).parent in _WRAPPED and exists(_UNWRAPPED) else Path(found)


def plan_node(home: Path, random: Random) -> Node:
    ports = _free_ports(random)
    return Node(
        name=f"redrive-dev-{secrets.token_hex(4)}@localhost",
        home=home,
        amqp_port=next(ports),
        management_port=next(ports),
        distribution_port=next(ports),
        epmd_port=next(ports),
        password=secrets.token_urlsafe(18),
    )


def files(node: Node) -> Mapping[str, str]:
    """Write what the node reads, by file name; each is in its home."""
    lines = {
        "listeners.tcp.1": f"{LOOPBACK}:{node.amqp_port}",
        "management.tcp.ip": LOOPBACK,
        "management.tcp.port": node.management_port,
        "default_user": node.user,
        "default_pass": node.password,
        "log.console": "true",
        "log.console.use_colors": "off",
        "log.file": "false",
    }
    return {
        "rabbitmq.conf": "".join(f"{key} = {value}\n" for key, value in lines.items()),
        "advanced.config": "[].\n",
        "enabled_plugins": "[rabbitmq_management].\n",
        "rabbitmq-env.conf": "",
        ".erlang.cookie": secrets.token_hex(16),
    }


def environment(node: Node, ours: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in ours.items() if not key.startswith(_ITS_OWN)}
    home = node.home
    return {
        **kept,
        "HOME": str(home),
        "ERL_EPMD_PORT": str(node.epmd_port),
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "ERL_CRASH_DUMP": str(home / "erl_crash.dump"),
        "RABBITMQ_NODENAME": node.name,
        "RABBITMQ_DIST_PORT": str(node.distribution_port),
        "RABBITMQ_CONF_ENV_FILE": str(home / "rabbitmq-env.conf"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_CONFIG_FILES": str(home / "conf.d"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "advanced.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(home / "config"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        # The script then becomes the Erlang VM, instead of a shell that watches over it.
        "RUNNING_UNDER_SYSTEMD": "true",
    }


def _free_ports(random: Random) -> Iterator[int]:
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                door.bind((LOOPBACK, port))
            except OSError:
                continue
        yield port
