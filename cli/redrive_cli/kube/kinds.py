"""The kinds of object that the command line reads, and where the API server keeps them."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object. `plural` is its name in paths, and in the roles that people are given."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def resource(self) -> str:
        """The name by which a role or `kubectl` means it, and nothing else."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str = "", part: str = "") -> str:
        """Write the path of one object, of a part of it, or without a name of all: of a namespace, or everywhere."""
        root = "apis" if self.group else "api"
        within = ["namespaces", namespace] if namespace and self.namespaced else []
        words = [root, *self.api_version.split("/"), *within, self.plural, *filter(None, (name, part))]
        return "/" + "/".join(quote(word, safe="") for word in words)


CONSUMERS = Kind("redrive.dev/v1alpha1", "RetryingConsumer", "retryingconsumers")
CONNECTIONS = Kind("redrive.dev/v1alpha1", "BrokerConnection", "brokerconnections", namespaced=False)
REDRIVES = Kind("redrive.dev/v1alpha1", "Redrive", "redrives")
CRDS = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
DEPLOYMENTS = Kind("apps/v1", "Deployment", "deployments")
ENDPOINT_SLICES = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
EVENTS = Kind("v1", "Event", "events")
NODES = Kind("v1", "Node", "nodes", namespaced=False)
PODS = Kind("v1", "Pod", "pods")
QUOTAS = Kind("v1", "ResourceQuota", "resourcequotas")
SECRETS = Kind("v1", "Secret", "secrets")
SERVICES = Kind("v1", "Service", "services")
