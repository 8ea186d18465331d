"""A turn of the operator beside somebody who deletes what it is just reading."""

import time
from dataclasses import replace

import pytest
from cluster_objects import consumer_entry

from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.management import Management
from redrive.topology import Owner
from redrive_operator.credentials import Access
from redrive_operator.vhost import Job, Vhost

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
