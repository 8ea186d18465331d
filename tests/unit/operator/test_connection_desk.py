"""A BrokerConnection that is being deleted stays for whom it serves and what is to be cleared, and for nobody else."""

from types import SimpleNamespace

import pytest
from cluster_objects import connection_entry, consumer_body
from lent_broker import GOING, HELD, LentBroker, lent_tools

from redrive.errors import Unreachable
from redrive_operator.connection_desk import ConnectionDesk, connection_key
from redrive_operator.sweep import PATIENCE_SECONDS

FOR_SHOP = {"allowedNamespaces": ["shop"]}


def desk(*bodies, broker=None, **state):
    connection = connection_entry("main", spec=FOR_SHOP, **(state or HELD))
    tools = lent_tools(*bodies, connections=[connection])
    made = ConnectionDesk(connection_key("main"), tools)
    access = (broker or LentBroker()).access(connection, vhost="")
    made._credentials = SimpleNamespace(resolve=lambda: access)
    return made


def hold(one):
    return one._hold(one._tools.registry.connection("main"))


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (consumer_body(connection="main", **HELD), 1),
        (consumer_body(connection="main", **GOING), 1),
        (consumer_body(connection="main", namespace="evil", **HELD), 0),
        (consumer_body(connection="main", vhost="closed", **HELD), 0),
        (consumer_body(connection="main", **{**GOING, "finalizers": []}), 0),
        (consumer_body(connection="other", **HELD), 0),
    ],
)
def test_consumers_that_a_connection_serves_are_counted_and_no_others(body, count):
    assert desk(body)._count_consumers() == count


def test_connection_stays_as_long_as_somebody_uses_it():
    one = desk(consumer_body(connection="main", **HELD), **GOING)
    assert hold(one) is not None
    assert one._tools.kube.released == []


def test_connection_is_not_held_by_who_may_not_use_it():
    one = desk(consumer_body(connection="main", namespace="evil", **HELD), **GOING)
    assert hold(one) is None
    assert len(one._tools.kube.released) == 1


def test_connection_stays_until_the_users_that_nobody_has_any_more_are_deleted():
    broker = LentBroker()
    broker.have_user("evil/x")
    one = desk(consumer_body("x", connection="main", namespace="evil", **HELD), broker=broker, **GOING)
    assert hold(one) is not None
    one._tools.clock.now += PATIENCE_SECONDS
    assert hold(one) is None
    assert broker.users == set()


def test_connection_stays_for_the_user_of_a_consumer_that_cannot_be_read():
    broker = LentBroker()
    broker.have_user()
    one = desk(consumer_body(connection="main", spec={"retry": "?"}, **HELD), broker=broker, **GOING)
    one._tools.clock.now += PATIENCE_SECONDS
    assert hold(one) is not None
    assert broker.touched == []


def test_connection_does_not_stay_for_a_consumer_that_cannot_be_read_and_has_no_user():
    one = desk(consumer_body(connection="main", spec={"retry": "?"}, **HELD), **GOING)
    assert hold(one) is None


def test_user_that_was_lost_just_before_is_seen_before_the_connection_goes():
    broker = LentBroker()
    one = desk(broker=broker, **GOING)
    one._look()
    broker.have_user("evil/x")
    assert hold(one) is not None


def test_connection_goes_when_its_broker_is_gone_too():
    broker = LentBroker()
    broker.have_user("evil/x")
    one = desk(broker=broker, **GOING)
    assert hold(one) is not None
    broker.fails = Unreachable("no answer")
    assert hold(one) is None


def test_connection_goes_when_its_user_may_not_delete_users():
    broker = LentBroker()
    broker.have_user("evil/x")
    one = desk(broker=broker, **GOING)
    assert hold(one) is not None
    broker.tags = frozenset()
    assert hold(one) is None


def test_cluster_of_a_broker_is_known_as_long_as_it_answers():
    broker = LentBroker(cluster="rabbit@two")
    one = desk(broker=broker)
    one._look()
    assert one._tools.clusters == {"main": "rabbit@two"}
    broker.fails = Unreachable("no answer")
    one._look()
    assert one._tools.clusters == {}
