"""What the operator counts, for Prometheus.

Of each consumer there is what was last seen of it, and nothing of one that is gone. Labels are the consumer's names and
words that are known here.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from redrive.exposition import Exposition, expose
from redrive.reading import Reading
from redrive_operator.metrics.consumers import OF_CONSUMER, ConsumerGauges, Standing
from redrive_operator.metrics.redrives import RedriveMeter
from redrive_operator.metrics.vhosts import VhostGauges
from redrive_operator.placement_meter import PlacementMeter
from redrive_operator.registry import DeskKey
from redrive_operator.subject import Key

_NOW = partial(datetime.now, UTC)

RESULTS = ("ok", "kube-error", "failed")


class Metrics:
    """The metrics of one operator. Every method may be called from any thread."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = _NOW,
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        family = Counter("redrive_reconciles", "Consumers seen to.", ["result"], registry=self._registry)
        self._reconciles = {result: family.labels(result=result) for result in RESULTS}
        self._consumers, self._vhosts = ConsumerGauges(now), VhostGauges()
        self._registry.register(self._consumers)
        self._registry.register(self._vhosts)
        self._placements = PlacementMeter(clock)
        self._registry.register(_Placements(self._placements))
        self._redrives = RedriveMeter()
        self._registry.register(self._redrives)

    def reconciled(self, result: str) -> None:
        self._reconciles[result].inc()

    def saw(self, key: Key, standing: Standing) -> None:
        self._consumers.put(key, standing)
        workers = standing.seen.workers if standing.seen is not None else None
        self._placements.saw(key, workers.unplaced if workers is not None else ())

    def saw_invalid(self, key: Key) -> None:
        """Be told that a consumer's spec cannot be used: nothing else is known of it."""
        self.saw(key, Standing(ready=False))

    def forget(self, key: Key) -> None:
        self._consumers.drop(key)
        self._placements.forget(key)

    def redriven(self, consumer: Key, action: str, number: int) -> None:
        """Be told that a Redrive has put so many dead letters back, or deleted them."""
        self._redrives.moved(consumer, action, number)

    def saw_redrives(self, consumer: Key, states: Mapping[str, int]) -> None:
        self._redrives.saw(consumer, states)

    def forget_redrives(self, consumer: Key) -> None:
        """Be told that a consumer has no Redrives any more."""
        self._redrives.forget(consumer)

    def saw_vhost(self, desk: DeskKey, broker: str, reading: Reading) -> None:
        """Be told what is in a vhost; `broker` is what the RabbitMQ cluster calls itself, and where it was found."""
        self._vhosts.put(desk, broker, reading)

    def forget_vhost(self, desk: DeskKey) -> None:
        """Be told that nobody reads a vhost by this way, now or any more."""
        self._vhosts.drop(desk)

    def watch(self, age: Callable[[], float], lag: Callable[[], float], desks: Callable[[], tuple[int, int]]) -> None:
        """Ask these at every scrape."""
        self._registry.register(_Engine(age, lag, desks))

    def expose(self, accept: str = "", accept_encoding: str = "") -> Exposition:
        return expose(self._registry, accept, accept_encoding)


class _Engine(Collector):
    def __init__(
        self, age: Callable[[], float], lag: Callable[[], float], desks: Callable[[], tuple[int, int]]
    ) -> None:
        self._age, self._lag, self._desks = age, lag, desks

    def collect(self) -> Iterator[Metric]:
        age = "How long ago the watch of the API server was last seen to be right."
        yield GaugeMetricFamily("redrive_watch_age_seconds", age, value=self._age())
        lag = "By how much the most overdue broker, of those that answer, is read too late."
        yield GaugeMetricFamily("redrive_reading_lag_seconds", lag, value=self._lag())
        family = GaugeMetricFamily("redrive_brokers", "Brokers in use, by whether they answer.", labels=["reachable"])
        for name, count in zip(("true", "false"), self._desks(), strict=True):
            family.add_metric([name], count)
        yield family


class _Placements(Collector):
    def __init__(self, meter: PlacementMeter) -> None:
        self._meter = meter

    def collect(self) -> Iterator[Metric]:
        labels = [*OF_CONSUMER, "reason"]
        failed = CounterMetricFamily(
            "redrive_failed_worker_placements",
            "One for every 10 seconds of every worker that had no place.",
            labels=labels,
        )
        unplaced = GaugeMetricFamily("redrive_unplaced_workers", "Workers that have no place now.", labels=labels)
        for tally in self._meter.read():
            whose = [tally.consumer.namespace, tally.consumer.name, tally.cause]
            failed.add_metric(whose, tally.failed)
            unplaced.add_metric(whose, tally.unplaced)
        yield from (failed, unplaced)
