"""The RetryingConsumers of a cluster: one by its name, or all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redrive.errors import SpecError
from redrive.spec import Consumer, parse_consumer
from redrive_cli.errors import CliError, ClusterError, Missing, Misuse
from redrive_cli.kube import CONSUMERS, Cluster
from redrive_cli.manifests import read_manifest
from redrive_cli.options import Asked
from redrive_cli.wording import clean, say_near

# Which broker a consumer works by, and as whom: two with the same key are reached by one door.
BrokerKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A consumer to work on, and the cluster that it came from, if it did: then `body` is the whole object."""

    consumer: Consumer
    cluster: Cluster | None
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)


def find_target(asked: Asked) -> Target:
    """Read the consumer that was asked for, from its file or from the cluster."""
    if (asked.name is None) == (asked.file is None):
        raise Misuse("name one consumer: NAME for one in the cluster, or -f FILE for one in a file")
    if asked.file is not None:
        consumer = read_manifest(asked.file).consumer
        return Target(consumer, None if asked.broker else asked.cluster.connect())
    cluster = asked.cluster.connect()
    body = read_consumer_body(cluster, str(asked.name))
    return Target(parse_found(body), cluster, body)


def read_consumer_body(cluster: Cluster, name: str) -> Mapping[str, Any]:
    """Read one by its name; Missing names those that are near."""
    try:
        return cluster.get(CONSUMERS, name.removeprefix("rcon/"))
    except Missing as error:
        raise Missing(f"{error}{_say_others(cluster, name)}") from error


def parse_found(body: Mapping[str, Any]) -> Consumer:
    """Read an object of the cluster, whose kinds may be older or newer than we are."""
    try:
        return parse_consumer(body)
    except SpecError as error:
        name = clean(str(body.get("metadata", {}).get("name")))
        raise CliError(f"the RetryingConsumer {name} cannot be used as it is: {error}") from error


def broker_key(body: Mapping[str, Any]) -> BrokerKey:
    """Say by which broker, and as whom, a consumer works, as far as its spec tells."""
    broker = body.get("spec", {}).get("broker") or {}
    vhost, connection = str(broker.get("vhost") or "/"), broker.get("connectionRef")
    if connection:
        return ("BrokerConnection", str(connection.get("name")), vhost)
    secret = broker.get("secretRef") or {}
    return ("Secret", str(body["metadata"].get("namespace")), str(secret.get("name")), vhost)


def _say_others(cluster: Cluster, name: str) -> str:
    try:
        names = [body["metadata"]["name"] for body in cluster.list(CONSUMERS)]
        if names:
            return say_near(name, names)
        places = {
            body["metadata"]["namespace"]
            for body in cluster.list(CONSUMERS, everywhere=True, fields=f"metadata.name={name}")
        }
    except ClusterError:
        return ""
    if places:
        return f", but in {', '.join(sorted(places)[:5])}: choose it with --namespace"
    return "; that namespace has none at all: is --namespace or --context the right one?"
