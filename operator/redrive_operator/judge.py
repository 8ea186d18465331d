"""The judgement of an object: from what it was and what was seen, its status and what there is to tell.

Nothing is done here. Judging the same sight again gives the same status, with nothing to write and nothing to tell,
whenever that is and whoever started anew in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from redrive.errors import SpecError
from redrive.spec import Consumer, DeletionPolicy
from redrive_operator import conditions, events
from redrive_operator.events import Event
from redrive_operator.history import LONGEST_MESSAGE, History, Judged, write_conditions
from redrive_operator.observation import ConnectionSeen, Observation
from redrive_operator.reasons import ConditionType, ReadyReason, Status
from redrive_operator.status import connection_status, consumer_status, kept_status
from redrive_operator.subject import Subject
from redrive_operator.wording import shorten

_PARTS = {
    "RetryingConsumer": (
        ConditionType.BROKER_REACHABLE,
        ConditionType.TOPOLOGY_READY,
        ConditionType.WORKERS_PLACED,
        ConditionType.WORKERS_AVAILABLE,
        ConditionType.PAUSED,
    ),
    "BrokerConnection": (ConditionType.BROKER_REACHABLE, ConditionType.PERMISSIONS_SUFFICIENT),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The whole status of an object, and the events that have not been told yet."""

    status: dict[str, Any]
    events: tuple[Event, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether all is well: the first of the conditions, which sums the others up."""
        return bool(self.status["conditions"][0]["status"] == Status.TRUE)


def judge(subject: Subject, consumer: Consumer, seen: Observation, *, now: datetime) -> Verdict:
    """Judge a RetryingConsumer."""
    history, kept = subject.history, kept_status(subject.status)
    going = subject.deleting or seen.deleting is not None
    parts = _judge_parts(consumer, seen, history, kept, going=going)
    summed = conditions.sum_up(parts.needed, paused=consumer.paused)
    ready = conditions.judge_going(seen.deleting) if going else summed
    body = consumer_status(consumer, seen, kept=kept, now=now)
    past = history[ConditionType.TOPOLOGY_READY]
    told = (
        *events.tell_going(history[ConditionType.READY], ready),
        *events.tell_broker(history[ConditionType.BROKER_REACHABLE], parts.broker),
        *events.tell_topology(past, parts.topology, seen.topology),
        *events.tell_missing(past, parts.topology, before=_missing(kept), missing=_missing(body)),
        *events.tell_placement(history[ConditionType.WORKERS_PLACED], parts.placed, parts.workers),
        *events.tell_workers(history[ConditionType.WORKERS_AVAILABLE], parts.workers, parts.broker, parts.placed),
        *events.tell_paused(history[ConditionType.PAUSED], parts.paused),
        *events.tell_facts(history, seen, subject.generation),
    )
    return Verdict(_write(subject, history, (ready, *parts.needed, parts.paused), body, now), told)


def judge_invalid(subject: Subject, error: SpecError, *, now: datetime) -> Verdict:
    """Judge an object of either kind whose spec cannot be used: nothing else is known of it."""
    history = subject.history
    message = shorten(str(error), LONGEST_MESSAGE)
    ready = Judged(ConditionType.READY, ReadyReason.INVALID_SPEC, message)
    parts = (conditions.judge_invalid(part) for part in _PARTS.get(subject.kind, ()))
    connection = subject.kind == "BrokerConnection"
    body = connection_status(subject.status, None) if connection else kept_status(subject.status)
    status = _write(subject, history, (ready, *parts), body, now)
    return Verdict(status, tuple(events.tell_invalid(history[ConditionType.READY], ready)))


def judge_connection(subject: Subject, seen: ConnectionSeen, *, now: datetime) -> Verdict:
    """Judge a BrokerConnection."""
    history = subject.history
    broker = conditions.judge_connection(seen)
    permissions = conditions.judge_permissions(seen)
    summed = conditions.sum_up((broker, permissions))
    ready = conditions.judge_going(conditions.find_users(seen)) if subject.deleting else summed
    told = (
        *events.tell_going(history[ConditionType.READY], ready),
        *events.tell_broker(history[ConditionType.BROKER_REACHABLE], broker),
        *events.tell_permissions(history[ConditionType.PERMISSIONS_SUFFICIENT], permissions),
    )
    body = connection_status(subject.status, seen)
    return Verdict(_write(subject, history, (ready, broker, permissions), body, now), told)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is judged of a RetryingConsumer, in the order in which it matters."""

    broker: Judged
    topology: Judged
    placed: Judged
    workers: Judged
    paused: Judged

    @property
    def needed(self) -> tuple[Judged, ...]:
        return (self.broker, self.topology, self.placed, self.workers)


def _judge_parts(
    consumer: Consumer, seen: Observation, history: History, kept: dict[str, Any], *, going: bool
) -> _Parts:
    stopping = going and consumer.deletion_policy is not DeletionPolicy.DELETE_IF_EMPTY
    broker = conditions.judge_broker(seen.broker)
    topology = conditions.judge_topology(consumer, seen.topology, broker)
    placed = conditions.judge_placement(
        consumer, seen.workers, stopping=stopping, past=history[ConditionType.WORKERS_PLACED]
    )
    workers = conditions.judge_workers(
        consumer,
        seen.workers,
        topology,
        stopping=stopping,
        past=history[ConditionType.WORKERS_AVAILABLE],
        had=kept.get("workers", {}).get("available", 0),
    )
    return _Parts(broker, topology, placed, workers, conditions.judge_paused(consumer))


def _write(
    subject: Subject, history: History, judged: Sequence[Judged], body: dict[str, Any], now: datetime
) -> dict[str, Any]:
    written = write_conditions(judged, history, generation=subject.generation, now=now)
    return {"observedGeneration": subject.generation, "conditions": written, **body}


def _missing(body: dict[str, Any]) -> Sequence[str]:
    missing: Sequence[str] = body.get("broker", {}).get("missing", [])
    return missing
