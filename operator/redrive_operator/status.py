"""What a status says beside its conditions, and what of it is worth writing.

What could not be looked at stays as it was: an outage of the broker makes nobody forget its version, the bindings that
were made, or how many messages there were.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from redrive.elements import Binding
from redrive.schedule import schedule
from redrive.spec import Consumer
from redrive.spec.alarms import Alarms
from redrive.topology import dead_queue_name
from redrive_operator.bindings import record_bindings, restore_bindings
from redrive_operator.history import format_time, read_time
from redrive_operator.lasting import note_lasting
from redrive_operator.observation import (
    BrokerSeen,
    ConnectionSeen,
    MessagesSeen,
    Observation,
    TopologySeen,
    WorkersSeen,
)
from redrive_operator.shapes import CONNECTION, CONSUMER, MESSAGES, sift

# Counts move all the time, and every write is seen by all who watch: small changes wait.
SMALL_CHANGE = 10
SMALL_SHARE = 10  # percent
STALE = timedelta(minutes=10)

_COUNTS = ("ready", "unacked", "dead")


def read_bindings(status: object, queue: str) -> tuple[Binding, ...]:
    """Read the bindings that are recorded as made for a queue, whatever somebody has done to the status."""
    return restore_bindings(status.get("bindings") if isinstance(status, Mapping) else None, queue)


def kept_status(status: object) -> dict[str, Any]:
    """Give what a RetryingConsumer's status has said until now, its conditions apart."""
    return sift(status, CONSUMER)


def consumer_status(consumer: Consumer, seen: Observation, *, kept: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    fresh = {
        "queues": {"work": consumer.queue.name, "dead": dead_queue_name(consumer.queue.name)},
        "schedule": str(schedule(consumer.retry)),
        "broker": _broker(seen.broker, seen.topology, kept.get("broker", {})),
        "bindings": _bindings(seen.topology, kept.get("bindings", [])),
        "messages": _messages(seen.messages, consumer.alarms, kept.get("messages", {}), now),
        **_workers(consumer, seen.workers, kept),
    }
    return sift(fresh, CONSUMER)


def connection_status(status: object, seen: ConnectionSeen | None) -> dict[str, Any]:
    """Say what is known of the broker. None, or one that could not be used, leaves that as it was."""
    kept = sift(status, CONNECTION)
    if seen is None:
        return kept
    known = {"clusterName": seen.cluster_name, "version": seen.version, "management": seen.management}
    return sift({**(kept if seen.problem else known), "consumers": seen.consumers}, CONNECTION)


def patch_of(old: object, new: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give the JSON merge patch that makes the old status the new one; None if that is not worth a write."""
    before = old if isinstance(old, Mapping) else {}
    if "messages" in before and "messages" in new and not _is_news(before["messages"], new["messages"]):
        new = {**new, "messages": before["messages"]}
    return _difference(before, new) or None


def _broker(broker: BrokerSeen, topology: TopologySeen | None, kept: Mapping[str, Any]) -> dict[str, Any]:
    place = {"vhost": broker.vhost, "mode": broker.mode}
    moved = any(kept.get(name) != value for name, value in place.items())
    before = {} if moved else kept
    known = {
        "clusterName": broker.cluster_name,
        "version": broker.version,
        "user": broker.user,
        "management": broker.management,
    }
    missing = topology.missing if topology is not None else before.get("missing", [])
    return {**(before if broker.problem else known), **place, "missing": missing}


def _bindings(topology: TopologySeen | None, kept: object) -> object:
    """Bindings that are not known to be gone are still there."""
    if topology is None or (topology.problem is not None and not topology.bindings):
        return kept
    return record_bindings(topology.bindings)


def _messages(messages: MessagesSeen, alarms: Alarms, kept: Mapping[str, Any], now: datetime) -> Mapping[str, Any]:
    counts = {"ready": messages.ready, "unacked": messages.unacked, "dead": messages.dead}
    known = {name: number for name, number in counts.items() if number is not None}
    if not known:
        return kept
    return {**kept, **known, "observedTime": format_time(now), **note_lasting(messages, alarms, kept, now)}


def _workers(consumer: Consumer, workers: WorkersSeen | None, kept: Mapping[str, Any]) -> Mapping[str, Any]:
    if consumer.worker is None:
        return {"replicas": 0}
    if workers is None:
        return {name: kept[name] for name in ("replicas", "selector", "workers") if name in kept}
    return {
        "replicas": workers.exist,
        "selector": workers.selector,
        "workers": {
            "wanted": workers.wanted,
            "available": workers.available,
            "unplaced": sum(unplaced.count for unplaced in workers.unplaced),
        },
    }


def _is_news(told: object, counted: object) -> bool:
    """Say whether these counts of messages are worth a write of their own."""
    old, new = sift(told, MESSAGES), sift(counted, MESSAGES)
    if not _is_same(told, old) or old.keys() != new.keys():
        return not _is_same(told, counted)
    pairs = [(old[name], new[name]) for name in _COUNTS if name in old]
    return any(_is_large(before, after) for before, after in pairs) or (
        any(before != after for before, after in pairs) and _is_stale(old, new)
    )


def _is_large(before: int, after: int) -> bool:
    if (before == 0) != (after == 0):
        return True
    return abs(after - before) > max(SMALL_CHANGE, before * SMALL_SHARE // 100)


def _is_stale(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    then, now = read_time(old.get("observedTime")), read_time(new.get("observedTime"))
    return then is None or now is None or now - then >= STALE


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = _difference(before, value)
            if inner:
                patch[name] = inner
        elif name not in old or not _is_same(before, value):
            patch[name] = value
    return patch


def _is_same(old: object, new: object) -> bool:
    """Compare as JSON does, to which True is not 1, nor 1.0."""
    if isinstance(new, Mapping):
        return (
            isinstance(old, Mapping) and old.keys() == new.keys() and all(_is_same(old[key], new[key]) for key in new)
        )
    if isinstance(new, list):
        return isinstance(old, list) and len(old) == len(new) and all(map(_is_same, old, new))
    return old == new and (isinstance(new, str) or type(old) is type(new))
