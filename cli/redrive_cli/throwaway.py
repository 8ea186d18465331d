"""A RabbitMQ of our own, for as long as a command runs: started from what is installed, then gone without a trace.

It is held on a leash, so it also goes when we are killed. Nothing in it is worth saving: it is ended by force.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

from redrive_cli.broker_flags import BrokerAddress, write_url
from redrive_cli.errors import ThrowAwayFailed
from redrive_cli.leashed import put_on_leash
from redrive_cli.rabbitmq_server import LOOPBACK, PROGRAM, Node, environment, files, find_server, plan_node

# One starts in 5 s; on a machine that has much else to do it has taken ten times as long.
START_SECONDS = 180.0
# A server that lets everybody in for so long is up, even if it never says so in the words that we know.
SETTLED_SECONDS = 20.0
_UP = "startup complete"

# Between our look at a port and the server's, somebody else may have taken it.
_TAKEN = "eaddrinuse"
_TRIES = 3

HOW_TO_GET_ONE = (
    f"no broker was named, and no {PROGRAM} is installed here to start a throw-away one: install it (Debian and "
    "Ubuntu: `sudo apt install rabbitmq-server`, macOS: `brew install rabbitmq`), or run one with Docker "
    "(`docker run --rm -p 127.0.0.1:5672:5672 -p 127.0.0.1:15672:15672 rabbitmq:4-management`) and name it: "
    "`--broker amqp://guest:guest@localhost --management http://localhost:15672`"
)


class _PortTaken(ThrowAwayFailed):
    pass


class ThrowAway:
    """A running node on its leash."""

    def __init__(self, node: Node, process: subprocess.Popen[bytes], log: Path) -> None:
        self.node = node
        self._process = process
        self._log = log

    @property
    def address(self) -> BrokerAddress:
        return BrokerAddress(self.node.amqp, self.node.management, "of the throw-away broker")

    @property
    def url_file(self) -> Path:
        """Where the URL is, with its password, for whoever wants to publish something."""
        return self.node.home / "url"

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def await_start(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        accepting_since: float | None = None
        while not is_up(self._log.read_text(errors="replace"), accepting_since, time.monotonic()):
            if self.ended or time.monotonic() > deadline:
                how = "ended" if self.ended else f"was not up after {START_SECONDS:.0f} s"
                failure = _PortTaken if _TAKEN in self._log.read_text(errors="replace") else ThrowAwayFailed
                raise failure(f"the throw-away RabbitMQ {how}; the last that it printed:\n{self._last_words()}")
            if accepting_since is None and _accepts(self.node.amqp_port) and _accepts(self.node.management_port):
                accepting_since = time.monotonic()
            time.sleep(0.1)

    def end(self) -> None:
        """Let go of the leash: the node is ended at once, and its folder removed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        _dismiss_epmd(self.node.epmd_port)

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return "\n".join(f"  {line}" for line in lines[-12:]) or "  (nothing)"


def is_up(log: str, accepting_since: float | None, now: float) -> bool:
    return _UP in log or (accepting_since is not None and now - accepting_since > SETTLED_SECONDS)


@contextmanager
def throw_away(folder: Path, ours: Mapping[str, str]) -> Iterator[ThrowAway]:
    """Start a node below the folder, and end it with the context. ThrowAwayFailed says why there is none."""
    server = find_server(ours.get("PATH", os.defpath))
    if server is None:
        raise ThrowAwayFailed(HOW_TO_GET_ONE)
    broker = _start_free(server, folder / "rabbitmq", ours)
    try:
        broker.url_file.write_text(f"{write_url(broker.node.amqp)}\n")
        yield broker
    finally:
        broker.end()


def _start_free(server: Path, home: Path, ours: Mapping[str, str]) -> ThrowAway:
    """Start a node and wait until it is up; another one, where somebody was faster to its ports."""
    left = _TRIES
    while True:
        broker = _start(server, plan_node(home, SystemRandom()), ours)
        left -= 1
        try:
            broker.await_start()
        except BaseException as error:
            broker.end()
            if not left or not isinstance(error, _PortTaken):
                raise
            shutil.rmtree(home, ignore_errors=True)
        else:
            return broker


def _start(server: Path, node: Node, ours: Mapping[str, str]) -> ThrowAway:
    node.home.mkdir(mode=0o700)
    for name, text in files(node).items():
        (node.home / name).touch(mode=0o600)  # Erlang refuses a cookie that others may read
        (node.home / name).write_text(text)
    (node.home / "conf.d").mkdir()
    log = node.home / "console.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            put_on_leash([str(server)], patience=0, folder=node.home),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(node, ours),
            cwd=node.home,
            start_new_session=True,
        )
    return ThrowAway(node, process, log)


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=5).close()
    except OSError:
        return False
    return True


def _dismiss_epmd(port: int) -> None:
    """Ask epmd to end, where the leash cannot: Erlang starts it as a daemon, and only Linux hands those over."""
    with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=5) as epmd:
        epmd.sendall(b"\x00\x01k")
        epmd.recv(2)
