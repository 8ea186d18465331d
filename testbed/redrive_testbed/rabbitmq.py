"""A RabbitMQ node for tests: a real server from a Debian root file system, started, stopped, killed and started again.

The data outlives the process: only `remove` deletes it. A node has at most one process; `kill` ends it as a power cut
would, and a later `start` finds what the disk kept.
"""

import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from redrive_testbed import sealed
from redrive_testbed.errors import Refused, TestbedError
from redrive_testbed.machine import (
    accepts,
    free_ports,
    require_disk,
    require_memory,
    require_port,
    require_root,
    require_tools,
)
from redrive_testbed.places import Places
from redrive_testbed.processes import Processes
from redrive_testbed.rabbitmq_management import ManagementApi
from redrive_testbed.rabbitmq_release import find_release, installed_version, prepare_root
from redrive_testbed.rabbitmq_settings import (
    LOOPBACK,
    Credentials,
    NodeSettings,
    Ports,
    amqp_url,
    environment,
    management_url,
    rabbitmq_conf,
    registered_name,
)
from redrive_testbed.say import step
from redrive_testbed.sealed import Seal
from redrive_testbed.shell import run, tail, wait_until

NODE_MEGABYTES = 512
# A node starts in 5 s; on a machine that builds something beside it, it has taken ten times as long.
START_SECONDS = 180
STOP_SECONDS = 60


@dataclass(frozen=True)
class Vhost:
    """A virtual host with a user of its own, who may do everything in it and nothing elsewhere."""

    name: str
    user: str
    password: str
    amqp_url: str


class Broker:
    """One RabbitMQ node and its folder."""

    def __init__(self, settings: NodeSettings, *, root: Path, state: Path, leashed: bool = False) -> None:
        self.settings = settings
        self.root = root
        admin = settings.credentials
        self.api = ManagementApi(management_url(settings), user=admin.user, password=admin.password)
        self.version = installed_version(root)
        self._seal = Seal(root, user="rabbitmq", home=state / settings.name)
        self._processes = Processes(state)
        self._leashed = leashed

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def amqp_url(self) -> str:
        return amqp_url(self.settings)

    @property
    def management_url(self) -> str:
        return management_url(self.settings)

    def running(self) -> bool:
        return self._processes.find(self.name) is not None

    def pids(self) -> list[int]:
        """List the node's processes: the Erlang VM, its helpers and epmd."""
        process = self._processes.find(self.name)
        return [] if process is None else sealed.pids_inside(process)

    def start(self) -> None:
        """Start the node with the data it has, and wait until clients can come in."""
        with step(f"starting RabbitMQ {self.version} as {self.settings.node}"):
            try:
                self.launch()
                self.wait_ready()
            except TestbedError:
                self.kill()
                raise

    def launch(self) -> None:
        """Start the node without waiting for it."""
        if self.running():
            return
        await_ports(self.settings)
        self._write_files()
        server = self._inside("/usr/lib/rabbitmq/bin/rabbitmq-server", leashed=self._leashed)
        self._processes.start(self.name, server)

    def wait_ready(self) -> None:
        """Wait until the node has booted: clients are let in a little earlier.

        In that gap 3.10 hangs for half a minute when a vhost is made, because this node does not take part in it yet.
        """
        wait_until(f"{self.settings.node} lets nobody in", self._lets_in, within=START_SECONDS)
        self.rabbitmqctl("await_startup")

    def stop(self) -> None:
        """Stop the node in order; its data stays."""
        sealed.end(self._processes, self.name, patience=STOP_SECONDS)

    def kill(self) -> None:
        """End the Erlang VM and all its children at once with SIGKILL; its data stays as it is on disk."""
        sealed.kill(self._processes, self.name)

    def remove(self) -> None:
        """End the node if it runs and delete its data."""
        self.kill()
        shutil.rmtree(self._seal.home, ignore_errors=True)

    def rabbitmqctl(self, *words: str) -> str:
        """Run rabbitmqctl on this node and return what it prints, without its headings."""
        return run(*self._inside("/usr/lib/rabbitmq/bin/rabbitmqctl", "--silent", *words), timeout=120)

    def log_tail(self, lines: int = 50) -> str:
        process = self._processes.find(self.name)
        log = process.log if process else self._seal.home.parent / "logs" / f"{self.name}.log"
        return tail(log.read_text(errors="replace"), lines) if log.exists() else ""

    def add_vhost(self, name: str) -> Vhost:
        """Make a vhost, and a user of the same name with all permissions in it."""
        password = secrets.token_urlsafe(12)
        self.api.put("vhosts", name)
        self.add_user(name, password, tags=("management",))
        self.permit(name, name)
        return Vhost(name, name, password, amqp_url(self.settings, vhost=name, user=name, password=password))

    def delete_vhost(self, name: str) -> None:
        """Delete a vhost with all its queues, and the user of the same name."""
        self.api.delete("vhosts", name)
        self.delete_user(name)

    def wait_on_disk(self, vhost: str, queue: str) -> None:
        """Wait until a new quorum queue of this node would survive `kill`.

        A broker writes the name of a quorum queue to disk up to a second after it has confirmed the declaration, even
        after it has confirmed messages in it. Killed before, a lone node starts with an empty queue (4.x) or with one
        that does not work (3.10).
        """
        files = list(self._seal.home.glob("mnesia/*/quorum/*/names.dets"))
        wanted = registered_name(vhost, queue)
        what = f"quorum queue {queue} in vhost {vhost} is not on the disk of {self.settings.node}"
        wait_until(what, lambda: any(wanted in file.read_bytes() for file in files), within=60, every=0.05)

    def add_user(self, name: str, password: str, *, tags: tuple[str, ...] = ()) -> None:
        self.api.put("users", name, body={"password": password, "tags": ",".join(tags)})

    def delete_user(self, name: str) -> None:
        self.api.delete("users", name)

    def permit(self, user: str, vhost: str, *, configure: str = ".*", write: str = ".*", read: str = ".*") -> None:
        self.api.put("permissions", vhost, user, body={"configure": configure, "write": write, "read": read})

    @contextmanager
    def memory_alarm(self) -> Iterator[None]:
        """Have the broker believe that it uses too much memory: it blocks every connection that publishes."""
        usual = self.rabbitmqctl("eval", "vm_memory_monitor:get_vm_memory_high_watermark().").strip()
        self.rabbitmqctl("set_vm_memory_high_watermark", "0.0000001")
        try:
            self._wait_alarm(sounding=True)
            yield
        finally:
            self.rabbitmqctl("set_vm_memory_high_watermark", usual)
            self._wait_alarm(sounding=False)

    @contextmanager
    def disk_alarm(self) -> Iterator[None]:
        """Have the broker believe that its disk is nearly full: it blocks every connection that publishes."""
        usual = self.rabbitmqctl("eval", "rabbit_disk_monitor:get_disk_free_limit().").strip()
        self.rabbitmqctl("set_disk_free_limit", str(2**60))
        try:
            self._wait_alarm(sounding=True)
            yield
        finally:
            self.rabbitmqctl("set_disk_free_limit", usual)
            self._wait_alarm(sounding=False)

    def _wait_alarm(self, *, sounding: bool) -> None:
        wanted = 503 if sounding else 200
        what = f"the alarm of {self.settings.node} is {'not yet' if sounding else 'still'} on"
        wait_until(what, lambda: self.api.status("health", "checks", "local-alarms") == wanted, within=60)

    def _inside(self, *words: str, leashed: bool = False) -> list[str | Path]:
        return self._seal.command(*words, env=environment(self.settings), leashed=leashed)

    def _write_files(self) -> None:
        home = self._seal.home
        home.mkdir(parents=True, exist_ok=True)
        files = {
            ".erlang.cookie": self.settings.credentials.cookie,
            "enabled_plugins": "[rabbitmq_management].\n",
            "rabbitmq.conf": rabbitmq_conf(self.settings),
        }
        for name, text in files.items():
            (home / name).write_text(text)
            (home / name).chmod(0o600)  # Erlang refuses a cookie that others may read
        self._seal.own(home, *(home / name for name in files))

    def _lets_in(self) -> bool:
        self._processes.must_live(self.name)
        return accepts(LOOPBACK, self.settings.ports.amqp) and self.api.status("overview") == 200


