"""Events on a real API server: told once, counted, and continued by the operator that comes after."""

import logging
from datetime import UTC, datetime, timedelta

from redrive_operator.kube import CONNECTIONS, Herald
from redrive_operator.subject import Key, read_subject


class Clock:
    """A clock that a test moves on. It begins now: the API server judges by its own."""

    def __init__(self):
        self.now = datetime.now(UTC)

    def __call__(self):
        return self.now

    def forward(self, **span):
        self.now += timedelta(**span)


def shown(namespace, reason="BrokerUnreachable"):
    return sorted((event["message"], event["count"]) for event in namespace.events(reason))


def test_what_is_told_is_seen_with_the_object(kube, owner, namespace):
    Herald(kube, instance="redrive-0").tell(owner, "Warning", "BrokerUnreachable", "no answer from rabbitmq:5672")

    told = namespace.kubectl("describe", "redrive", "orders")
    (event,) = namespace.events("BrokerUnreachable")
    assert "no answer from rabbitmq:5672" in told
    assert (event["type"], event["source"], event["reportingComponent"], event["reportingInstance"]) == (
        "Warning",
        {"component": "redrive"},
        "redrive",
        "redrive-0",
    )


def test_what_is_told_again_is_counted_at_most_every_five_minutes(kube, owner, namespace):
    clock = Clock()
    herald = Herald(kube, instance="redrive-0", clock=clock)

    for _ in range(3):
        herald.tell(owner, "Warning", "BrokerUnreachable", "no answer")
    assert shown(namespace) == [("no answer", 1)]

    clock.forward(minutes=5)
    herald.tell(owner, "Warning", "BrokerUnreachable", "no answer")
    assert shown(namespace) == [("no answer", 4)]


def test_an_operator_that_was_started_anew_continues_the_same_event(kube, owner, namespace):
    clock = Clock()
    Herald(kube, instance="redrive-0", clock=clock).tell(owner, "Warning", "BrokerUnreachable", "no answer")
    (before,) = namespace.events("BrokerUnreachable")

    clock.forward(minutes=6)
    second = Herald(kube, instance="redrive-1", clock=clock)
    second.tell(owner, "Warning", "BrokerUnreachable", "no answer")
    clock.forward(minutes=6)
    second.tell(owner, "Warning", "BrokerUnreachable", "no answer")

    (after,) = namespace.events("BrokerUnreachable")
    assert (after["count"], after["firstTimestamp"]) == (3, before["firstTimestamp"])
    assert after["lastTimestamp"] > before["lastTimestamp"]


def test_an_event_that_has_expired_meanwhile_is_made_anew(kube, owner, namespace):
    clock = Clock()
    herald = Herald(kube, instance="redrive-0", clock=clock)
    herald.tell(owner, "Warning", "BrokerUnreachable", "no answer")
    namespace.kubectl("delete", "events", "--all")

    clock.forward(minutes=5)
    herald.tell(owner, "Warning", "BrokerUnreachable", "no answer")

    assert shown(namespace) == [("no answer", 2)]


def test_what_is_cluster_scoped_is_told_in_the_default_namespace(kube, crds, kubectl, namespace):
    name = namespace.name
    spec = {"secretRef": {"name": "admin"}, "allowedNamespaces": ["shop"]}
    metadata = {"name": name}
    kube.create({"apiVersion": CONNECTIONS.api_version, "kind": CONNECTIONS.kind, "metadata": metadata, "spec": spec})
    connection = read_subject(kube.get(CONNECTIONS, Key("", name)))
    try:
        Herald(kube, instance="redrive-0").tell(connection, "Warning", "SecretNotFound", "there is no Secret admin")

        assert "there is no Secret admin" in kubectl("describe", "brokerconnection", name).stdout
    finally:
        kube.delete(CONNECTIONS, Key("", name))
        kubectl("delete", "events", "--namespace=default", f"--field-selector=involvedObject.name={name}")


def test_an_event_in_a_namespace_that_terminates_is_a_line_in_the_log(kube, owner, namespace, caplog):
    kube.set_finalizer(owner, True)  # so that the namespace takes its time
    namespace.kubectl("delete", "namespace", namespace.name, "--wait=false")

    with caplog.at_level(logging.DEBUG, logger="redrive_operator"):
        Herald(kube, instance="redrive-0").tell(owner, "Normal", "QueuesRetained", "the queue was left")
    kube.set_finalizer(owner, False)

    assert "being terminated" in caplog.text
