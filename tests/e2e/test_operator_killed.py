"""An operator that is killed at any step leaves nothing that the next one does not finish."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e.shops import API

from redrive.access import user_name
from redrive_testbed import network
from redrive_testbed.operator_manifests import CONSUMER_IMAGE

pytestmark = pytest.mark.alone

DYING = Path(__file__).with_name("dying_operator.py")

# Each operator gets as far as its own step: what was done before is there already, so the steps are in their order.
MAKING = (
    "Kube.set_finalizer:1:before",
    "Kube.set_finalizer:1:after",
    "Amqp.declare:1:before",
    "Amqp.declare:1:after",
    "Management.put_policy:1:before",
    "Management.put_policy:1:after",
    "Amqp.declare:7:after",
    "Amqp.wait:1:before",
    "Amqp.declare:20:after",
    "Kube.write_secret:1:before",
    "Kube.write_secret:1:after",
    "Management.put_user:1:after",
    "Management.grant:1:after",
    "Management.grant:1:after",
    "Kube.apply:1:before",
    "Kube.apply:1:after",
    "Kube.apply:2:after",
    "Kube.apply:3:after",
    "Kube.patch_status:1:before",
    "Kube.patch_status:1:after",
)
UNMAKING = (
    "Kube.delete:1:before",
    "Kube.delete:1:after",
    "Amqp.unbind:1:before",
    "Amqp.unbind:1:after",
    "Amqp.delete_queue:1:before",
    "Amqp.delete_queue:1:after",
    "Amqp.delete_queue:2:after",
    "Management.delete_user:1:before",
    "Management.delete_user:1:after",
    "Kube.set_finalizer:1:before",
)


class Graveyard:
    """Starts operators on this machine, one after the other, each of which dies at its step."""

    def __init__(self, cluster, namespace):
        self._environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
        self._flags = ["--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace, "--port", "0"]
        self._flags += ["--consumer-image", CONSUMER_IMAGE, "--interval", "2"]

    def die(self, at):
        command = [sys.executable, DYING, at, *self._flags]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self._environment
        ) as process:
            try:
                said, _ = process.communicate(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()
                said, _ = process.communicate()
                pytest.fail(f"no operator came as far as {at}: {said.decode()[-3000:]}")
        assert process.returncode == -signal.SIGKILL, said.decode()

    @contextmanager
    def living(self):
        """Have one that does not die."""
        with subprocess.Popen(["redrive-operator", *self._flags], stdout=subprocess.DEVNULL) as process:
            try:
                yield
            finally:
                process.terminate()
                process.wait(60)


@pytest.fixture
def alone(operator):
    """Have no operator in the cluster meanwhile."""
    operator.stop()
    yield
    operator.start()


@pytest.fixture
def connection(newest_shop, kubectl):
    """Lend the shop's broker out, by an address that this machine reaches as well as pods do."""
    shop, name = newest_shop, newest_shop.name
    settings, admin = shop.broker.settings, shop.broker.settings.credentials
    data = {
        "uri": f"amqp://{network.HOST}:{settings.ports.amqp}",
        "management_uri": f"http://{network.HOST}:{settings.ports.management}",
        "username": admin.user,
        "password": admin.password,
    }
    spec = {"secretRef": {"name": "admin"}, "allowedNamespaces": [name], "vhosts": [shop.vhost.name]}
    shop.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "admin"}, "stringData": data})
    shop.apply({"apiVersion": API, "kind": "BrokerConnection", "metadata": {"name": name}, "spec": spec})
    yield name
    kubectl("delete", "brokerconnection", name, "--wait=false")  # it goes when its consumers have gone


@pytest.mark.timeout(600)
def test_operator_that_is_killed_at_any_step_is_finished_by_the_next(cluster, newest_shop, connection, alone):
    shop, graveyard = newest_shop, Graveyard(cluster, newest_shop.name)
    broker = {"connectionRef": {"name": connection}, "vhost": shop.vhost.name}
    consumer = shop.consumer(worker=shop.worker(), broker=broker, deletionPolicy="Delete")
    shop.apply(consumer)
    for step in MAKING:
        graveyard.die(step)
    with graveyard.living():
        shop.wait_ready()
        shop.publish({"one": {"succeeds_on": 1}, "two": {"succeeds_on": 2}})
        shop.wait_runs([("one", 1), ("two", 2)])
    shop.namespace.kubectl("delete", "rcon/orders", "--wait=false")
    for step in UNMAKING:
        graveyard.die(step)
    with graveyard.living():
        shop.namespace.wait_for("the end of the consumer", lambda: not shop.namespace.has("rcon/orders"))
    assert shop.ready("orders") is None
    assert shop.ready("redrive.dead.orders") is None
    user = user_name(f"{shop.name}/orders", shop.vhost.name)
    assert user not in {found["name"] for found in shop.broker.api.get("users")}
