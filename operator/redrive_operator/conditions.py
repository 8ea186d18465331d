"""What was seen, judged: one condition for each part, and Ready, which sums them up.

A problem is told by its own reason if that is one of its condition's, and by the nearest one otherwise: no status ever
has a reason that is not written down. What happened before matters in two places only: workers that do not yet run are
told from those that do no longer, and workers that had no place have none until all of them have one.
"""

import re
from collections.abc import Sequence

from redrive.spec import Consumer
from redrive_operator.causes import PlacementCause
from redrive_operator.history import Judged, Past
from redrive_operator.observation import (
    BrokerSeen,
    ConnectionSeen,
    Crashing,
    Deleting,
    Problem,
    TopologySeen,
    Unplaced,
    WorkersSeen,
)
from redrive_operator.reasons import (
    BrokerReason,
    ConditionType,
    PausedReason,
    PermissionsReason,
    PlacedReason,
    ReadyReason,
    Reason,
    Status,
    TopologyReason,
    UnjudgedReason,
    WorkersReason,
)
from redrive_operator.wording import count, shorten

_COULD_NOT_LOOK = "nobody could look, because the broker cannot be used"
_NOT_CHECKED = "nobody has looked yet"

# A connection that breaks in the middle of the work says nothing about what is on the broker.
_LOST = (BrokerReason.UNREACHABLE, TopologyReason.BROKER_UNREACHABLE)

# No longer than an event may be, so that it and the condition say the same, advice and all.
_LONGEST_PLACEMENT = 1024
# So many causes are explained; the others are named.
_EXPLAINED = 3
_CAUSES = re.compile(r"[^:]* no place: ([^:.()]*)(?:\(before: ([^:.()]*)\))?[:.]")


def judge_broker(broker: BrokerSeen) -> Judged:
    if broker.problem is not None:
        return _of_broker(_name_reason(broker.problem, BrokerReason.BAD_ANSWER), broker.problem.message)
    without = "" if broker.management else ", without its management API"
    return _of_broker(
        BrokerReason.CONNECTED, f"{_name(broker.version)} answers for the vhost {broker.vhost!r}{without}"
    )


def judge_connection(seen: ConnectionSeen) -> Judged:
    if seen.problem is not None:
        return _of_broker(_name_reason(seen.problem, BrokerReason.BAD_ANSWER), seen.problem.message)
    return _of_broker(BrokerReason.CONNECTED, f"{_name(seen.version)} answers")


def judge_permissions(seen: ConnectionSeen) -> Judged:
    kind = ConditionType.PERMISSIONS_SUFFICIENT
    if seen.permissions is not None:
        reason = _name_reason(seen.permissions, PermissionsReason.INSUFFICIENT)
        return Judged(kind, reason, seen.permissions.message)
    if seen.problem is not None:
        return Judged(kind, PermissionsReason.BROKER_UNREACHABLE, _COULD_NOT_LOOK)
    return Judged(kind, PermissionsReason.SUFFICIENT, "users, permissions and policies can be made")


def judge_topology(consumer: Consumer, topology: TopologySeen | None, broker: Judged) -> Judged:
    kind = ConditionType.TOPOLOGY_READY
    if topology is not None and topology.problem is not None:
        problem = topology.problem
        if problem.reason in _LOST:
            return Judged(kind, TopologyReason.BROKER_UNREACHABLE, problem.message)
        return Judged(kind, _name_reason(problem, TopologyReason.BROKEN), problem.message)
    if broker.status != Status.TRUE:
        return Judged(kind, TopologyReason.BROKER_UNREACHABLE, _COULD_NOT_LOOK)
    if topology is None:
        return Judged(kind, UnjudgedReason.NOT_CHECKED, _NOT_CHECKED)
    if topology.missing:
        return Judged(kind, TopologyReason.INCOMPLETE, "; ".join(topology.missing))
    queue = consumer.queue.name
    return Judged(kind, TopologyReason.PROVISIONED, f"the queue {queue!r}, its dead letters and its delays are there")


