"""What was last seen of each consumer, as gauges: its state, its counts, and what its alarms are measured by.

The thresholds are the object's own, so that one rule serves all consumers. How long something has lasted goes on
between two looks.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from redrive.spec import Consumer
from redrive.spec.alarms import Alarms
from redrive_operator.lasting import Lasting
from redrive_operator.observation import Observation, WorkersSeen
from redrive_operator.subject import Key

OF_CONSUMER = ("namespace", "consumer")

QUEUE_SIZE = "QueueSize"


@dataclass(frozen=True, slots=True)
class Standing:
    """One consumer: what it asks for, and what was last seen of it. Nothing, where its spec cannot be used."""

    ready: bool
    consumer: Consumer | None = None
    seen: Observation | None = None
    lasting: Lasting = field(default_factory=Lasting)


class ConsumerGauges(Collector):
    """Gives a gauge for each number. Every method may be called from any thread."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._standing: dict[Key, Standing] = {}

    def put(self, key: Key, standing: Standing) -> None:
        with self._lock:
            self._standing[key] = standing

    def drop(self, key: Key) -> None:
        with self._lock:
            self._standing.pop(key, None)

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            rows = [((key.namespace, key.name), standing) for key, standing in self._standing.items()]
        now = self._now()
        families = _Families()
        for labels, standing in rows:
            families.ready.add_metric(labels, standing.ready)
            if standing.seen is not None:
                families.add_seen(labels, standing.seen)
            if standing.consumer is not None:
                families.add_asked(labels, standing.consumer)
                families.add_lasting(labels, standing.consumer, standing.lasting, now)
        yield from vars(families).values()


class _Families:
    """The families of one scrape, each also without a sample: who looks for a name finds it."""

    def __init__(self) -> None:
        self.ready = _gauge("redrive_consumer_ready", "Whether all is well with a consumer.")
        self.reachable = _gauge("redrive_broker_reachable", "Whether the broker of a consumer can be used.")
        self.messages = _gauge("redrive_queue_messages", "Messages in a consumer's queues.", "state")
        self.workers = _gauge("redrive_workers", "Worker pods of a consumer.", "state")
        self.crashing = _gauge("redrive_crash_looping_workers", "Workers that start and crash, again and again.")
        self.threshold = _gauge("redrive_alarm_threshold", "Above what a person is called; none if it is off.", "alarm")
        self.patience = _gauge("redrive_alarm_patience_seconds", "For how long it must be above that.", "alarm")
        self.exceeded = _gauge("redrive_exceeded_seconds", "For how long it has been above that.", "alarm")
        self.waiting = _gauge(
            "redrive_dead_letters_waiting_seconds", "How long ago there was no dead letter; 0 if there is none."
        )
        self.retention = _gauge(
            "redrive_dead_letter_retention_seconds", "How long a dead letter is kept; none if for ever."
        )

    def add_seen(self, labels: tuple[str, str], seen: Observation) -> None:
        self.reachable.add_metric(labels, seen.broker.problem is None)
        counted = {"ready": seen.messages.ready, "unacked": seen.messages.unacked, "dead": seen.messages.dead}
        for state, count in counted.items():
            if count is not None:
                self.messages.add_metric([*labels, state], count)
        if seen.workers is not None:
            self.workers.add_metric([*labels, "wanted"], seen.workers.wanted)
            self.workers.add_metric([*labels, "available"], seen.workers.available)
            self.crashing.add_metric(labels, _count_crashing(seen.workers))

    def add_asked(self, labels: tuple[str, str], consumer: Consumer) -> None:
        for alarm, threshold in _thresholds(consumer.alarms).items():
            self.threshold.add_metric([*labels, alarm], threshold)
        if consumer.retention is not None:
            self.retention.add_metric(labels, consumer.retention.total_seconds())

    def add_lasting(self, labels: tuple[str, str], consumer: Consumer, lasting: Lasting, now: datetime) -> None:
        alarms, retention = consumer.alarms, consumer.retention
        waiting = _seconds(lasting.dead, now)
        # None waits for longer than it is kept, however long the queue has not been seen empty.
        self.waiting.add_metric(labels, waiting if retention is None else min(waiting, retention.total_seconds()))
        if alarms.queue_size.enabled:
            whose = [*labels, QUEUE_SIZE]
            self.patience.add_metric(whose, alarms.queue_size.duration.total_seconds())
            self.exceeded.add_metric(whose, _seconds(lasting.above, now))


def _thresholds(alarms: Alarms) -> dict[str, int]:
    """Give the threshold of every alarm that is on, by the name that the rules have for it."""
    every = {
        "WorkerErrors": (alarms.worker_errors.enabled, alarms.worker_errors.above_per_minute),
        "FailedWorkerPlacement": (alarms.failed_placements.enabled, alarms.failed_placements.above_per_minute),
        QUEUE_SIZE: (alarms.queue_size.enabled, alarms.queue_size.above),
        "DeadLetters": (alarms.dead_letters.enabled, alarms.dead_letters.above),
    }
    return {alarm: threshold for alarm, (enabled, threshold) in every.items() if enabled}


def _seconds(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())


def _count_crashing(workers: WorkersSeen) -> int:
    return 0 if workers.crashing is None else workers.crashing.count


def _gauge(name: str, help_text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help_text, labels=[*OF_CONSUMER, *labels])
