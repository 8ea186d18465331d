"""Whether a BrokerConnection is open to a consumer: by its namespace, its vhost and the exchanges that it binds to."""

from redrive.spec import BrokerConnection, Consumer
from redrive_operator.observation import Problem
from redrive_operator.reasons import BrokerReason, TopologyReason


def shuts_out(connection: BrokerConnection, namespace: str, vhost: str) -> bool:
    """Say whether a connection has nothing for a namespace in a vhost: no user either."""
    return not (connection.admits_namespace(namespace) and connection.admits_vhost(vhost))


def refuse(consumer: Consumer, connection: BrokerConnection) -> Problem | None:
    """Say what is not allowed, and whom to ask; None where all is."""
    name, ask = f"the BrokerConnection {connection.name}", "ask the platform team"
    if not connection.admits_namespace(consumer.namespace):
        sentence = f"{name} is not open to the namespace {consumer.namespace}: {ask}"
        return Problem(BrokerReason.NAMESPACE_NOT_ALLOWED, sentence)
    if not connection.admits_vhost(consumer.broker.vhost):
        sentence = f"{name} is not open for the vhost {consumer.broker.vhost!r}: use another, or {ask}"
        return Problem(BrokerReason.VHOST_NOT_ALLOWED, sentence)
    for binding in consumer.queue.bindings:
        if not connection.admits_exchange(binding.exchange):
            sentence = f"{name} allows no binding to the exchange {binding.exchange!r}: remove it, or {ask}"
            return Problem(TopologyReason.EXCHANGE_NOT_ALLOWED, sentence)
    return None