def judge_workers(
    consumer: Consumer, workers: WorkersSeen | None, topology: Judged, *, stopping: bool, past: Past, had: int
) -> Judged:
    """Judge the workers, of which `had` were available when the past condition was written."""
    if consumer.worker is None:
        return _of_workers(WorkersReason.RUN_ELSEWHERE, "the spec has no worker")
    if stopping:
        return _of_workers(WorkersReason.NONE_WANTED, _say_none_wanted(consumer, stopping=True))
    if workers is None:
        if topology.status == Status.FALSE:
            return _of_workers(WorkersReason.TOPOLOGY_NOT_READY, "workers are made when the queues are ready")
        return _of_workers(UnjudgedReason.NOT_CHECKED, _NOT_CHECKED)
    problem = workers.problem
    if workers.wanted <= 0 and (problem is None or problem.reason == WorkersReason.TOPOLOGY_NOT_READY):
        return _of_workers(WorkersReason.NONE_WANTED, _say_none_wanted(consumer, stopping=False))
    if problem is not None:
        return _of_workers(_name_reason(problem, WorkersReason.REFUSED), problem.message)
    return _judge_pods(workers, past=past, had=had)


def judge_placement(consumer: Consumer, workers: WorkersSeen | None, *, stopping: bool, past: Past) -> Judged:
    """Judge whether the workers have their places.

    Where one had none, the trouble lasts until each has one: a pod that was made anew only has its grace again.
    """
    if consumer.worker is None:
        return _of_placement(PlacedReason.RUN_ELSEWHERE, "the spec has no worker")
    if stopping or (workers is not None and workers.wanted <= 0):
        return _of_placement(PlacedReason.PLACED, _say_none_wanted(consumer, stopping=stopping))
    failed = past.reason == PlacedReason.FAILED_WORKER_PLACEMENT
    if workers is None:
        if failed:
            return _of_placement(PlacedReason.FAILED_WORKER_PLACEMENT, past.message)
        return _of_placement(UnjudgedReason.NOT_CHECKED, _NOT_CHECKED)
    if workers.unplaced:
        before = read_causes(past.message) if failed else frozenset()
        return _of_placement(PlacedReason.FAILED_WORKER_PLACEMENT, _describe_unplaced(workers, before))
    if failed and _are_unsettled(workers):
        return _of_placement(PlacedReason.FAILED_WORKER_PLACEMENT, past.message)
    return _of_placement(PlacedReason.PLACED, "no worker has waited for its place for longer than the grace")


def read_causes(message: str) -> frozenset[PlacementCause]:
    """Read back the causes of a message of FailedWorkerPlacement: those of now, and those that came before.

    They stand before any word of Kubernetes, where nothing that somebody chose can pass for one.
    """
    found = _CAUSES.match(message)
    words = re.findall("[A-Za-z]+", " ".join(group or "" for group in found.groups())) if found else ()
    return frozenset(cause for cause in PlacementCause if cause in words)


def judge_paused(consumer: Consumer) -> Judged:
    if consumer.paused:
        return Judged(ConditionType.PAUSED, PausedReason.PAUSED, "spec.paused is true: messages wait in the queue")
    return Judged(ConditionType.PAUSED, PausedReason.NOT_PAUSED, "spec.paused is false")


def sum_up(parts: Sequence[Judged], *, paused: bool = False) -> Judged:
    """Say whether all is well: as the first part does that failed, else as the first that nobody knows about."""
    failed = [part for part in parts if part.status == Status.FALSE]
    unknown = [part for part in parts if part.status == Status.UNKNOWN]
    for part in (*failed, *unknown):
        return Judged(ConditionType.READY, part.reason, part.message)
    if paused:
        waiting = "paused: messages wait in the queue until spec.paused is false"
        return Judged(ConditionType.READY, ReadyReason.PAUSED, waiting)
    return Judged(ConditionType.READY, ReadyReason.READY, parts[-1].message)


def judge_going(deleting: Deleting | None) -> Judged:
    """Sum up an object that is being deleted, and say what it waits for."""
    if deleting is None:
        return Judged(ConditionType.READY, ReadyReason.DELETING, "it is being deleted")
    known = (ReadyReason.DELETING, ReadyReason.DRAINING, ReadyReason.DELETION_BLOCKED)
    reason = next((one for one in known if one == deleting.reason), ReadyReason.DELETING)
    return Judged(ConditionType.READY, reason, f"it is being deleted, and waits for {deleting.waits_for}")


def judge_invalid(part: ConditionType) -> Judged:
    return Judged(part, UnjudgedReason.INVALID_SPEC, "not judged, because the spec cannot be used")


def find_users(seen: ConnectionSeen) -> Deleting | None:
    """Say for whom a BrokerConnection must stay: without it nobody could clear up after those that use it."""
    if seen.consumers <= 0:
        return None
    waits_for = f"{count(seen.consumers, 'RetryingConsumer')} that still use it"
    return Deleting(waits_for, ReadyReason.DELETION_BLOCKED)


