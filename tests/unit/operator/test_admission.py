"""What a BrokerConnection is open to, and what is said to whom it is not."""

import pytest
from cluster_objects import connection_entry, consumer_entry

from redrive_operator.admission import refuse
from redrive_operator.reasons import BrokerReason, TopologyReason

OPEN = {
    "allowedNamespaces": ["shop", "team-*"],
    "vhosts": ["/", "shop-*"],
    "allowedExchanges": ["shop.events", "public.*"],
}


def ask(*exchanges, namespace="shop", vhost="/"):
    bindings = [{"exchange": exchange, "routingKey": "k"} for exchange in exchanges]
    spec = {"queue": {"name": "q", "bindings": bindings}}
    consumer = consumer_entry(namespace=namespace, connection="main", vhost=vhost, spec=spec).consumer
    return refuse(consumer, connection_entry(spec=OPEN).connection)


@pytest.mark.parametrize(
    ("exchanges", "where"),
    [
        ((), {}),
        (("shop.events", "public.news"), {}),
        ((), {"namespace": "team-a"}),
        ((), {"vhost": "shop-eu"}),
    ],
)
def test_who_is_listed_is_admitted(exchanges, where):
    assert ask(*exchanges, **where) is None


@pytest.mark.parametrize(
    ("exchanges", "where", "reason", "named"),
    [
        ((), {"namespace": "bills"}, BrokerReason.NAMESPACE_NOT_ALLOWED, "bills"),
        ((), {"namespace": "tea"}, BrokerReason.NAMESPACE_NOT_ALLOWED, "tea"),
        ((), {"vhost": "bills"}, BrokerReason.VHOST_NOT_ALLOWED, "'bills'"),
        (("shop.events", "bills.events"), {}, TopologyReason.EXCHANGE_NOT_ALLOWED, "'bills.events'"),
    ],
)
def test_who_is_not_listed_is_told_what_is_not_allowed(exchanges, where, reason, named):
    problem = ask(*exchanges, **where)
    assert problem.reason == reason
    assert named in problem.message
    assert "BrokerConnection main" in problem.message


def test_namespace_is_refused_before_anything_else_is_told_of_the_connection():
    problem = ask("bills.events", namespace="bills", vhost="bills")
    assert problem.reason == BrokerReason.NAMESPACE_NOT_ALLOWED


def test_exchanges_of_redrive_are_open_to_nobody():
    spec = {**OPEN, "allowedExchanges": ["*"]}
    connection = connection_entry(spec=spec).connection
    assert connection.admits_exchange("anything")
    assert not connection.admits_exchange("redrive.retry")
