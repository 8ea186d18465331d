"""What happened, told once: by comparing what an object's conditions were with what they are now.

Since the conditions are kept in the object, a restart of the operator repeats nothing. What leaves no trace in them (a
repair, a reclaimed orphan) is told when it is seen. A warning comes again when its reason changes, or a cause is added
to it. What follows from a broker that is away, or from workers that have no place, is not told beside it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redrive_operator.conditions import read_causes
from redrive_operator.history import History, Judged, Past
from redrive_operator.observation import Observation, TopologySeen
from redrive_operator.reasons import (
    ConditionType,
    EventReason,
    EventType,
    PlacedReason,
    ReadyReason,
    Status,
    TopologyReason,
    UnjudgedReason,
    WorkersReason,
)
from redrive_operator.wording import count, list_few, shorten

# The API server takes no longer note, in bytes.
LONGEST_MESSAGE = 1024

# Pods that cannot be created are told of as workers without a place, once the grace is over.
_TROUBLE = (WorkersReason.UNAVAILABLE, WorkersReason.ROLLOUT_STALLED, WorkersReason.REFUSED)
_OF_NO_PLACE = (WorkersReason.UNAVAILABLE, WorkersReason.ROLLOUT_STALLED)
_NOT_THERE = (
    WorkersReason.NONE_WANTED,
    WorkersReason.TOPOLOGY_NOT_READY,
    WorkersReason.NAME_TAKEN,
    WorkersReason.REFUSED,
)
_UNMADE = ("", WorkersReason.TOPOLOGY_NOT_READY, WorkersReason.RUN_ELSEWHERE, *UnjudgedReason)
_GOING = {
    ReadyReason.DELETING: EventReason.DELETING,
    ReadyReason.DRAINING: EventReason.DELETING,
    ReadyReason.DELETION_BLOCKED: EventReason.DELETION_BLOCKED,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event to be told of an object; one that a person should look at is a warning."""

    reason: EventReason
    message: str

    @property
    def type(self) -> EventType:
        return self.reason.type


def tell(reason: EventReason, message: str) -> Event:
    return Event(reason, shorten(message, LONGEST_MESSAGE))


def tell_broker(past: Past, broker: Judged) -> Iterator[Event]:
    if broker.status == Status.FALSE and not past.is_same(broker):
        yield tell(EventReason.BROKER_UNREACHABLE, broker.message)
    if broker.status == Status.TRUE and past.status == Status.FALSE:
        yield tell(EventReason.BROKER_REACHABLE, broker.message)


def tell_permissions(past: Past, permissions: Judged) -> Iterator[Event]:
    if permissions.status == Status.FALSE and not past.is_same(permissions):
        yield tell(EventReason.PERMISSIONS_INSUFFICIENT, permissions.message)
    if permissions.status == Status.TRUE and past.status == Status.FALSE:
        yield tell(EventReason.PERMISSIONS_SUFFICIENT, permissions.message)


def tell_topology(past: Past, topology: Judged, seen: TopologySeen | None) -> Iterator[Event]:
    """Tell that the queues can be used, or cannot. After an outage, only if something had to be made."""
    if past.is_same(topology):
        return
    if topology.reason == TopologyReason.QUEUE_CONFLICT:
        yield tell(EventReason.QUEUE_CONFLICT, topology.message)
    elif topology.status == Status.FALSE:
        yield tell(EventReason.TOPOLOGY_NOT_READY, topology.message)
    was_away = past.reason == TopologyReason.BROKER_UNREACHABLE
    was_made = seen is not None and bool(seen.repaired)
    was_incomplete = topology.reason == TopologyReason.PROVISIONED and past.status == Status.TRUE
    if topology.status == Status.TRUE and (past.status != Status.TRUE or was_incomplete) and (was_made or not was_away):
        yield tell(EventReason.PROVISIONED, topology.message)


def tell_missing(past: Past, topology: Judged, *, before: Sequence[str], missing: Sequence[str]) -> Iterator[Event]:
    """Tell what is newly missing; an outage does not make it new."""
    if topology.reason != TopologyReason.INCOMPLETE:
        return
    told = before if past.reason in (TopologyReason.INCOMPLETE, TopologyReason.BROKER_UNREACHABLE) else ()
    fresh = [sentence for sentence in missing if sentence not in told]
    if fresh:
        yield tell(EventReason.INCOMPLETE, list_few(fresh, LONGEST_MESSAGE))