def _judge_pods(workers: WorkersSeen, *, past: Past, had: int) -> Judged:
    counted = f"{workers.available} of {count(workers.wanted, 'worker')} available"
    if workers.failure:
        return _of_workers(WorkersReason.CANNOT_CREATE_PODS, f"{counted}; pods cannot be created: {workers.failure}")
    if workers.crashing is not None:
        return _of_workers(WorkersReason.CRASH_LOOPING, f"{counted}; {_describe_crashes(workers.crashing)}")
    if workers.stalled:
        return _of_workers(WorkersReason.ROLLOUT_STALLED, f"{counted}; the rollout does not get on: {workers.stalled}")
    if workers.updated < workers.wanted or workers.exist > workers.updated:
        return _of_workers(WorkersReason.ROLLING_OUT, f"{counted}, {workers.updated} of the current version")
    if workers.available >= workers.wanted:
        return _of_workers(WorkersReason.AVAILABLE, counted)
    if workers.available < had or past.reason == WorkersReason.UNAVAILABLE:
        return _of_workers(WorkersReason.UNAVAILABLE, f"{counted}: the events and logs of the other pods say why")
    return _of_workers(WorkersReason.ROLLING_OUT, f"{counted}, the others are starting")


def _describe_crashes(crashing: Crashing) -> str:
    verb = "crashes" if crashing.count == 1 else "crash"
    return f"{crashing.count} {verb} again and again: pod {crashing.pod}: {crashing.message}"


def _are_unsettled(workers: WorkersSeen) -> bool:
    """Say whether some still wait for a place, or are still to be made."""
    return workers.waiting > 0 or (workers.problem is None and workers.exist < workers.wanted)


def _describe_unplaced(workers: WorkersSeen, before: frozenset[PlacementCause]) -> str:
    """Say how many have no place, why, and what to do. `read_causes` relies on what stands where."""
    unplaced = workers.unplaced
    number = sum(one.count for one in unplaced)
    whole = count(max(workers.wanted, workers.exist, number), "worker")  # of two versions during a rollout
    several = len(unplaced) > 1
    causes = ", ".join(f"{one.count} {one.cause}" for one in unplaced) if several else unplaced[0].cause
    gone = [cause for cause in PlacementCause if cause in before.difference(one.cause for one in unplaced)]
    earlier = f" (before: {', '.join(gone)})" if gone else ""
    head = f"{number} of {whole} {'has' if number == 1 else 'have'} no place: {causes}{earlier}"
    explained = unplaced[:_EXPLAINED]
    room = (_LONGEST_PLACEMENT - len(head)) // len(explained) - len(". ")
    if several:
        told = [f"{one.cause}: {_explain(one, room - len(one.cause) - len(': '))}" for one in explained]
        return shorten(f"{head}. {'. '.join(told)}", _LONGEST_PLACEMENT)
    return shorten(f"{head}: {_explain(unplaced[0], room)}", _LONGEST_PLACEMENT)


def _explain(unplaced: Unplaced, room: int) -> str:
    """Give the words of Kubernetes, as many as there is room for beside the advice."""
    advice = unplaced.cause.advice
    words = " ".join(unplaced.message.split()).rstrip(".;: ")
    said = shorten(words, max(len("…".encode()), room - len(advice) - len("; ")))
    return f"{said}; {advice}" if said else advice


def _say_none_wanted(consumer: Consumer, *, stopping: bool) -> str:
    if stopping:
        return "no worker is wanted: it is being deleted"
    return f"no worker is wanted: {'it is paused' if consumer.paused else 'it is scaled to zero'}"


def _of_placement(reason: Reason, message: str) -> Judged:
    return Judged(ConditionType.WORKERS_PLACED, reason, message)


def _of_broker(reason: Reason, message: str) -> Judged:
    return Judged(ConditionType.BROKER_REACHABLE, reason, message)


def _of_workers(reason: Reason, message: str) -> Judged:
    return Judged(ConditionType.WORKERS_AVAILABLE, reason, message)


def _name_reason(problem: Problem, nearest: Reason) -> Reason:
    """Find the reason that a problem names among those of its condition; it cannot be one by which all is well."""
    known = (reason for reason in type(nearest) if reason == problem.reason and reason.status != Status.TRUE)
    return next(known, nearest)


def _name(version: str) -> str:
    return f"RabbitMQ {version}" if version else "the broker"
