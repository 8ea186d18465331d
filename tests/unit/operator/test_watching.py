"""The watch is compared with lists: what it missed is taken from there, and one that keeps missing is stale."""

import threading

import pytest
from cluster_objects import Clock, consumer_body, consumer_entry

from redrive_operator import watching as module
from redrive_operator.errors import KubeUnavailable
from redrive_operator.kube import CONSUMERS, REDRIVES
from redrive_operator.registry import Registry, read_entry
from redrive_operator.subject import Key
from redrive_operator.watching import STALE_SECONDS, Watched, Watching

ORDERS = Key("shop", "orders")
DEADLINE = 10.0


class Cluster:
    """Has consumers in some version. `before_list` is what happens shortly before each list, one after the other."""

    def __init__(self):
        self.bodies = {}
        self.before_list = []
        self.listed = []
        self.raises = None

    def put(self, version, name="orders", **more):
        body = consumer_body(name, version=version, **more)
        self.bodies[Key(body["metadata"]["namespace"], name)] = body

    def list_versions(self, kind, *, namespace=None, page=500):
        self.listed.append((str(kind), namespace))
        if self.before_list:
            self.before_list.pop(0)()
        if self.raises is not None:
            raise self.raises
        return {
            key: body["metadata"]["resourceVersion"]
            for key, body in self.bodies.items()
            if namespace in (None, key.namespace)
        }

    def get(self, kind, key):
        return self.bodies.get(key)


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def found():
    return []


@pytest.fixture
def watching(cluster, registry, clock, found):
    def take(key, uid, body):
        found.append((key, body and body["metadata"]["resourceVersion"]))
        registry.put(read_entry(body)) if body else registry.drop(key, uid=uid)

    return Watching(cluster, [consumers_of(registry, take)], [None], clock=clock)


def consumers_of(registry, take):
    return Watched(CONSUMERS, lambda: [entry.subject for entry in registry.consumers()], take)


def test_watch_that_has_shown_everything_is_right(watching, cluster, registry, found, clock):
    cluster.put("5")
    registry.put(consumer_entry(version="5"))
    clock.now += 60
    assert watching.look() == 0
    assert (found, watching.age()) == ([], 0.0)


@pytest.mark.parametrize("known", [None, "4"], ids=["unknown", "older"])
def test_change_that_the_watch_missed_is_taken_from_the_list(watching, cluster, registry, found, known):
    cluster.put("5")
    if known:
        registry.put(consumer_entry(version=known))
    assert watching.look() == 1
    assert found == [(ORDERS, "5")]
    assert watching.look() == 0


def test_deletion_that_the_watch_missed_is_taken_from_the_list(watching, registry, found):
    registry.put(consumer_entry())
    assert watching.look() == 1
    assert found == [(ORDERS, None)]


def test_change_that_the_watch_shows_a_moment_later_was_not_missed(watching, cluster, registry, found):
    cluster.put("5")
    cluster.before_list = [lambda: None, lambda: registry.put(consumer_entry(version="5"))]
    assert watching.look() == 0
    assert (found, watching.age()) == ([], 0.0)


def test_object_that_was_made_after_the_list_was_not_missed(watching, cluster, registry, found):
    registry.put(consumer_entry(version="5"))
    cluster.before_list = [lambda: None, lambda: cluster.put("5")]
    assert watching.look() == 0


def test_object_that_changes_all_the_time_was_not_missed(watching, cluster, registry, found):
    """Both lists are ahead of the watch by one version, and in between it came on."""
    cluster.put("5")
    registry.put(consumer_entry(version="4"))
    cluster.before_list = [lambda: None, lambda: (registry.put(consumer_entry(version="5")), cluster.put("6"))]
    assert watching.look() == 0
    assert found == []


def test_watch_that_keeps_missing_is_stale(watching, cluster, clock):
    for version in range(1, 7):
        assert not watching.is_stale()
        clock.now += 60
        cluster.put(str(version))
        assert watching.look() == 1
        if clock.now > 1000 + STALE_SECONDS:
            break
    assert watching.is_stale()
    assert watching.age() > STALE_SECONDS


def test_one_good_look_makes_it_right_again(watching, cluster, clock):
    cluster.put("1")
    clock.now += STALE_SECONDS + 1
    watching.look()
    assert watching.is_stale()
    clock.now += 60
    watching.look()
    assert (watching.is_stale(), watching.age()) == (False, 0.0)


def test_api_server_that_does_not_answer_makes_no_watch_stale(watching, cluster, clock):
    cluster.raises = KubeUnavailable("nobody answered")
    clock.now += STALE_SECONDS + 1
    with pytest.raises(KubeUnavailable):
        watching.look()
    assert not watching.is_stale()


def test_only_the_namespaces_that_are_served_are_listed(cluster, registry, clock):
    cluster.put("1", namespace="foreign")
    Watching(cluster, [consumers_of(registry, pytest.fail)], ["shop", "bills"], clock=clock).look()
    assert cluster.listed == [("RetryingConsumer", "shop"), ("RetryingConsumer", "bills")]


def test_every_kind_is_compared_and_one_that_keeps_being_missed_is_enough(cluster, registry, clock):
    cluster.put("5")
    registry.put(consumer_entry(version="5"))
    missed = []
    redrives = Watched(REDRIVES, list, lambda key, _uid, _body: missed.append(key))
    watching = Watching(cluster, [consumers_of(registry, pytest.fail), redrives], [None], clock=clock)
    clock.now += STALE_SECONDS + 1
    assert watching.look() == 1
    assert (missed, watching.is_stale()) == ([ORDERS], True)


def test_watching_goes_on_after_an_error(watching, cluster, monkeypatch):
    monkeypatch.setattr(module, "LIST_SECONDS", 0.01)
    looked = threading.Event()

    def fail():
        raise ZeroDivisionError("a defect")

    def refuse():
        raise KubeUnavailable("nobody answered")

    cluster.before_list = [fail, refuse, looked.set]
    watching.start()
    try:
        assert looked.wait(DEADLINE)
    finally:
        watching.stop()


def test_stop_ends_a_wait(watching, cluster, registry, monkeypatch, found):
    monkeypatch.setattr(module, "LIST_SECONDS", 0.01)
    monkeypatch.setattr(module, "PATIENCE_SECONDS", DEADLINE)
    cluster.put("5")
    looked = threading.Event()
    cluster.before_list = [looked.set]
    watching.start()
    assert looked.wait(DEADLINE)
    watching.stop()
    assert not watching._thread.is_alive()
    assert found == []


def test_what_was_never_started_can_be_stopped(watching):
    watching.stop()
