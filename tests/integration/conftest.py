"""Real RabbitMQ brokers: every test that asks for `broker` or `vhost` runs once on each release.

Where no broker can run, tests skip on a laptop and fail in CI: a skip there would look like a success.
"""

import os
import secrets
import signal
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from redrive import workshop
from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.errors import BrokerError
from redrive.management import Management
from redrive_testbed.errors import Refused
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import start_broker
from redrive_testbed.rabbitmq_cluster import start_cluster
from redrive_testbed.shell import wait_until

CGROUP_V1, CGROUP_V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
MEMORY_LIMIT = 320 << 20


@pytest.fixture(scope="session")
def places(tmp_path_factory):
    """Start brokers below a folder of this session; their root file systems are those of the machine."""
    return lambda name: Places(state=tmp_path_factory.mktemp(name), cache=Places.from_environment().cache)


@pytest.fixture(scope="session")
def session_broker(release, places):
    with refused_skips():
        broker = start_broker(places(f"rabbitmq-{release}"), release, leashed=True)
    yield broker
    broker.remove()


@pytest.fixture
def broker(session_broker):
    """Give the session's broker of each release, running: a test that killed it does not fail the next one."""
    if not session_broker.running():
        session_broker.start()
    return session_broker


@pytest.fixture
def vhost(broker):
    """Give a vhost of its own to each test, with a user who may do everything in it and nothing elsewhere."""
    name = f"test-{secrets.token_hex(4)}"
    yield broker.add_vhost(name)
    broker.delete_vhost(name)


@pytest.fixture
def own_broker(release, places):
    """Give a broker that no other test uses, for tests that end it."""
    with refused_skips():
        broker = start_broker(places(f"own-{release}"), release, leashed=True)
    yield broker
    broker.remove()


@pytest.fixture
def cluster(release, places):
    """Give a cluster of three nodes that no other test uses."""
    with refused_skips():
        cluster = start_cluster(places(f"cluster-{release}"), release, leashed=True)
    yield cluster
    cluster.remove()


@contextmanager
def refused_skips():
    try:
        yield
    except Refused as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


@pytest.fixture(autouse=True)
def grown_up_queues(request, monkeypatch):
    """Spare tests the wait until new queues are on disk; one that kills a broker names this fixture, to have it."""
    if "grown_up_queues" not in [mark.args[0] for mark in request.node.iter_markers("usefixtures")]:
        monkeypatch.setattr(workshop, "GROWING_UP_SECONDS", 0)


@pytest.fixture
def amqp(vhost):
    """Give the AMQP door to the test's vhost, as the user who may do everything in it."""
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as door:
        yield door


@pytest.fixture
def doors(vhost):
    """Give a function that opens one more connection to the test's vhost."""
    opened = []

    def open_door():
        opened.append(Amqp([parse_amqp_url(vhost.amqp_url)]))
        return opened[-1]

    yield open_door
    for door in opened:
        door.close()


@pytest.fixture
def management(broker, vhost):
    """Give the management door to the test's vhost, as the broker's administrator."""
    admin = broker.settings.credentials
    return Management(parse_management_url(broker.management_url).as_user(admin.user, admin.password), vhost=vhost.name)


class Collector:
    """Takes every message of a queue in a thread of its own, and notes when each came."""

    def __init__(self, url, queue):
        self._url, self._queue = url, queue
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.arrivals = []
        self.failure = None

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        self._stopping.set()
        self._thread.join(30)

    def ids(self):
        return [delivery.body.decode() for _, delivery in list(self.arrivals)]

    def wait_for(self, ids, *, within):
        """Wait until every one of these has come at least once; return when each came first, by its id."""
        wanted = set(ids)
        wait_until("some messages are still missing", lambda: self._fails() or wanted <= set(self.ids()), within=within)
        return {delivery.body.decode(): at for at, delivery in reversed(self.arrivals)}

    def _fails(self):
        assert self.failure is None, f"the collector ended: {self.failure!r}"
        return False

    def _run(self):
        try:
            with Amqp([parse_amqp_url(self._url)]) as door:
                for delivery in door.consume(self._queue, prefetch=500, patience=0.2):
                    if delivery is not None:
                        self.arrivals.append((time.monotonic(), delivery))
                        door.ack(delivery.tag)
                    if self._stopping.is_set():
                        return
        except BrokerError as error:
            self.failure = error


@pytest.fixture
def collect(vhost):
    """Give a function that starts collecting from a queue."""
    collectors = []

    def start(queue):
        collectors.append(Collector(vhost.amqp_url, queue).start())
        return collectors[-1]

    yield start
    for collector in collectors:
        collector.stop()


@pytest.fixture
def group():
    """Make a group with a limit, as a container has one; without the right to, there is nothing to test in."""
    version_1 = (CGROUP_V1 / "memory.limit_in_bytes").exists()
    folder = (CGROUP_V1 if version_1 else CGROUP_V2) / f"redrive-test-{secrets.token_hex(4)}"
    limit = "memory.limit_in_bytes" if version_1 else "memory.max"
    try:
        folder.mkdir()
        (folder / limit).write_text(str(MEMORY_LIMIT))
    except OSError as problem:
        with suppress(OSError):
            folder.rmdir()
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no control group can be made here: {problem}")
    yield folder
    for pid in (folder / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    wait_until("somebody is left in the group", lambda: not (folder / "cgroup.procs").read_text(), within=10)
    folder.rmdir()
