"""Objects to be judged, sights of them, and what the API server would say of the status that comes of it."""

import re
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from redrive.spec import parse_consumer
from redrive_operator.judge import judge, judge_connection, judge_invalid
from redrive_operator.observation import BrokerSeen, ConnectionSeen, Observation, Problem, TopologySeen, WorkersSeen
from redrive_operator.status import patch_of
from redrive_operator.subject import Key, Subject

NOW = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
THEN = "2026-05-01T12:00:00Z"

WORKER = {"image": "shop/orders:1.4", "python": {"handler": "shop.orders:handle"}}
BROKER = BrokerSeen("/", "Secret", version="4.3.6", cluster_name="rabbit@one", user="shop", management=True)
AWAY = BrokerSeen("/", "Secret", problem=Problem("Unreachable", "nobody answers at rabbitmq:5672"))
RUNNING = WorkersSeen(2, exist=2, available=2, updated=2, selector="redrive.dev/consumer=orders")
FINE = Observation(BROKER, TopologySeen(), RUNNING)
CONNECTED = ConnectionSeen(version="4.3.6", cluster_name="rabbit@one", management=True, consumers=3)

_STATUS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    for path in (Path(__file__).parents[1] / "crds").glob("*.yaml")
    for crd in [yaml.safe_load(path.read_text())]
}
_TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


def a_consumer(*, worker=WORKER, **spec):
    body = {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {"broker": {"secretRef": {"name": "rabbitmq"}}, "queue": {"name": "orders"}, "worker": worker, **spec},
    }
    return parse_consumer(body)


def a_subject(status=None, *, kind="RetryingConsumer", generation=1, deleting=False):
    return Subject(
        kind=kind,
        api_version="redrive.dev/v1alpha1",
        key=Key("shop" if kind == "RetryingConsumer" else "", "orders"),
        uid="u-1",
        resource_version="7",
        generation=generation,
        created=NOW,
        deleting=deleting,
        status={} if status is None else status,
    )


class Story:
    """One object over time: each sight of it is judged on the status that the one before left."""

    def __init__(self, status=None, *, consumer=None, kind="RetryingConsumer"):
        self.consumer = consumer or a_consumer()
        self.kind = kind
        self.status = {} if status is None else status
        self.generation = 1
        self.deleting = False

    def see(self, seen, *, now=NOW):
        """Judge, write the patch as the API server would, and give the events' reasons."""
        subject = a_subject(self.status, kind=self.kind, generation=self.generation, deleting=self.deleting)
        if isinstance(seen, Observation):
            verdict = judge(subject, self.consumer, seen, now=now)
        elif isinstance(seen, ConnectionSeen):
            verdict = judge_connection(subject, seen, now=now)
        else:
            verdict = judge_invalid(subject, seen, now=now)
        self.patch = patch_of(self.status, verdict.status)
        self.status = merge(self.status, self.patch or {})
        self.events = verdict.events
        return [str(event.reason) for event in verdict.events]

    def condition(self, name):
        return next((one for one in self.status["conditions"] if one["type"] == name), None)

    def says(self, name):
        found = self.condition(name)
        return found and (found["status"], found["reason"])


def merge(target, patch):
    """Apply a JSON merge patch, by RFC 7386."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def faults(status, kind="RetryingConsumer"):
    """List what the API server would refuse or drop of a status."""
    return list(_faults(status, _STATUS[kind], "status"))


def _faults(value, schema, path):
    if schema.get("x-kubernetes-int-or-string"):
        schema = {**schema, "type": "string" if isinstance(value, str) else "integer"}
    kind = _TYPES[schema["type"]]
    if type(value) is not kind:
        yield f"{path} is a {type(value).__name__}"
        return
    yield from _bounds(value, schema, path)
    if kind is list:
        for index, one in enumerate(value):
            yield from _faults(one, schema["items"], f"{path}[{index}]")
    if kind is dict:
        known, any_other = schema.get("properties", {}), schema.get("additionalProperties")
        yield from (f"{path}.{name} is missing" for name in schema.get("required", []) if name not in value)
        for name, one in value.items():
            if name in known or any_other:
                yield from _faults(one, known.get(name, any_other), f"{path}.{name}")
            else:
                yield f"{path}.{name} is unknown"


def _bounds(value, schema, path):
    size = len(value) if isinstance(value, str | list | dict) else 0
    most = {str: "maxLength", list: "maxItems", dict: "maxProperties"}.get(type(value), "")
    if size > schema.get(most, size):
        yield f"{path} has {size}"
    if size < schema.get("minLength", 0):
        yield f"{path} is too short"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path} is {value}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path} does not match: {value}"
    if schema.get("format") == "date-time":
        datetime.fromisoformat(value)
    if "minimum" in schema and not schema["minimum"] <= value < 2 ** (31 if schema.get("format") == "int32" else 63):
        yield f"{path} is {value}"
    if schema.get("x-kubernetes-list-type") == "map" and len({one.get("type") for one in value}) != size:
        yield f"{path} has a type twice"
    if isinstance(value, str) and value.encode(errors="replace").decode() != value:
        yield f"{path} is not text"
