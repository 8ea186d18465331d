"""The objects of the operator's bench: a fleet of consumers without workers, and others' objects beside them.

All of it is in namespaces that begin `bench-`, which the bench makes and deletes. The others' pods name a scheduler
that does not exist, so no node ever runs them: they are there to be overlooked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from redrive_operator.kube import CONSUMERS
from redrive_testbed.operator_manifests import CONSUMER_IMAGE

Body = dict[str, Any]

SECRET = "rabbitmq"  # noqa: S105 - the name of an object
FOREIGN = "bench-foreign"
NOBODY = "nobody"

# Delays that need two places of the ladder, as most have that wait for less than half a minute.
RETRY = {"maxAttempts": 5, "backoff": {"strategy": "Exponential", "base": "1s", "multiplier": "2", "max": "16s"}}


@dataclass(frozen=True)
class Fleet:
    """So many consumers, dealt out in turn to namespaces, each of which has a vhost of its own."""

    size: int
    spread: int = 1

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(f"bench-fleet-{index}" for index in range(self.spread))

    def consumers(self) -> Iterator[Body]:
        for index in range(self.size):
            yield consumer(f"consumer-{index:04}", self.namespaces[index % self.spread])


def namespace(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def consumer(name: str, namespace: str, **spec: object) -> Body:
    """Build a consumer of the vhost that is named like its namespace; it has no workers."""
    return {
        "apiVersion": CONSUMERS.api_version,
        "kind": CONSUMERS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "broker": {"secretRef": {"name": SECRET}, "vhost": namespace},
            "queue": {"name": name},
            "retry": RETRY,
            "replicas": 0,
            "worker": {"image": CONSUMER_IMAGE, "python": {"handler": "shop:handle"}},
            "deletionPolicy": "Delete",
            **spec,
        },
    }


def broker_secret(namespace: str, values: Mapping[str, str]) -> Body:
    metadata = {"name": SECRET, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(values)}


def foreign_secret(index: int) -> Body:
    """Build a Secret of a usual size."""
    metadata = {"name": f"foreign-{index:05}", "namespace": FOREIGN}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": "x" * 1000}}


def foreign_pod(index: int) -> Body:
    metadata = {"name": f"foreign-{index:05}", "namespace": FOREIGN, "labels": {"app": f"app-{index % 100}"}}
    spec = {"schedulerName": NOBODY, "containers": [{"name": "main", "image": "registry.invalid/app"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
