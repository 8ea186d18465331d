"""A real cluster: the one that is up, else one brought up for this session and taken down after it.

Where none can run, tests skip on a laptop and fail in CI. When a test fails, the events and pods of its namespace
are printed, because by the time a person looks they are gone.
"""

import json
import os
import secrets
import subprocess
import time

import pytest

from redrive_testbed import clusters, images, network, pod_broker
from redrive_testbed.dockerless import Dockerless
from redrive_testbed.errors import Refused
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import start_broker

IMAGE = "redrive/consumer:dev"


def skip_or_fail(reason):
    """Skip on a laptop; in CI a skip would look like a success."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="session")
def machine_places():
    return Places.from_environment()


@pytest.fixture(scope="session")
def cluster(machine_places):
    standing = clusters.current(machine_places)
    try:
        yield clusters.up(machine_places, context=os.environ.get("REDRIVE_CONTEXT") or None)
    except Refused as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    if standing is None:
        clusters.down(machine_places)


@pytest.fixture(scope="session")
def load_images(cluster, machine_places):
    """Give the project's images to every node that the cluster has at the moment of the call."""
    archives = images.archive(machine_places)

    def load():
        for archive in archives:
            cluster.load(archive)

    return load


@pytest.fixture(scope="session")
def image(load_images):
    """Name an image that every node has, with a Python in it."""
    load_images()
    return IMAGE


@pytest.fixture(scope="session")
def kubectl(cluster):
    """Call kubectl as the administrator; the result is returned, whatever it is."""

    def call(*words, stdin=None):
        command = [cluster.kubectl, "--kubeconfig", str(cluster.kubeconfig), *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=240, check=False)

    return call


RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(scope="session")
def pod(image):
    """Make the manifest of a pod that a namespace enforcing Restricted takes; `container` adds to its one container."""

    def make(name, *, command=("sleep", "600"), image=image, labels=None, container=None, **spec):
        main = {"name": "main", "image": image, "securityContext": RESTRICTED, **(container or {})}
        if command:
            main["command"] = list(command)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [main], "terminationGracePeriodSeconds": 1, **spec},
        }

    return make


class Namespace:
    """A namespace of one test, with the calls that tests make in it."""

    def __init__(self, name, kubectl):
        self.name = name
        self._kubectl = kubectl

    def kubectl(self, *words, stdin=None):
        """Call kubectl in this namespace, and fail with its own words if it fails."""
        done = self.try_kubectl(*words, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def try_kubectl(self, *words, stdin=None):
        return self._kubectl("--namespace", self.name, *words, stdin=stdin)

    def apply(self, *objects):
        items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "--filename", "-", stdin=items)

    def get(self, *what):
        return json.loads(self.kubectl("get", *what, "--output", "json"))

    def events(self, reason):
        return [event for event in self.get("events")["items"] if event["reason"] == reason]

    def wait_for(self, what, ready, within=90):
        """Wait until `ready` returns something true, and return it."""
        deadline = time.monotonic() + within
        while not (found := ready()):
            assert time.monotonic() < deadline, f"{what} did not come within {within} s"
            time.sleep(0.5)
        return found


@pytest.fixture(scope="session")
def session_broker(cluster, release, tmp_path_factory, machine_places):
    """Start a broker of each release where pods can reach it; a cluster that is not ours cannot."""
    if not isinstance(cluster, Dockerless):
        skip_or_fail("brokers of this machine are reached from pods of the cluster without Docker only")
    places = Places(state=tmp_path_factory.mktemp(f"rabbitmq-{release}"), cache=machine_places.cache)
    broker = start_broker(places, release, listen=(network.HOST,), leashed=True)
    yield broker
    broker.stop()
    broker.remove()


@pytest.fixture
def broker(session_broker, namespace):
    """Give the broker the name `rabbitmq` in this test's namespace: a Service, and a Secret with its keys."""
    settings = session_broker.settings
    outside = pod_broker.Outside(
        settings.listen,
        settings.ports.amqp,
        settings.ports.management,
        user=settings.credentials.user,
        password=settings.credentials.password,
    )
    namespace.apply(*pod_broker.manifests("rabbitmq", namespace.name, outside))
    return session_broker


@pytest.fixture
def namespace(kubectl, request):
    name = f"e2e-{secrets.token_hex(4)}"
    namespace = Namespace(name, kubectl)
    namespace.kubectl("create", "namespace", name)
    # Pods need the account that a controller makes for each namespace a moment later.
    namespace.wait_for("the service account", lambda: not namespace.try_kubectl("get", "sa", "default").returncode)
    yield namespace
    if request.node.stash.get(FAILED, False):
        dump(namespace)
    kubectl("delete", "namespace", name, "--wait=false")


FAILED = pytest.StashKey()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    if outcome.get_result().failed:
        item.stash[FAILED] = True


def dump(namespace):
    for words in (("get", "all", "--output", "wide"), ("get", "events"), ("describe", "pods")):
        print(f"--- kubectl {' '.join(words)} in {namespace.name}")
        print(namespace.try_kubectl(*words).stdout)
    for pod in namespace.get("pods")["items"]:
        name = pod["metadata"]["name"]
        print(f"--- logs of {name}")
        print(namespace.try_kubectl("logs", name, "--all-containers", "--tail", "100").stdout)
