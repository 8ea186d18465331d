"""Objects as the API server shows them, and a clock that is moved by hand, as several tests begin with them."""

from redrive_operator.registry import read_connection_entry, read_entry

NOON = "2026-05-01T12:00:00Z"


class Clock:
    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


def metadata(name, *, namespace="shop", uid="u-1", version="1", created=NOON, **more):
    here = {} if namespace is None else {"namespace": namespace}
    return {"name": name, **here, "uid": uid, "resourceVersion": version, "creationTimestamp": created, **more}


def consumer_body(name="orders", *, secret="rabbitmq", connection=None, vhost="/", queue=None, spec=None, **more):  # noqa: S107
    """A RetryingConsumer; what else is given goes to its metadata."""
    reference = {"connectionRef": {"name": connection}} if connection else {"secretRef": {"name": secret}}
    return {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": metadata(name, **more),
        "spec": {
            "broker": {**reference, "vhost": vhost},
            **({"queue": {"name": queue}} if queue else {}),
            **(spec or {}),
        },
    }


def arrived(**more):
    """A consumer of which all is ready where its spec says."""
    ready = {"type": "TopologyReady", "status": "True", "reason": "Provisioned", "message": "all is there"}
    conditions = [{**ready, "observedGeneration": 2, "lastTransitionTime": NOON}]
    return {**consumer_body(generation=2, **more), "status": {"conditions": conditions}}


def consumer_entry(name="orders", **more):
    return read_entry(consumer_body(name, **more))


def connection_body(name="main", *, spec=None, **more):
    return {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "BrokerConnection",
        "metadata": metadata(name, namespace=None, **more),
        "spec": {"secretRef": {"name": "admin"}, "allowedNamespaces": ["*"], **(spec or {})},
    }


def connection_entry(name="main", **more):
    return read_connection_entry(connection_body(name, **more))


def owned(kind, name="orders", *, owner="orders", owner_uid="u-1", spec=None, status=None, **more):
    """An object that was made for a consumer; without an owner, one that was not."""
    reference = {"kind": "RetryingConsumer", "name": owner, "uid": owner_uid, "controller": True}
    return {
        "kind": kind,
        "metadata": metadata(
            name, **{"uid": f"{kind}-1", **({"ownerReferences": [reference]} if owner else {}), **more}
        ),
        **({} if spec is None else {"spec": spec}),
        **({} if status is None else {"status": status}),
    }


def worker_pod(name="orders-5d8f7-abcde", *, consumer="orders", uid="p-1", status=None, **more):
    """A pod that a consumer's Deployment made: running and ready, unless its status says otherwise."""
    owner = {"kind": "ReplicaSet", "name": f"{consumer}-5d8f7", "uid": "rs-1", "controller": True}
    running = {"name": "worker", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": NOON}}}
    ready = {"type": "Ready", "status": "True"}
    well = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [ready], "containerStatuses": [running]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, uid=uid, ownerReferences=[owner], **more),
        "spec": {"containers": [{"name": "worker"}]},
        "status": well if status is None else status,
    }


def pending_pod(name="orders-5d8f7-abcde", *, message="0/1 nodes are available: 1 Insufficient cpu.", **more):
    """A pod for which there is no place."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "lastTransitionTime": NOON,
    }
    return worker_pod(name, status={"phase": "Pending", "conditions": [condition]}, **more)
