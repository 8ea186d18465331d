"""The objects of the demonstration. What the operator will make of a RetryingConsumer is made by hand here.

Pods are as a namespace that enforces Restricted wants them, and get the broker's Secret as files.
"""

import json
from typing import Any

import yaml

from redrive.config import plan_config, write_config
from redrive.spec import parse_consumer
from redrive_testbed.errors import TestbedError
from redrive_testbed.places import REPOSITORY

NAMESPACE = "redrive-demo"
EXAMPLE = REPOSITORY / "examples" / "orders"
STEPS = REPOSITORY / "testbed" / "redrive_testbed" / "demo_steps.py"

_LABELS = {"app": "orders"}
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def namespace() -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}


def consumer() -> dict[str, Any]:
    raw: dict[str, Any] = yaml.safe_load((EXAMPLE / "orders.yaml").read_text())
    return raw


def files() -> dict[str, Any]:
    """What the pods read: the worker's config, the handler, and the steps of the demonstration."""
    data = {
        "config.json": _config(),
        "consumer.json": json.dumps(consumer()),
        "orders.py": (EXAMPLE / "orders.py").read_text(),
        "steps.py": STEPS.read_text(),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata("orders"), "data": data}


def worker(*, bug_fixed: bool) -> dict[str, Any]:
    environment = {"PYTHONPATH": "/demo"} | ({"BUG_FIXED": "yes"} if bug_fixed else {})
    pod = _pod(["redrive-worker", "--config", "/demo/config.json"], environment)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata("orders"),
        "spec": {
            "strategy": {"type": "Recreate"},  # so that the log is always that of the one worker
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    }


def step(pod: str, name: str) -> dict[str, Any]:
    # Tried again when it fails: a Service is known to a node a moment after it was made.
    spec = _pod(["python3", "/demo/steps.py", name], {}) | {"restartPolicy": "OnFailure"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(pod), "spec": spec}


def _config() -> str:
    parsed = parse_consumer(consumer())
    if parsed.worker is None:
        raise TestbedError("examples/orders/orders.yaml must have a worker")
    return write_config(plan_config(parsed, parsed.worker, queue_parks=True))


def _pod(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "redrive/consumer:dev",
        "command": command,
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "securityContext": _RESTRICTED,
        "volumeMounts": [
            {"name": "demo", "mountPath": "/demo", "readOnly": True},
            {"name": "broker", "mountPath": "/etc/redrive/broker", "readOnly": True},
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [
            {"name": "demo", "configMap": {"name": "orders"}},
            {"name": "broker", "secret": {"secretName": "rabbitmq"}},
        ],
    }


def _metadata(name: str) -> dict[str, str]:
    return {"name": name, "namespace": NAMESPACE}
