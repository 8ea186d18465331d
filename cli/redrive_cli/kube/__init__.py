"""The command line's door to Kubernetes: nobody else here knows the client library, or speaks to the API server.

It comes as the person who types, with their kubeconfig. What is refused is one sentence that says what to ask for.
"""

from redrive_cli.kube.cluster import Cluster
from redrive_cli.kube.forwarding import Forwarded, forward
from redrive_cli.kube.kinds import (
    CONNECTIONS,
    CONSUMERS,
    CRDS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    EVENTS,
    NODES,
    PODS,
    QUOTAS,
    REDRIVES,
    SECRETS,
    SERVICES,
    Kind,
)

__all__ = [
    "CONNECTIONS",
    "CONSUMERS",
    "CRDS",
    "DEPLOYMENTS",
    "ENDPOINT_SLICES",
    "EVENTS",
    "NODES",
    "PODS",
    "QUOTAS",
    "REDRIVES",
    "SECRETS",
    "SERVICES",
    "Cluster",
    "Forwarded",
    "Kind",
    "forward",
]
