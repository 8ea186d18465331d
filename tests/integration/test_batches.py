"""Many consumers at once, on real brokers: one wait for all, and what goes wrong with one costs that one alone."""

from datetime import timedelta

import pytest

from redrive.amqp import Amqp, OnDemand
from redrive.elements import Binding, Exchange, Queue, freeze
from redrive.endpoints import parse_amqp_url
from redrive.errors import AccessRefused, BrokerError, Unreachable, VhostTaken
from redrive.ladder import RETRY, delivery_binding, routing_key
from redrive.properties import Properties
from redrive.provision import Ask, ensure_consumer, ensure_consumers, ensure_vhost
from redrive.topology import Owner, Wanted
from redrive_testbed.shell import wait_until

US = Owner("a-cluster")
SHORT = timedelta(seconds=1)


def wanted(name, **more):
    return Wanted(f"shop/{name}", name, SHORT, **more)


MANY = [wanted(f"c{number}") for number in range(5)]
ASKS = [Ask(one) for one in MANY]


class Watched(Amqp):
    """Notes each wait, and what is bound by then."""

    def watch(self, management):
        self.waits, self._management = [], management
        return self

    def wait(self, seconds):
        queues = {one.queue for one in MANY}
        bound = [binding for binding in self._management.read().bindings if binding.destination in queues]
        self.waits.append([binding for binding in bound if binding.source])
        super().wait(0)


@pytest.fixture
def shared(amqp, management):
    return ensure_vhost(1, owner=US, amqp=amqp, management=management)


@pytest.fixture
def endpoint(vhost):
    return parse_amqp_url(vhost.amqp_url)


@pytest.fixture
def watched(endpoint, management):
    with Watched([endpoint]) as door:
        yield door.watch(management)


def test_batch_waits_once_and_binds_nothing_before(shared, watched, management):
    reports = ensure_consumers(ASKS, amqp=watched, management=management)
    assert [report.ready for report in reports] == [True] * len(MANY)
    assert watched.waits == [[]]
    homes = {delivery_binding(one.address, one.queue) for one in MANY}
    assert homes <= management.read().bindings


def test_batch_without_a_management_api_waits_once_too(shared, watched):
    reports = ensure_consumers(ASKS, amqp=watched)
    assert [report.ready for report in reports] == [True] * len(MANY)
    assert watched.waits == [[]]


def test_batch_that_makes_no_queue_does_not_wait(shared, watched, management):
    ensure_consumers(ASKS, amqp=watched, management=management)
    watched.unbind(delivery_binding("shop/c1", "c1"))
    del watched.waits[:]
    reports = ensure_consumers(ASKS, amqp=watched, management=management)
    assert [len(report.repaired) for report in reports] == [0, 1, 0, 0, 0]
    assert watched.waits == []


def test_consumers_of_a_batch_work(shared, amqp, management):
    ensure_consumers(ASKS, amqp=amqp, management=management)
    for one in MANY:
        amqp.publish(RETRY, routing_key(SHORT, one.address), b"m", Properties(delivery_mode=2))
    wait_until("retries are missing", lambda: all(amqp.count_ready(one.queue) == 1 for one in MANY), within=20)


@pytest.fixture
def narrow(broker, vhost, endpoint):
    """Give the door of somebody who may not make the queue `c2`."""
    user = f"narrow-{vhost.name}"
    broker.api.put("users", user, body={"password": "narrow", "tags": ""})
    body = {"configure": "^(redrive|c[^2]).*", "write": ".*", "read": ".*"}
    broker.api.put("permissions", vhost.name, user, body=body)
    with Amqp([endpoint.as_user(user, "narrow")]) as door:
        yield door
    broker.api.delete("users", user)


def test_consumer_that_is_refused_costs_itself_alone(shared, narrow, management):
    reports = ensure_consumers(ASKS, amqp=narrow, management=management)
    assert isinstance(reports[2], AccessRefused)
    assert "'c2'" in str(reports[2])
    assert [report.ready for number, report in enumerate(reports) if number != 2] == [True] * 4
    assert delivery_binding("shop/c4", "c4") in management.read().bindings


