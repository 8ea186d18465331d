"""A worker's pod, read: whose it is, what hinders it, and how it last crashed.

Reading is total: whatever a body holds, nothing raises, and what makes no sense is as if it were not there. What a
container itself wrote is not passed on, since it may hold anything, but for one sentence: with exit code 2 a worker
says what it was told and cannot do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redrive_operator.causes import PlacementCause
from redrive_operator.diagnosis import (
    BACK_OFF,
    CREATING,
    HOOK_ERROR,
    RUN_ERROR,
    diagnose_unscheduled,
    diagnose_waiting,
    tidy,
)
from redrive_operator.history import read_time
from redrive_operator.names import WORKER_CONTAINER
from redrive_operator.subject import Key

LONGEST_CRASH = 300

# Since when, if nobody knows: no grace is ever over for it.
UNKNOWN = datetime.max.replace(tzinfo=UTC)

# What a runtime writes for never.
_EPOCH = datetime.fromtimestamp(0, UTC)

_CANNOT_BE_USED = 2

# A program that never ran has written nothing: these ends are told in the words of the container runtime.
_NEVER_RAN = ("StartError", "ContainerCannotRun")


@dataclass(frozen=True, slots=True)
class Hindrance:
    """Why a pod has no place, or cannot be started.

    Without a cause it has a node, which sets it up, and its status does not say why that takes long: its events may.
    """

    cause: PlacementCause | None
    message: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Crash:
    """How a container ended last. Now it is `waiting` to be started again, or has run again since it was `resumed`.

    `started` is None where it never ran.
    """

    message: str
    started: datetime | None
    ended: datetime | None
    waiting: bool
    resumed: datetime | None = None


@dataclass(frozen=True, slots=True)
class PodSeen:
    """One pod. `ended` is one that will not run again; `restarts` is of the container that was restarted most."""

    key: Key
    uid: str
    consumer: Key
    ip: str
    ready: bool
    deleting: bool
    ended: bool
    restarts: int
    hindrance: Hindrance | None
    crash: Crash | None


@dataclass(frozen=True, slots=True)
class _End:
    """How a container ended: `said` is what it wrote, or what the runtime says of one that never ran."""

    code: int | None
    reason: str
    said: str
    started: datetime | None
    ended: datetime | None


@dataclass(frozen=True, slots=True)
class _Container:
    """One container's status. `waits` is the reason for which it waits, None where it does not; `end` is its last."""

    name: str
    runs_once: bool  # as init containers do, unless they are sidecars
    restarts: int
    waits: str | None
    said: str
    resumed: datetime | None
    end: _End | None


def read_pod(body: object) -> PodSeen | None:
    """Read a pod; None for one that no Deployment controls."""
    metadata, spec, status = (_object(_object(body).get(part)) for part in ("metadata", "spec", "status"))
    consumer = _consumer_of(metadata)
    name, uid = _text(metadata.get("name")), _text(metadata.get("uid"))
    if consumer is None or not name or not uid:
        return None
    conditions = {_text(one.get("type")): one for one in _objects(status.get("conditions"))}
    containers = [*_read_containers(spec, status)]
    ended, ready = status.get("phase") in ("Succeeded", "Failed"), _is_true(conditions, "Ready")
    return PodSeen(
        key=Key(consumer.namespace, name),
        uid=uid,
        consumer=consumer,
        ip=_text(status.get("podIP")),
        ready=ready,
        deleting=bool(metadata.get("deletionTimestamp")),
        ended=ended,
        restarts=max((container.restarts for container in containers), default=0),
        hindrance=None if ended or ready else _find_hindrance(metadata, spec, conditions, containers),
        crash=None if ended else _find_crash(containers),
    )


def _consumer_of(metadata: Mapping[str, Any]) -> Key | None:
    """Name the consumer: its Deployment has its name, and a ReplicaSet that of its Deployment, "-" and a hash."""
    for owner in _objects(metadata.get("ownerReferences")):
        if owner.get("controller") is True and owner.get("kind") == "ReplicaSet":
            name, _, digest = _text(owner.get("name")).rpartition("-")
            return Key(_text(metadata.get("namespace")), name) if name and digest else None
    return None


def _find_hindrance(
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    conditions: Mapping[str, Mapping[str, Any]],
    containers: Sequence[_Container],
) -> Hindrance | None:
    created = read_time(metadata.get("creationTimestamp"))
    if not _text(spec.get("nodeName")) and not _is_true(conditions, "PodScheduled"):
        return _read_unscheduled(spec, conditions.get("PodScheduled"), created)
    # A container that had to wait for the init containers, or ran before, is not hindered since the pod got its node.
    placed, begun = _since(conditions, "PodScheduled") or created, _since(conditions, "Initialized")
    for container in containers:
        cause = None if container.waits is None else diagnose_waiting(container.waits)
        if cause is not None:
            return Hindrance(cause, _tell_waiting(container), _latest(placed, begun, _ended(container)))
    # With its sandbox set up its volumes are mounted too: only an image that is being pulled takes long, no hindrance.
    is_set_up = _is_true(conditions, "PodReadyToStartContainers")
    if is_set_up or not all(container.waits in CREATING for container in containers):
        return None
    return Hindrance(None, "its node is setting it up", _latest(placed, begun, *map(_ended, containers)))


