"""The kinds of object that the operator knows, and where the API server keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from redrive_operator.subject import Key


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object. `plural` is its name in paths."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    def __str__(self) -> str:
        return self.kind

    def collection(self, namespace: str | None = None) -> str:
        """Write the path of all objects of this kind: of one namespace, or of all of them."""
        root = "/apis" if "/" in self.api_version else "/api"
        within = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.namespaced else ""
        return f"{root}/{self.api_version}{within}/{self.plural}"

    def path(self, key: Key) -> str:
        """Write the path of one object. An empty part would make it the path of many, so none may be."""
        if not key.name or bool(key.namespace) != self.namespaced:
            raise ValueError(f"{key!r} cannot be the key of a {self.kind}")
        return f"{self.collection(key.namespace)}/{quote(key.name, safe='')}"


CONSUMERS = Kind("redrive.dev/v1alpha1", "RetryingConsumer", "retryingconsumers")
CONNECTIONS = Kind("redrive.dev/v1alpha1", "BrokerConnection", "brokerconnections", namespaced=False)
REDRIVES = Kind("redrive.dev/v1alpha1", "Redrive", "redrives")
DEPLOYMENTS = Kind("apps/v1", "Deployment", "deployments")
CONFIG_MAPS = Kind("v1", "ConfigMap", "configmaps")
BUDGETS = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
SECRETS = Kind("v1", "Secret", "secrets")
NAMESPACES = Kind("v1", "Namespace", "namespaces", namespaced=False)
PODS = Kind("v1", "Pod", "pods")
EVENTS = Kind("v1", "Event", "events")

_KINDS = {
    (kind.api_version, kind.kind): kind
    for kind in (
        CONSUMERS,
        CONNECTIONS,
        REDRIVES,
        DEPLOYMENTS,
        CONFIG_MAPS,
        BUDGETS,
        SECRETS,
        NAMESPACES,
        PODS,
        EVENTS,
    )
}


def find_kind(api_version: str, kind: str) -> Kind:
    """Find a kind by what an object says of itself; KeyError for one that the operator has no business with."""
    return _KINDS[api_version, kind]


def key_of(body: Mapping[str, Any]) -> Key:
    metadata = body["metadata"]
    return Key(metadata.get("namespace") or "", metadata["name"])
