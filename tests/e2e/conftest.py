"""A real cluster: the one that is up, else one brought up for this session and taken down after it.

Where none can run, tests skip on a laptop and fail in CI. When a test fails, the events and pods of its namespace
are printed, because by the time a person looks they are gone.
"""

import os
import subprocess
from contextlib import contextmanager

import pytest
from e2e.installation import Installation
from e2e.ledger import Ledger
from e2e.namespaces import Namespace, describe, made_namespace
from e2e.sharing import kept, one_at_a_time, shared_folder
from e2e.shops import TAGS, Shop

from redrive_testbed import chart, clusters, images, network, pod_broker
from redrive_testbed.chart import Helm
from redrive_testbed.dockerless import Dockerless
from redrive_testbed.errors import CommandFailed, Refused
from redrive_testbed.operator_manifests import NAME, NAMESPACE
from redrive_testbed.places import Places
from redrive_testbed.pod_security import RESTRICTED
from redrive_testbed.rabbitmq import start_broker
from redrive_testbed.rabbitmq_release import TESTED

IMAGE = "redrive/consumer:dev"


def skip_or_fail(reason):
    """Skip on a laptop; in CI a skip would look like a success."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="session")
def machine_places():
    return Places.from_environment()


@pytest.fixture(scope="session")
def everybody(tmp_path_factory):
    """Give a folder that all processes of this run have."""
    return shared_folder(tmp_path_factory)


@pytest.fixture(scope="session")
def cluster(machine_places, everybody):
    with one_at_a_time(everybody, "cluster"):
        standing = clusters.current(machine_places)
        if standing is None and "PYTEST_XDIST_WORKER" in os.environ:
            pytest.fail("tests that go several at a time need a cluster that is up: make cluster-up")
        try:
            cluster = clusters.up(machine_places, context=os.environ.get("REDRIVE_CONTEXT") or None)
        except Refused as reason:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(reason))
    yield cluster
    if standing is None:
        clusters.down(machine_places)


@pytest.fixture(scope="session")
def load_images(cluster, machine_places, everybody):
    """Give the project's images to every node that the cluster has at the moment of the call."""
    with one_at_a_time(everybody, "images"):
        archives = images.archive(machine_places)

    def load():
        with one_at_a_time(everybody, "images"):
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


@pytest.fixture(scope="session")
def brokers(cluster, tmp_path_factory, machine_places):
    """Give the broker of a release, running, where pods can reach it; it is started when first asked for."""
    if not isinstance(cluster, Dockerless):
        skip_or_fail("brokers of this machine are reached from pods of the cluster without Docker only")
    started = {}

    def find(release):
        if release not in started:
            places = Places(state=tmp_path_factory.mktemp(f"rabbitmq-{release}"), cache=machine_places.cache)
            started[release] = start_broker(places, release, listen=(network.HOST,), leashed=True)
        if not started[release].running():  # a test that stopped it does not fail the next one
            started[release].start()
        return started[release]

    yield find
    for broker in started.values():
        broker.remove()


@pytest.fixture
def broker(brokers, release, namespace):
    """Give the broker the name `rabbitmq` in this test's namespace: a Service, and a Secret with its keys."""
    broker = brokers(release)
    settings, admin = broker.settings, broker.settings.credentials
    ports = settings.ports.amqp, settings.ports.management
    outside = pod_broker.Outside(settings.listen, *ports, user=admin.user, password=admin.password)
    namespace.apply(*pod_broker.manifests("rabbitmq", namespace.name, outside))
    return broker