def _read_unscheduled(
    spec: Mapping[str, Any], scheduled: Mapping[str, Any] | None, created: datetime | None
) -> Hindrance:
    if scheduled is None:
        message = tidy(f"it waits for the scheduler {_text(spec.get('schedulerName'))}")
        return Hindrance(PlacementCause.NOT_SCHEDULED, message, created or UNKNOWN)
    cause, message = diagnose_unscheduled(_text(scheduled.get("message")) or _text(scheduled.get("reason")))
    return Hindrance(cause, message, read_time(scheduled.get("lastTransitionTime")) or created or UNKNOWN)


def _tell_waiting(container: _Container) -> str:
    return tidy(_of(container, ": ".join(filter(None, (container.waits, container.said)))))


def _find_crash(containers: Sequence[_Container]) -> Crash | None:
    """Find the crash to tell of: that of a container which waits for its next start, else the latest."""
    crashes = [crash for container in containers if (crash := _read_crash(container)) is not None]
    return max(crashes, key=lambda crash: (crash.waiting, crash.ended or _EPOCH), default=None)


def _read_crash(container: _Container) -> Crash | None:
    end, failed_to_start = container.end, container.waits in (RUN_ERROR, HOOK_ERROR)
    waiting = container.waits == BACK_OFF or (failed_to_start and container.restarts > 0)
    has_crashed = end is not None and not (container.runs_once and end.code == 0)
    if not (has_crashed or failed_to_start or waiting):
        return None
    return Crash(
        message=tidy(_of(container, _tell_end(container)), LONGEST_CRASH),
        started=None if end is None else end.started,
        ended=None if end is None else end.ended,
        waiting=waiting,
        resumed=container.resumed,
    )


def _tell_end(container: _Container) -> str:
    end = container.end
    if container.waits == HOOK_ERROR:
        # The kubelet keeps what a hook answered out of its events too, lest a secret leak.
        return "its postStart hook failed"
    never_ran = end is not None and end.reason in _NEVER_RAN
    if container.waits == RUN_ERROR and not never_ran:
        return f"{RUN_ERROR}: {container.said}"
    if end is None or end.code is None:
        return "its status does not say how it ended"
    if end.code == _CANNOT_BE_USED and container.name == WORKER_CONTAINER and end.said:
        return f"exit code {end.code}: {end.said.splitlines()[-1]}"
    told = f"exit code {end.code} ({end.reason})" if end.reason else f"exit code {end.code}"
    return f"{told}: {end.said}" if never_ran and end.said else told


def _of(container: _Container, words: str) -> str:
    return words if container.name == WORKER_CONTAINER else f"container {container.name}: {words}"


def _read_containers(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[_Container]:
    inits = _objects(spec.get("initContainers"))
    sidecars = {_text(init.get("name")) for init in inits if init.get("restartPolicy") == "Always"}
    for raw in _objects(status.get("initContainerStatuses")):
        yield _read_container(raw, runs_once=_text(raw.get("name")) not in sidecars)
    for raw in _objects(status.get("containerStatuses")):
        yield _read_container(raw, runs_once=False)


def _read_container(raw: Mapping[str, Any], *, runs_once: bool) -> _Container:
    state, before = _object(raw.get("state")), _object(raw.get("lastState"))
    waiting, running = _object(state.get("waiting")), _object(state.get("running"))
    end = _object(state.get("terminated")) or _object(before.get("terminated"))
    waits = not running and not _object(state.get("terminated"))  # so too where nothing is said
    return _Container(
        name=_text(raw.get("name")),
        runs_once=runs_once,
        restarts=_number(raw.get("restartCount")) or 0,
        waits=_text(waiting.get("reason")) if waits else None,
        said=_text(waiting.get("message")),
        resumed=read_time(running.get("startedAt")),
        end=_read_end(end) if end else None,
    )


def _read_end(raw: Mapping[str, Any]) -> _End:
    started = read_time(raw.get("startedAt"))
    return _End(
        code=_number(raw.get("exitCode")),
        reason=_text(raw.get("reason")),
        said=_text(raw.get("message")).strip(),
        started=started if started is not None and started > _EPOCH else None,
        ended=read_time(raw.get("finishedAt")),
    )


def _ended(container: _Container) -> datetime | None:
    return None if container.end is None else container.end.ended


def _is_true(conditions: Mapping[str, Mapping[str, Any]], name: str) -> bool:
    return conditions.get(name, {}).get("status") == "True"


def _since(conditions: Mapping[str, Mapping[str, Any]], name: str) -> datetime | None:
    """Say since when a condition is true."""
    return read_time(conditions[name].get("lastTransitionTime")) if _is_true(conditions, name) else None


def _latest(*times: datetime | None) -> datetime:
    return max((time for time in times if time is not None), default=UNKNOWN)


def _object(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _objects(raw: object) -> Iterator[Mapping[str, Any]]:
    return (one for one in raw if isinstance(one, Mapping)) if isinstance(raw, list) else iter(())


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""


def _number(raw: object) -> int | None:
    return raw if isinstance(raw, int) else None
