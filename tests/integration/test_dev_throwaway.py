"""`redrive dev` without a broker: one is started from what is installed, meets nobody, and leaves no trace.

RabbitMQ is not installed on this machine, but in a root file system of the test bed. Laid over this machine's /usr in
a mount namespace, it looks as Debian's package does, its wrapper in /usr/sbin included.
"""

import os
import re
import shutil
import signal
import socket
import tempfile
from pathlib import Path

import pytest
from dev_process import Dev
from dev_project import EXAMPLE
from kernel_lists import LOOPBACK, listening_addresses

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.properties import Properties
from redrive_testbed.shell import wait_until

INSTALLED = 'mount -t overlay overlay -o "lowerdir=$1/usr:/usr" /usr; shift; exec "$@"'
NOBODY = 65534
# Somebody who is not root, but may read what root has: Python itself may lie in root's home.
AS_NOBODY = (
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--inh-caps=+dac_read_search",
    "--ambient-caps=+dac_read_search",
)


@pytest.fixture
def folder():
    """Give a folder that others can get to: those of pytest are closed to them, and closed again if opened."""
    with tempfile.TemporaryDirectory(prefix="redrive-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def start(session_broker, folder):
    """Give a function that starts it where that release is installed, with an example that everybody may read."""
    started = []
    example = shutil.copytree(EXAMPLE, folder / "orders", ignore=shutil.ignore_patterns("__pycache__"))
    installed = ("unshare", "--mount", "--propagation", "private", "sh", "-euc", INSTALLED, "sh", session_broker.root)

    def start_dev(*words, user=()):
        home = folder / "home"
        home.mkdir(exist_ok=True)
        os.chown(home, NOBODY if user else 0, -1)
        how = {"prefix": (*installed, *user), "env": {"HOME": str(home), "RABBITMQ_NODENAME": "rabbit@elsewhere"}}
        started.append(Dev(folder, "-f", example / "orders.yaml", *words, **how))
        return started[-1]

    yield start_dev
    for dev in started:
        dev.end()


def url_of(dev):
    [line] = dev.lines("connect", "the URL, with its password, is in")
    return Path(line.split()[8]).read_text().strip()


def publish(dev):
    with Amqp([parse_amqp_url(url_of(dev))]) as amqp:
        amqp.publish("", "orders", b'{"number": 1, "succeeds_on": 2}', Properties(message_id="order-1"))


def broker_of(dev):
    """List the processes of the broker: the Erlang VM, and the daemon by which such find each other."""
    return [*dev.pids("beam"), *dev.pids("epmd")]


@pytest.mark.parametrize("user", [(), AS_NOBODY], ids=["root", "nobody"])
def test_throw_away_broker_serves_and_is_gone_without_a_trace(start, session_broker, user):
    dev = start(user=user)
    dev.wait_for("consuming", within=240)
    assert dev.lines(f"redrive-demo/orders on RabbitMQ {session_broker.version} at 127.0.0.1:")
    assert {Path(f"/proc/{pid}").stat().st_uid for pid in broker_of(dev)} == {NOBODY if user else 0}
    publish(dev)
    dev.wait_for("order-1", "2/3", "✔ done")
    dev.process.terminate()
    assert dev.wait() == 0, dev.said
    dev.wait_for_nobody()
    assert list(dev.temp.iterdir()) == []
    assert list((dev.temp.parent / "home").iterdir()) == []


def test_throw_away_broker_is_seen_from_this_machine_alone(start):
    dev = start()
    dev.wait_for("consuming", within=240)
    found = listening_addresses(broker_of(dev))
    assert len(found) >= 4  # AMQP, management, Erlang's own, epmd's
    assert set(found) <= LOOPBACK
    assert parse_amqp_url(url_of(dev)).password not in dev.out + dev.err


def test_throw_away_broker_does_not_survive_a_killed_redrive_dev(start):
    dev = start()
    dev.wait_for("consuming", within=240)
    assert len(broker_of(dev)) >= 2
    dev.process.kill()
    dev.wait_for_nobody()
    wait_until("its folder is left", lambda: not list(dev.temp.iterdir()), within=30)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_while_the_broker_starts_leaves_nothing(start, how):
    dev = start()
    wait_until("there is no broker", lambda: dev.pids("beam"), within=60, every=0.02)
    dev.process.send_signal(how)
    assert dev.wait() == 130, dev.said
    dev.wait_for_nobody()
    assert list(dev.temp.iterdir()) == []
    assert dev.err == ""


def test_port_that_somebody_else_takes_first_costs_a_moment_and_no_more(start):
    dev = start()
    wait_until("there is no configuration", lambda: dev.pids("beam"), within=60, every=0.02)
    [conf] = dev.temp.glob("*/rabbitmq/rabbitmq.conf")
    [port] = re.findall(r"management.tcp.port = (\d+)", conf.read_text())
    with socket.create_server(("127.0.0.1", int(port))):
        dev.wait_for("consuming", within=240)
        assert not conf.exists() or port not in conf.read_text()
    dev.process.terminate()
    assert dev.wait() == 0, dev.said
    dev.wait_for_nobody()
    assert list(dev.temp.iterdir()) == []


def test_broker_that_dies_ends_the_run_with_a_sentence_and_1(start):
    dev = start()
    dev.wait_for("consuming", within=240)
    for pid in dev.pids("beam"):
        os.kill(pid, signal.SIGKILL)
    assert dev.wait() == 1, dev.said
    assert dev.lines("the throw-away RabbitMQ has ended")
    dev.wait_for_nobody()
    assert list(dev.temp.iterdir()) == []
