"""Pods as the API server shows them: real ones, made on Kubernetes 1.34 and trimmed, and those that tests make up."""

import json
from datetime import datetime
from pathlib import Path

PODS = Path(__file__).parent / "unit" / "operator" / "pods"
NAMES = sorted(path.stem for path in PODS.glob("*.json"))


def real(name):
    return json.loads((PODS / f"{name}.json").read_text())


def at(clock):
    return datetime.fromisoformat(f"2026-11-16T{clock}Z")


def pod(*, owner="orders-7f8d", node="node-1", conditions=(), inits=(), containers=(), sidecars=(), phase="Pending"):
    """A pod that was made at noon; conditions are a type, a status and a time."""
    return {
        "metadata": {
            "name": "orders-7f8d-x",
            "namespace": "shop",
            "uid": "u-1",
            "creationTimestamp": "2026-11-16T12:00:00Z",
            "ownerReferences": [{"kind": "ReplicaSet", "name": owner, "controller": True}],
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            "initContainers": [{"name": name, "restartPolicy": "Always"} for name in sidecars],
        },
        "status": {
            "phase": phase,
            "conditions": [
                {"type": name, "status": status, "lastTransitionTime": f"2026-11-16T{clock}Z"}
                for name, status, clock in conditions
            ],
            "initContainerStatuses": [*inits],
            "containerStatuses": [*containers],
        },
    }


def container(state, last=None, *, name="worker", restarts=0):
    return {"name": name, "restartCount": restarts, "state": state, "lastState": last or {}}


def waiting(reason, message=""):
    return {"waiting": {"reason": reason, "message": message}}


def running(clock="12:00:05"):
    return {"running": {"startedAt": f"2026-11-16T{clock}Z"}}


def ended(code, reason="Error", *, message="", started="12:00:01", finished="12:00:02"):
    times = {"startedAt": f"2026-11-16T{started}Z", "finishedAt": f"2026-11-16T{finished}Z"}
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, **times}}
