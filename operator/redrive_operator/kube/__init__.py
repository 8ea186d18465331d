"""The door to Kubernetes: nobody else knows the client library, and nobody else speaks to the API server.

kopf watches by itself, and hands on what it saw; everything that is read on purpose or written goes through here.
"""

from redrive_operator.kube.bodies import Applied, SecretSeen
from redrive_operator.kube.door import ABSENT, Kube
from redrive_operator.kube.herald import Herald
from redrive_operator.kube.kinds import (
    BUDGETS,
    CONFIG_MAPS,
    CONNECTIONS,
    CONSUMERS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    REDRIVES,
    SECRETS,
    Kind,
)
from redrive_operator.kube.portion import PAGE, Portion

__all__ = [
    "ABSENT",
    "BUDGETS",
    "CONFIG_MAPS",
    "CONNECTIONS",
    "CONSUMERS",
    "DEPLOYMENTS",
    "NAMESPACES",
    "PAGE",
    "PODS",
    "REDRIVES",
    "SECRETS",
    "Applied",
    "Herald",
    "Kind",
    "Kube",
    "Portion",
    "SecretSeen",
]