def tell_placement(past: Past, placed: Judged, workers: Judged) -> Iterator[Event]:
    """Tell that workers have no place, and each further cause once until all have one; and then that they have."""
    is_news = not past.is_same(placed) or read_causes(placed.message) - read_causes(past.message)
    if placed.status == Status.FALSE and is_news:
        yield tell(EventReason.FAILED_WORKER_PLACEMENT, placed.message)
    recovered = placed.reason == PlacedReason.PLACED and past.status == Status.FALSE
    if recovered and workers.reason not in _NOT_THERE:
        yield tell(EventReason.WORKERS_PLACED, "every worker has its place again")


def tell_workers(past: Past, workers: Judged, broker: Judged, placed: Judged) -> Iterator[Event]:
    if past.is_same(workers):
        return
    if workers.reason == WorkersReason.AVAILABLE:
        yield tell(EventReason.WORKERS_AVAILABLE, workers.message)
    if workers.reason == WorkersReason.NAME_TAKEN:
        yield tell(EventReason.NAME_TAKEN, workers.message)
    if workers.reason == WorkersReason.CRASH_LOOPING:
        yield tell(EventReason.CRASH_LOOPING, workers.message)
    waiting = workers.reason == WorkersReason.UNAVAILABLE and broker.status != Status.TRUE
    unplaced = workers.reason in _OF_NO_PLACE and placed.status == Status.FALSE
    if workers.reason in _TROUBLE and not waiting and not unplaced:
        yield tell(EventReason.WORKERS_UNAVAILABLE, workers.message)


def tell_paused(past: Past, paused: Judged) -> Iterator[Event]:
    if paused.status == Status.TRUE and past.status != Status.TRUE:
        yield tell(EventReason.PAUSED, paused.message)
    if paused.status == Status.FALSE and past.status == Status.TRUE:
        yield tell(EventReason.RESUMED, paused.message)


def tell_invalid(past: Past, ready: Judged) -> Iterator[Event]:
    """Tell what is wrong with a spec. An edit may mend one fault of it and show the next: that is news."""
    if (past.reason, past.message) != (ready.reason, ready.message):
        yield tell(EventReason.INVALID_SPEC, ready.message)


def tell_going(past: Past, ready: Judged) -> Iterator[Event]:
    for reason, event in _GOING.items():
        if ready.reason is reason and past.reason != reason:
            yield tell(event, ready.message)


def tell_facts(history: History, seen: Observation, generation: int) -> Iterator[Event]:
    """Tell what was done just now. What is made for the first time, or for a new spec, was not repaired.

    The broker's side and the cluster's are told apart: a long list of the one must not cut off the other.
    """
    for repaired in (_drifted_topology(history, seen, generation), _drifted_workload(history, seen, generation)):
        if repaired:
            yield tell(EventReason.DRIFT_REPAIRED, list_few(repaired, LONGEST_MESSAGE))
    if seen.workers is not None and seen.workers.scaled:
        yield tell(EventReason.SCALED, seen.workers.scaled)
    if seen.reclaimed > 0:
        yield tell(EventReason.ORPHANS_RECLAIMED, f"{count(seen.reclaimed, 'message')} came back from redrive.orphans")
    if seen.password_rotated:
        yield tell(EventReason.PASSWORD_ROTATED, "the workers' broker user has a new password; they are being replaced")


def _drifted_topology(history: History, seen: Observation, generation: int) -> tuple[str, ...]:
    past = history[ConditionType.TOPOLOGY_READY]
    was_there = past.status == Status.TRUE and past.generation == generation
    return seen.topology.repaired if seen.topology is not None and was_there else ()


def _drifted_workload(history: History, seen: Observation, generation: int) -> tuple[str, ...]:
    past = history[ConditionType.WORKERS_AVAILABLE]
    was_there = past.reason not in _UNMADE and past.generation == generation
    return seen.workers.repaired if seen.workers is not None and was_there else ()
