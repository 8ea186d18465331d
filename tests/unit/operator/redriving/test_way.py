"""The way of a Redrive to dead letters: on a broker that is lent out it leads to its consumer's own, and no others."""

from dataclasses import replace

import pytest
from cluster_objects import connection_entry, consumer_entry

from redrive.endpoints import Endpoint
from redrive.reading import FoundQueue, Reading
from redrive.topology import Binding, Wanted, work_queue
from redrive_operator.credentials import Access
from redrive_operator.redriving.hindrance import Hindered
from redrive_operator.redriving.way import Way

ORDERS = consumer_entry(connection="main", queue="orders").consumer
OWN = Reading(
    "4.1.0",
    "rabbit",
    queues={
        "orders": FoundQueue("orders", "quorum", arguments=work_queue(Wanted.of(ORDERS)).arguments),
        "redrive.dead.orders": FoundQueue("redrive.dead.orders", "quorum"),
    },
    bindings=frozenset({Binding("redrive.dead", "redrive.dead.orders", "queue", "shop/orders")}),
)
FOREIGN_QUEUE = replace(OWN, queues={**OWN.queues, "orders": FoundQueue("orders", "quorum")})
UNBOUND = replace(OWN, bindings=frozenset({Binding("redrive.dead", "redrive.dead.orders", "queue", "bills/orders")}))


class Api:
    def __init__(self, reading):
        self.read = lambda: reading


def way(reading, *, lent=True):
    end = Endpoint("mq", 5672, user="admin", password="p")
    connection = connection_entry().connection if lent else None
    return Way(ORDERS, Access(end, end, None, "digest", connection=connection), Api(reading))


@pytest.mark.parametrize(
    ("reading", "words"), [(FOREIGN_QUEUE, "was not made for this consumer"), (UNBOUND, "is not bound")]
)
def test_letters_of_another_are_not_reached_on_a_lent_broker(reading, words):
    with pytest.raises(Hindered, match=words):
        way(reading)._read()


@pytest.mark.parametrize("reading", [FOREIGN_QUEUE, UNBOUND])
def test_who_has_credentials_of_its_own_reaches_what_these_reach(reading):
    assert way(reading, lent=False)._read() is reading


@pytest.mark.parametrize("name", ["orders", "redrive.dead.orders"])
def test_letters_are_not_reached_while_a_queue_has_no_quorum(name):
    stuck = replace(OWN.queues[name], members=3, online=1)
    with pytest.raises(Hindered, match=f"the queue '{name}' has 1 of its 3 replicas"):
        way(replace(OWN, queues={**OWN.queues, name: stuck}))._read()


def test_own_letters_are_reached_on_a_lent_broker():
    assert way(OWN)._read() is OWN