@pytest.fixture(scope="session")
def must(kubectl):
    """Call kubectl as the administrator, and fail with its own words if it fails."""

    def must(*words, stdin=None):
        done = kubectl(*words, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    return must


@pytest.fixture(scope="session")
def cluster_helm(cluster, must, machine_places, everybody):
    """Give Helm on the cluster, whatever is installed there; in the end the operator's namespace goes."""

    def end():
        must("delete", "namespace", NAMESPACE, "--ignore-not-found")

    with kept(everybody, "namespace", begin=lambda: None, end=end):
        yield Helm.of(machine_places, cluster)


@pytest.fixture
def helm(cluster_helm, must, image):
    """Give Helm on a cluster where no operator is; at the end there is none again, whatever the test did."""
    chart.clear(cluster_helm, must)
    yield cluster_helm
    chart.uninstall(cluster_helm)


@pytest.fixture(scope="session")
def operator(kubectl, must, cluster_helm, image, everybody):
    """Give the operator, installed; at the end it must have let go of every object, and never have crashed."""
    installation = Installation(must, cluster_helm)

    def begin():
        try:
            installation.install()
        except (AssertionError, CommandFailed):
            print(kubectl("describe", "pods", "--namespace", NAMESPACE).stdout)
            print(kubectl("logs", f"deployment/{NAME}", "--namespace", NAMESPACE).stdout)
            raise

    def end():
        restarts = installation.restarts()
        installation.uninstall()
        assert restarts == [0], "the operator's container was started again by itself"

    with kept(everybody, "operator", begin=begin, end=end):
        yield installation


@contextmanager
def opened_shop(kubectl, broker):
    """Open a shop in a namespace that enforces Restricted; at the end the operator must let its objects go."""
    with made_namespace(kubectl) as namespace:
        namespace.kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
        vhost = broker.add_vhost(namespace.name)
        broker.add_user(vhost.user, vhost.password, tags=TAGS)
        shop = Shop(namespace, broker, vhost, Ledger(network.HOST))
        shop.open()
        yield shop
        shop.close()


@pytest.fixture(scope="session")
def open_bare_shop(kubectl, brokers):
    """Open a shop on the broker of a release, as a context; whoever opens it sees to an operator."""
    return lambda release: opened_shop(kubectl, brokers(release))


@pytest.fixture(scope="session")
def open_shop(operator, open_bare_shop):
    """Open a shop on the broker of a release, as a context."""
    return open_bare_shop


@pytest.fixture
def bare_shop(helm, open_bare_shop):
    """Give a shop on the newest release, where the test itself sees to an operator, which is there at the end."""
    with open_bare_shop(TESTED[-1]) as shop:
        yield shop


@pytest.fixture
def shop(open_shop, release):
    """Give a shop on the broker of each release."""
    with open_shop(release) as shop:
        yield shop


@pytest.fixture
def newest_shop(open_shop):
    """Give a shop on the newest release only, for what has nothing to do with the broker."""
    with open_shop(TESTED[-1]) as shop:
        yield shop


@pytest.fixture
def namespace(kubectl):
    with made_namespace(kubectl) as namespace:
        yield namespace


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Print what was in the namespace of a test that failed, and what the operator said, while it is all there."""
    report = yield
    if report.when == "call" and report.failed:
        for name in sorted({shown.name for shown in item.funcargs.values() if isinstance(shown, Namespace | Shop)}):
            report.sections.append((f"namespace {name}", describe(Namespace(name, item.funcargs["kubectl"]))))
        if not {"operator", "helm"}.isdisjoint(item.funcargs):
            words = "logs", f"deployment/{NAME}", "--namespace", NAMESPACE, "--tail=200"
            report.sections.append(("the operator's log", item.funcargs["kubectl"](*words).stdout))
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Let what needs no operator go first: it would answer objects that other tests write themselves."""
    items.sort(key=lambda item: "operator" in item.fixturenames)
    chosen = [wanted for option, wanted in (("--together", True), ("--alone", False)) if config.getoption(option)]
    if chosen:
        left = [item for item in items if bears_others(item) not in chosen]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if bears_others(item) in chosen]


def bears_others(item):
    """Say whether a test can go beside others: it has a shop of its own, and does nothing to what they share."""
    return "operator" in item.fixturenames and item.get_closest_marker("alone") is None
