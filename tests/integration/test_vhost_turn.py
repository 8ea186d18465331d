"""A turn of the operator beside somebody who deletes what it is just reading."""

import time
from dataclasses import replace
from datetime import timedelta

import pytest
from cluster_objects import Clock, consumer_entry

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.errors import NoAnswer
from redrive.ladder import ORPHANS, RETRY, delivery_binding, routing_key
from redrive.management import Management
from redrive.orphans import HOME_SECONDS
from redrive.properties import Properties
from redrive.topology import Owner
from redrive_operator.credentials import Access
from redrive_operator.job import Job
from redrive_operator.vhost import SETTLING_SECONDS, Vhost
from redrive_testbed.shell import wait_until

DEAD = "redrive.dead.orders"


@pytest.fixture
def access(broker, vhost):
    admin = broker.settings.credentials
    amqp = parse_amqp_url(vhost.amqp_url)
    return Access(amqp, parse_management_url(broker.management_url).as_user(admin.user, admin.password), None, "")


@pytest.fixture
def entry(vhost):
    return consumer_entry(vhost=vhost.name, queue="orders")


@pytest.fixture
def tend(access, entry):
    owned = Vhost(entry.desk, Owner("a-cluster"), clock=time.monotonic)

    def tend(*, expected=True):
        return owned.tend(access, [Job(entry, entry.consumer, expected=expected)], lambda _reading: {})

    return tend


def test_queue_that_is_deleted_while_the_vhost_is_read_is_made_anew_in_that_turn_and_told(
    monkeypatch, tend, entry, amqp, management
):
    tend(expected=False)
    read, times = Management.read, []

    def delete_meanwhile(self):
        """Have the reading of a moment in which the queue was there, and none of its bindings any more."""
        reading = read(self)
        if not times:
            amqp.delete_queue(DEAD)
            reading = replace(reading, bindings=frozenset(each for each in reading.bindings if DEAD not in str(each)))
        times.append(reading)
        return reading

    monkeypatch.setattr(Management, "read", delete_meanwhile)
    found = tend().topologies[entry.key]
    assert (found.problem, len(times)) == (None, 2)
    assert any(DEAD in sentence for sentence in found.repaired)
    monkeypatch.undo()
    assert DEAD in management.read().queues


def replicas(monkeypatch, **online):
    """Have the broker tell how many of three replicas of a queue run; queues by their names with _ for a dot."""
    told = {name.replace("_", "."): count for name, count in online.items()}
    read = Management.read

    def tell(self):
        reading = read(self)
        changed = {name: replace(reading.queues[name], members=3, online=count) for name, count in told.items()}
        return replace(reading, queues={**reading.queues, **changed})

    monkeypatch.setattr(Management, "read", tell)


def test_replicas_are_counted_and_their_leader_is_known(tend, management):
    tend(expected=False)
    queue = management.read().queues["orders"]
    assert (queue.members, queue.online, queue.leaderless, queue.has_quorum) == (1, 1, False, True)


def test_queue_without_quorum_is_taken_out_of_the_ladder_and_its_sleepers_come_home_when_it_has_one_again(
    monkeypatch, access, entry, amqp, management
):
    clock = Clock()
    owned = Vhost(entry.desk, Owner("a-cluster"), clock=clock)
    home = delivery_binding(entry.consumer.address, "orders")

    def tend():
        seen = owned.tend(access, [Job(entry, entry.consumer, expected=False)], lambda _reading: {})
        found = seen.topologies[entry.key].problem
        return found and found.reason, home in management.read().bindings, seen.reclaimed.get(entry.key, 0)

    assert tend() == (None, True, 0)
    with monkeypatch.context() as lost:
        replicas(lost, orders=1)
        assert tend() == ("QueueWithoutQuorum", True, 0)  # perhaps for a moment only
        clock.now += SETTLING_SECONDS
        assert tend() == ("QueueWithoutQuorum", False, 0)
        key = routing_key(timedelta(seconds=0.125), entry.consumer.address)
        amqp.publish(RETRY, key, b"m", Properties(delivery_mode=2))
        wait_until("the sleeper is no orphan", lambda: management.read().queues[ORPHANS].ready, within=30)
        assert tend() == ("QueueWithoutQuorum", False, 0)
    assert tend() == (None, True, 1)
    assert amqp.count_ready("orders") == 1


def test_queue_without_quorum_stays_in_the_ladder_while_the_orphans_have_none_either(
    monkeypatch, access, entry, management
):
    clock = Clock()
    owned = Vhost(entry.desk, Owner("a-cluster"), clock=clock)
    owned.tend(access, [Job(entry, entry.consumer, expected=False)], lambda _reading: {})
    replicas(monkeypatch, orders=1, redrive_orphans=1)
    for _ in range(2):
        seen = owned.tend(access, [Job(entry, entry.consumer, expected=False)], lambda _reading: {})
        assert seen.topologies[entry.key].problem.reason == "QueueWithoutQuorum"
        clock.now += SETTLING_SECONDS
    assert delivery_binding(entry.consumer.address, "orders") in management.read().bindings


def test_home_that_does_not_answer_leaves_orphans_where_they_are_and_ends_nobodys_turn(
    monkeypatch, tend, entry, amqp, management
):
    tend(expected=False)
    key = delivery_binding(entry.consumer.address, "").routing_key.replace("*", "0")
    amqp.publish("", ORPHANS, b"m", Properties(delivery_mode=2))
    amqp.publish(ORPHANS, key, b"m", Properties(delivery_mode=2))
    wait_until("nothing is told of the orphans", lambda: management.read().queues[ORPHANS].ready == 2, within=30)
    asked = []

    def say_nothing(_self, exchange, routing_key, *_args, within):
        asked.append((exchange, routing_key, within))
        raise NoAnswer("no answer in time")

    monkeypatch.setattr(Amqp, "publish", say_nothing)
    seen = tend()
    assert (seen.topologies[entry.key].problem, seen.reclaimed) == (None, {})
    assert asked == [("", "orders", HOME_SECONDS)]
    assert tend().reclaimed == {}
    assert len(asked) == 1, "it is asked again at once"
