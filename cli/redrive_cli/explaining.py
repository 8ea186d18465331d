"""What a consumer comes to before anybody applies it: its delays, what retries cost, its queues, and what to mind.

Pure, and about the spec alone. The load is the plain product that people compute on a napkin: messages a second, times
the share that fails, times the retries, as if all that fail failed to the end. It is the worst that can be, and the
figure to compare with what a downstream bears.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from redrive.elements import Queue
from redrive.ladder import DELIVERY_LIMIT, places_for
from redrive.policy import Action, Backoff, Jitter, Rule, Strategy
from redrive.retry import delay_after
from redrive.schedule import Schedule, schedule
from redrive.spec import Consumer, format_duration
from redrive.topology import Owner, Wanted, dead_queue_name, plan

# RabbitMQ's own, since 3.8.15: who holds a message for longer loses its channel.
CONSUMER_TIMEOUT = timedelta(minutes=30)
RATE = 1000.0
RATIOS = (0.01, 0.05, 0.1, 0.5, 1.0)

# From Friday evening to Monday morning.
WEEKEND = timedelta(hours=72)
SHORT = timedelta(minutes=1)

_RUNG = "redrive.delay."


@dataclass(frozen=True, slots=True)
class Load:
    """What retries add while a share of the messages fails: messages a second, and how many sleep at a time."""

    ratio: float
    extra: float
    total: float
    asleep: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """All of it."""

    consumer: Consumer
    schedule: Schedule
    rate: float
    loads: tuple[Load, ...]
    queues: tuple[str, ...]
    rungs: int
    rules: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        retention = self.consumer.retention
        return {
            "namespace": self.consumer.namespace,
            "name": self.consumer.name,
            **self.schedule.as_json(),
            "retentionSeconds": None if retention is None else retention.total_seconds(),
            "amplification": [
                {
                    "messagesPerSecond": self.rate,
                    "failureRatio": load.ratio,
                    "extraPerSecond": load.extra,
                    "totalPerSecond": load.total,
                    "asleep": load.asleep,
                }
                for load in self.loads
            ],
            "queues": [*self.queues],
            "warnings": [*self.warnings],
        }


def explain(
    consumer: Consumer,
    *,
    rate: float = RATE,
    ratios: tuple[float, ...] = RATIOS,
    consumer_timeout: timedelta = CONSUMER_TIMEOUT,
    delivery_limit: int = DELIVERY_LIMIT,
) -> Explanation:
    """Explain a consumer; the limits are those of its broker and of a queue that was there before."""
    planned = schedule(consumer.retry)
    queues = [each.name for each in plan(Wanted.of(consumer), Owner("explain")) if isinstance(each, Queue)]
    return Explanation(
        consumer,
        planned,
        rate,
        tuple(amplify(planned, rate, ratio) for ratio in ratios),
        tuple(queues),
        sum(name.startswith(_RUNG) for name in queues),
        tuple(_say_rule(consumer, rule) for rule in consumer.retry.rules),
        tuple(warn(consumer, planned, consumer_timeout=consumer_timeout, delivery_limit=delivery_limit)),
    )


def amplify(planned: Schedule, rate: float, ratio: float) -> Load:
    retries = len(planned.rows) - 1
    extra = round(rate * ratio * retries, 6)
    asleep = rate * ratio * planned.rows[-1].cumulative.total_seconds()
    return Load(ratio, extra, round(rate + extra, 6), round(asleep, 6))


def warn(consumer: Consumer, planned: Schedule, *, consumer_timeout: timedelta, delivery_limit: int) -> Iterator[str]:
    """Say what a wise colleague would, the gravest first."""
    yield from _warn_of_retention(consumer, planned)
    yield from _warn_of_limits(consumer, consumer_timeout, delivery_limit)
    yield from _warn_of_delays(consumer, planned)
    if consumer.paused:
        yield "spec.paused is true: the queues are there and fill, and no worker runs"


def _warn_of_retention(consumer: Consumer, planned: Schedule) -> Iterator[str]:
    retention = consumer.retention
    if retention is None:
        return
    kept = format_duration(retention)
    if planned.worst_case > retention:
        yield (
            f"a message may be retried for {format_duration(planned.worst_case)}, longer than its dead letter is then "
            f"kept ({kept}): raise spec.deadLetter.retention, or retry for a shorter time"
        )
    if retention < WEEKEND:
        yield (
            f"dead letters are destroyed after {kept}: what dies on a Friday evening is gone on Monday; "
            "raise spec.deadLetter.retention"
        )
    if not consumer.alarms.dead_letters.enabled:
        yield (
            f"the alarm on dead letters is off, and they are destroyed after {kept}: nobody may ever know of them; "
            "leave spec.alarms.deadLetters on, or keep them Forever"
        )


def _warn_of_limits(consumer: Consumer, consumer_timeout: timedelta, delivery_limit: int) -> Iterator[str]:
    longest, policy = consumer.longest_attempt, consumer.retry
    if longest is not None and longest > consumer_timeout:
        tries = f" with its {policy.immediate.tries} tries" if policy.immediate.tries > 1 else ""
        yield (
            f"one attempt{tries} may last {format_duration(longest)}, longer than the broker's consumer timeout "
            f"({format_duration(consumer_timeout)}, unless its administrator changed it): the broker would take the "
            "message back in the middle; lower spec.worker.timeout, or have consumer_timeout raised"
        )
    if policy.max_attempts > delivery_limit:
        yield (
            f"{policy.max_attempts} attempts are more than the queue's delivery limit ({delivery_limit}): the broker "
            "itself may dead-letter a message before its last attempt; give the queue an x-delivery-limit of "
            f"{DELIVERY_LIMIT}, as Redrive does for those that it makes"
        )
    worker = consumer.worker
    if worker is not None and policy.immediate.tries > 1 and worker.timeout >= policy.immediate.within:
        yield (
            f"a try that lasts to its timeout ({format_duration(worker.timeout)}) leaves no time for another within "
            f"{format_duration(policy.immediate.within)}: lower spec.worker.timeout, or raise within"
        )


def _warn_of_delays(consumer: Consumer, planned: Schedule) -> Iterator[str]:
    policy, retries = consumer.retry, len(planned.rows) - 1
    cut = [each for each in range(1, retries + 1) if delay_after(policy.backoff, each) > policy.max_delay]
    if cut:
        yield (
            f"spec.retry.maxDelay ({format_duration(policy.max_delay)}) cuts the delays after attempt {cut[0]} "
            "and later ones: raise it, or lower spec.retry.backoff.max so that it says what happens"
        )
    if not retries:
        yield "there is one attempt and no retry: the first failure parks a message; raise spec.retry.maxAttempts"
    elif planned.worst_case < SHORT:
        within = f"are over within {format_duration(planned.worst_case)}" if planned.worst_case else "come at once"
        yield (
            f"all {retries + 1} attempts {within}: whatever a message depends on need only be away for longer to have "
            "every message parked; use longer delays"
        )
    if retries and policy.backoff.jitter is Jitter.NONE and policy.backoff.strategy is not Strategy.NONE:
        yield (
            "there is no jitter: messages that fail together come back together, each time; "
            "set spec.retry.backoff.jitter to Full"
        )


def _say_rule(consumer: Consumer, rule: Rule) -> str:
    what = _say_matcher(rule)
    if rule.action is Action.DEAD_LETTER:
        return f"{what}: parked at once"
    if rule.backoff is None:
        return f"{what}: retried as the rest"
    return f"{what}: {schedule(_with_backoff(consumer, rule.backoff).retry)}"


def _with_backoff(consumer: Consumer, backoff: Backoff) -> Consumer:
    return replace(consumer, retry=replace(consumer.retry, backoff=backoff))


def _say_matcher(rule: Rule) -> str:
    if rule.error_types:
        return ", ".join(rule.error_types)
    if rule.exit_codes:
        return f"exit code {', '.join(map(str, rule.exit_codes))}"
    return f"HTTP {', '.join(rule.http_status)}"


def say_ladder(explanation: Explanation) -> str:
    """Say which rungs there will be, and up to which delay they reach."""
    places = places_for(explanation.consumer.retry.max_delay)
    last = f"{_RUNG}{places - 1}.15"
    return f"{explanation.rungs} queues of the delay ladder, {_RUNG}0.1 to {last}, shared by the whole vhost"


def own_queues(explanation: Explanation) -> list[tuple[str, str]]:
    """Name the queues that are not rungs, each with what it is for."""
    work = explanation.consumer.queue.name
    purposes = {work: "work", dead_queue_name(work): "dead letters", "redrive.orphans": "sleepers whose queue is gone"}
    return [(name, purposes.get(name, "")) for name in explanation.queues if not name.startswith(_RUNG)]