def test_single_consumer_that_is_refused_is_raised(shared, narrow, management):
    with pytest.raises(AccessRefused, match="'c2'"):
        ensure_consumer(MANY[2], amqp=narrow, management=management)


def test_queue_that_cannot_be_used_costs_itself_alone_and_keeps_its_record(shared, amqp, management):
    amqp.declare(Queue("c1", freeze({"x-queue-type": "quorum", "x-max-length": 5})))
    recorded = (Binding("events", "c1", "queue", "a"),)
    asks = [Ask(one, recorded if one.queue == "c1" else ()) for one in MANY]
    reports = ensure_consumers(asks, amqp=amqp, management=management)
    assert [report.ready for report in reports] == [True, False, True, True, True]
    assert reports[1].bindings == recorded


def test_each_consumer_is_rid_of_its_own_stale_bindings_alone(shared, amqp, management):
    amqp.declare(Exchange("events"))
    bound = [wanted(name, bindings=(Binding("events", name, "queue", "a"),)) for name in ("c0", "c1")]
    ensure_consumers([Ask(one) for one in bound], amqp=amqp, management=management)
    ensure_consumers([Ask(MANY[0]), Ask(bound[1])], amqp=amqp, management=management)
    left = [binding.destination for binding in management.read().bindings if binding.source == "events"]
    assert left == ["c1"]


def test_lost_connection_ends_the_batch(shared, endpoint, management):
    with Amqp([endpoint]) as door:
        door.close()
        with pytest.raises(BrokerError):
            ensure_consumers(ASKS, amqp=door, management=management)
        assert door.gone


def test_connection_is_made_when_something_is_missing_and_not_again_when_nothing_is(endpoint, amqp, management):
    def turn():
        reading = management.read()
        with OnDemand([endpoint], reading=reading) as door:
            doors = {"amqp": door, "management": management, "reading": reading}
            ensure_vhost(1, owner=US, **doors)
            reports = ensure_consumers(ASKS, **doors)
        return door.opened, [report.ready for report in reports]

    assert turn() == (True, [True] * len(MANY))
    assert turn() == (False, [True] * len(MANY))
    amqp.unbind(delivery_binding("shop/c1", "c1"))
    assert turn() == (True, [True] * len(MANY))


def test_connection_on_demand_asks_the_broker_for_what_no_reading_told(endpoint, broker):
    with OnDemand([endpoint]) as door:
        assert not door.opened
        assert door.version == broker.version
        assert door.opened
        assert door.cluster_name == door.amqp.cluster_name


def test_second_cluster_is_refused_by_a_reading_without_a_connection(shared, endpoint, management):
    reading = management.read()
    with OnDemand([endpoint], reading=reading) as door:
        with pytest.raises(VhostTaken, match="a-cluster"):
            ensure_vhost(1, owner=Owner("another"), amqp=door, management=management, reading=reading)
        assert not door.opened


def test_cluster_whose_reading_is_too_old_to_know_the_owner_is_refused_by_amqp(endpoint, amqp, management):
    reading = management.read()
    ensure_vhost(1, owner=US, amqp=amqp, management=management)
    with OnDemand([endpoint], reading=reading) as door, pytest.raises(VhostTaken, match="a-cluster"):
        ensure_vhost(1, owner=Owner("another"), amqp=door, management=management, reading=reading)


def test_credentials_that_the_broker_does_not_know_end_a_batch_at_the_first_consumer(shared, vhost, management):
    wrong = parse_amqp_url(vhost.amqp_url).as_user(vhost.user, "wrong")
    with OnDemand([wrong], reading=management.read()) as door, pytest.raises(AccessRefused, match="does not know"):
        ensure_consumers(ASKS, amqp=door, management=management)


def test_broker_that_is_away_ends_a_batch(shared, management):
    nowhere = parse_amqp_url("amqp://u:p@127.0.0.1:1")
    with OnDemand([nowhere], reading=management.read()) as door, pytest.raises(Unreachable):
        ensure_consumers(ASKS, amqp=door, management=management)
