"""How a consumer stands, read from its object: pure, and total, since anybody may have written a status.

The counts are what the operator last wrote, which it does on large changes only; whoever has asked the broker itself
puts fresher ones in their place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

# Those of which True is the state that one wants. Paused is neither good nor bad.
WANTED = ("Ready", "BrokerReachable", "TopologyReady", "WorkersPlaced", "WorkersAvailable")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, as the operator wrote it."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None

    @property
    def is_bad(self) -> bool:
        return self.type in WANTED and self.status != "True"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many messages there are. None is not known. `asleep` are those of the whole vhost.

    `where` is the broker that was asked, and empty for what the operator wrote.
    """

    ready: int | None = None
    unacked: int | None = None
    dead: int | None = None
    asleep: int | None = None
    orphans: int | None = None
    at: datetime | None = None
    where: str = ""

    def as_json(self) -> dict[str, Any]:
        named = {
            "ready": self.ready,
            "unacked": self.unacked,
            "dead": self.dead,
            "asleepInVhost": self.asleep,
            "orphansInVhost": self.orphans,
            "observedTime": None if self.at is None else self.at.isoformat(),
        }
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Standing:
    """One consumer. No `ready` means that the operator has not said anything of it as it is now."""

    namespace: str
    name: str
    created: datetime | None
    conditions: tuple[Condition, ...]
    counts: Counts
    queue: str
    dead_queue: str
    vhost: str
    version: str
    schedule: str
    wanted: int | None
    available: int | None
    unplaced: int
    selector: str
    missing: tuple[str, ...]
    paused: bool
    current: bool
    has_worker: bool

    @property
    def ready(self) -> Condition | None:
        return next((each for each in self.conditions if each.type == "Ready"), None)

    @property
    def is_ready(self) -> bool:
        return self.current and self.ready is not None and self.ready.status == "True"

    @property
    def verdict(self) -> str:
        """Say in one sentence how it stands."""
        ready = self.ready
        if ready is None:
            return "the operator has not seen it yet: is it running? (`redrive doctor`)"
        if not self.current:
            return "it was changed, and the operator has not seen to that yet"
        if ready.status == "True":
            return "paused" if self.paused else "ready"
        return f"not ready, {ready.reason}: {ready.message}"

    def with_counts(self, counts: Counts) -> "Standing":
        return replace(self, counts=counts)

    def as_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "ready": self.is_ready,
            "verdict": self.verdict,
            "paused": self.paused,
            "queue": self.queue,
            "deadQueue": self.dead_queue,
            "vhost": self.vhost,
            "rabbitmq": self.version,
            "schedule": self.schedule,
            "messages": self.counts.as_json(),
            "workers": {"wanted": self.wanted, "available": self.available, "unplaced": self.unplaced},
            "conditions": [
                {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
                for each in self.conditions
            ],
        }


def read_standing(body: Mapping[str, Any]) -> Standing:
    metadata, spec, status = (_mapping(body.get(name)) for name in ("metadata", "spec", "status"))
    queues, broker, workers = (_mapping(status.get(name)) for name in ("queues", "broker", "workers"))
    namespace, name = _text(metadata.get("namespace")), _text(metadata.get("name"))
    queue = _text(queues.get("work")) or _text(_mapping(spec.get("queue")).get("name")) or f"{namespace}.{name}"
    conditions = tuple(map(_condition, _list(status.get("conditions"))))
    ready = next((each for each in _list(status.get("conditions")) if each.get("type") == "Ready"), {})
    return Standing(
        namespace=namespace,
        name=name,
        created=read_time(metadata.get("creationTimestamp")),
        conditions=conditions,
        counts=_counts(_mapping(status.get("messages"))),
        queue=queue,
        dead_queue=_text(queues.get("dead")) or f"redrive.dead.{queue}",
        vhost=_text(broker.get("vhost")) or _text(_mapping(spec.get("broker")).get("vhost")) or "/",
        version=_text(broker.get("version")),
        schedule=_text(status.get("schedule")),
        wanted=_number(workers.get("wanted")),
        available=_number(workers.get("available")),
        unplaced=_number(workers.get("unplaced")) or 0,
        selector=_text(status.get("selector")),
        missing=_texts(broker.get("missing")),
        paused=spec.get("paused") is True,
        current=ready.get("observedGeneration") == metadata.get("generation"),
        has_worker=bool(spec.get("worker")),
    )


@dataclass(frozen=True, slots=True)
class Told:
    """One event about an object."""

    at: datetime | None
    type: str
    reason: str
    message: str
    count: int


def read_events(bodies: Iterable[Mapping[str, Any]], *, most: int) -> list[Told]:
    """Read the last events, the newest last."""
    events = [_event(body) for body in bodies]
    never = datetime.min.replace(tzinfo=UTC)
    return sorted(events, key=lambda event: event.at or never)[-most:]


@dataclass(frozen=True, slots=True)
class Pod:
    """A worker pod, as people want to know it."""

    name: str
    node: str
    state: str
    restarts: int
    created: datetime | None


def read_pods(bodies: Iterable[Mapping[str, Any]]) -> list[Pod]:
    return sorted(map(_pod, bodies), key=lambda pod: pod.name)


def _pod(body: Mapping[str, Any]) -> Pod:
    metadata, spec, status = (_mapping(body.get(name)) for name in ("metadata", "spec", "status"))
    containers = _list(status.get("containerStatuses"))
    conditions = {_text(each.get("type")): each.get("status") for each in _list(status.get("conditions"))}
    return Pod(
        _text(metadata.get("name")),
        _text(spec.get("nodeName")),
        _state(metadata, status, containers, is_ready=conditions.get("Ready") == "True"),
        sum(_number(each.get("restartCount")) or 0 for each in containers),
        read_time(metadata.get("creationTimestamp")),
    )


def _state(
    metadata: Mapping[str, Any],
    status: Mapping[str, Any],
    containers: Sequence[Mapping[str, Any]],
    *,
    is_ready: bool,
) -> str:
    if metadata.get("deletionTimestamp"):
        return "draining"
    waiting = (_text(_mapping(_mapping(each.get("state")).get("waiting")).get("reason")) for each in containers)
    reason = next(filter(None, waiting), "")
    return reason or ("consuming" if is_ready else _text(status.get("phase")) or "unknown")


def _event(body: Mapping[str, Any]) -> Told:
    series = _mapping(body.get("series"))
    times = (series.get("lastObservedTime"), body.get("lastTimestamp"), body.get("eventTime"))
    at = next(filter(None, map(read_time, times)), None)
    type_, reason, message = (_text(body.get(name)) for name in ("type", "reason", "message"))
    return Told(at, type_, reason, message, _number(body.get("count")) or 1)


def _condition(raw: Mapping[str, Any]) -> Condition:
    type_, status, reason, message = (_text(raw.get(name)) for name in ("type", "status", "reason", "message"))
    return Condition(type_, status, reason, message, read_time(raw.get("lastTransitionTime")))


def _counts(raw: Mapping[str, Any]) -> Counts:
    ready, unacked, dead = (_number(raw.get(name)) for name in ("ready", "unacked", "dead"))
    return Counts(ready, unacked, dead, at=read_time(raw.get("observedTime")))


def read_time(raw: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(_text(raw))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _mapping(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _list(raw: object) -> list[Mapping[str, Any]]:
    return [each for each in raw if isinstance(each, Mapping)] if isinstance(raw, list) else []


def _texts(raw: object) -> tuple[str, ...]:
    return tuple(each for each in raw if isinstance(each, str)) if isinstance(raw, list) else ()


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""


def _number(raw: object) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None