# Between our look at a port and the node's, somebody else may have taken it: then others are tried.
_TAKEN = "eaddrinuse"
_TRIES = 3


def start_broker(
    places: Places,
    release: str,
    *,
    listen: tuple[str, ...] = (),
    conf: tuple[str, ...] = (),
    amqp_port: int = 0,
    management_port: int = 0,
    leashed: bool = False,
) -> Broker:
    """Start one node of a release below the state folder; a port of 0 is chosen from the free ones.

    A leashed broker is killed when the process that started it ends, however that ends.
    """
    left = _TRIES
    while True:
        settings = plan_node(listen=listen, conf=conf, amqp_port=amqp_port, management_port=management_port)
        root = prepare(places, release, [settings])
        broker = Broker(settings, root=root, state=places.state, leashed=leashed)
        left -= 1
        try:
            broker.start()
        except TestbedError:
            if not left or _TAKEN not in broker.log_tail(200):
                raise
            broker.remove()
        else:
            return broker


def plan_node(
    *, listen: tuple[str, ...] = (), conf: tuple[str, ...] = (), amqp_port: int = 0, management_port: int = 0
) -> NodeSettings:
    """Plan a node that is alone, with secrets of its own."""
    ports = Ports.take(free_ports(SystemRandom()), amqp=amqp_port, management=management_port)
    return NodeSettings("rabbit", ports, Credentials.make(), listen=listen, conf=conf)


def prepare(places: Places, release: str, nodes: Sequence[NodeSettings]) -> Path:
    """Check all that nodes need before anything is changed, then return the root file system of their release."""
    known = find_release(release)
    require_root("running RabbitMQ in a root file system of its own")
    require_tools(*sealed.TOOLS)
    require_disk(places.state, len(nodes) * NODE_MEGABYTES)
    require_memory(len(nodes) * NODE_MEGABYTES)
    for node in nodes:
        require_ports(node)
    return prepare_root(known, places)


def await_ports(settings: NodeSettings, patience: float = 20) -> None:
    """Refuse busy ports, but not those of a node that was killed a moment ago and is still on its way out."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return require_ports(settings)
        except Refused:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def require_ports(settings: NodeSettings) -> None:
    for address, port in settings.listeners:
        require_port(address, port)
