"""How pods reach a broker: by the name of a Service, and with a Secret, as they would in a user's cluster.

A broker that runs on this machine, outside of the cluster, gets a Service without a selector and the address of the
bridge as its endpoint. What listens on that address is reached by pods and by this machine, and by nobody else.
"""

from dataclasses import dataclass
from typing import Any

AMQP, MANAGEMENT = 5672, 15672


@dataclass(frozen=True)
class Outside:
    """A broker outside of the cluster: where it listens, and who may come in."""

    addresses: tuple[str, ...]
    amqp_port: int
    management_port: int
    user: str
    password: str


def manifests(name: str, namespace: str, broker: Outside) -> list[dict[str, Any]]:
    """A Service and a Secret of one name, as a user of the broker wants them in its namespace."""
    metadata = {"name": name, "namespace": namespace}
    wanted = {"amqp": (AMQP, broker.amqp_port), "management": (MANAGEMENT, broker.management_port)}
    ports = [{"name": what, "port": port} for what, (port, _) in wanted.items()]
    targets = [{"name": what, "port": target} for what, (_, target) in wanted.items()]
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": list(broker.addresses)}],
            "ports": targets,
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "stringData": _secret(f"{name}.{namespace}.svc", broker),
        },
    ]


def _secret(host: str, broker: Outside) -> dict[str, str]:
    """The keys that the RabbitMQ Cluster Operator writes, and where the management API is.

    The host's name has its namespace in it, because whoever manages the queues does so from another one.
    """
    return {
        "host": host,
        "port": str(AMQP),
        "username": broker.user,
        "password": broker.password,
        "management_uri": f"http://{host}:{MANAGEMENT}",
    }
