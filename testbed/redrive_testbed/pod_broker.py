"""How pods reach a broker: by the name of a Service, as they would in a user's cluster.

A broker that runs on this machine, outside of the cluster, gets a Service without a selector and the address of the
bridge as its endpoint. What listens on that address is reached by pods and by this machine, and by nobody else.
"""

import json
from typing import Any

from redrive_testbed.standing_broker import BrokerInfo

AMQP, MANAGEMENT = 5672, 15672


def service(name: str, namespace: str, broker: BrokerInfo) -> str:
    """The manifests, as JSON for kubectl, of a Service `name` that leads to a broker on this machine."""
    wanted = {"amqp": (AMQP, broker.amqp_port), "management": (MANAGEMENT, broker.management_port)}
    ports = [{"name": what, "port": port} for what, (port, _) in wanted.items()]
    targets = [{"name": what, "port": target} for what, (_, target) in wanted.items()]
    metadata = {"name": name, "namespace": namespace}
    slice_metadata = metadata | {"labels": {"kubernetes.io/service-name": name}}
    items: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": slice_metadata,
            "addressType": "IPv4",
            "endpoints": [{"addresses": list(broker.addresses)}],
            "ports": targets,
        },
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
