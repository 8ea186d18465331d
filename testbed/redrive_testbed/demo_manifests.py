"""The objects of the demonstration: what a team writes, and the pods by which the demonstration talks to the broker.

Everything is as a namespace that enforces Restricted wants it, and pods get the broker's Secret as files.
"""

import json
from typing import Any

import yaml

from redrive_testbed.places import REPOSITORY
from redrive_testbed.pod_security import RESTRICTED

NAMESPACE = "redrive-demo"
CONSUMER = "orders"
REDRIVE = "after-the-fix"
EXAMPLE = REPOSITORY / "examples" / "orders"
STEPS = REPOSITORY / "testbed" / "redrive_testbed" / "demo_steps.py"

_STORY = "demo-steps"


def namespace() -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def consumer(*, bug_fixed: bool = False) -> dict[str, Any]:
    """Read the example; its bug is fixed by a variable, so that no second image is needed."""
    raw: dict[str, Any] = yaml.safe_load((EXAMPLE / "orders.yaml").read_text())
    if bug_fixed:
        (worker,) = raw["spec"]["worker"]["podTemplate"]["spec"]["containers"]
        worker["env"].append({"name": "BUG_FIXED", "value": "yes"})
    return raw


def handler() -> dict[str, Any]:
    return _config_map("orders-handler", {"orders.py": (EXAMPLE / "orders.py").read_text()})


def redrive() -> dict[str, Any]:
    """Build what puts the dead letters back, once the bug is fixed."""
    spec = {"consumerRef": {"name": CONSUMER}, "select": {"reason": "Exhausted"}, "rate": 10}
    return {"apiVersion": "redrive.dev/v1alpha1", "kind": "Redrive", "metadata": _metadata(REDRIVE), "spec": spec}


def steps() -> dict[str, Any]:
    """Build what the pods of the steps read."""
    return _config_map(_STORY, {"consumer.json": json.dumps(consumer()), "steps.py": STEPS.read_text()})


def step(pod: str, name: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "redrive/consumer:dev",
        "command": ["python3", "/demo/steps.py", name],
        "securityContext": RESTRICTED,
        "volumeMounts": [
            {"name": "demo", "mountPath": "/demo", "readOnly": True},
            {"name": "broker", "mountPath": "/etc/redrive/broker", "readOnly": True},
        ],
    }
    spec = {
        "automountServiceAccountToken": False,
        "restartPolicy": "OnFailure",  # a Service is known to a node a moment after it was made
        "containers": [container],
        "volumes": [
            {"name": "demo", "configMap": {"name": _STORY}},
            {"name": "broker", "secret": {"secretName": "rabbitmq"}},
        ],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(pod), "spec": spec}


def _config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(name), "data": data}


def _metadata(name: str) -> dict[str, str]:
    return {"name": name, "namespace": NAMESPACE}
