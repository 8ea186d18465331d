"""What sleeps in the ladder of each vhost, rung by rung, and how many orphans it has.

Several desks may lead to one vhost: what was seen last counts. Clusters that call themselves alike, as those of one
name in two namespaces do, are told apart by their hosts. Of a vhost that cannot be read, nothing is said.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from redrive.ladder import ORPHANS, PLACES, Rung
from redrive.reading import FoundQueue, Reading
from redrive_operator.registry import DeskKey

_RUNGS = [Rung(place, value) for place in range(PLACES) for value in range(1, 16)]
_SECONDS = {rung.name: f"{rung.delay.total_seconds():g}" for rung in _RUNGS}


@dataclass(frozen=True, slots=True)
class _Seen:
    """One vhost of a RabbitMQ cluster. `sleeping` is by the seconds that a rung holds a message."""

    place: tuple[str, str]
    orphans: int
    sleeping: dict[str, int]


class VhostGauges(Collector):
    """Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[DeskKey, _Seen] = {}

    def put(self, desk: DeskKey, broker: str, reading: Reading) -> None:
        queues = reading.queues
        seen = _Seen(
            place=(broker, desk.vhost),
            orphans=_count(queues[ORPHANS]) if ORPHANS in queues else 0,
            sleeping={seconds: _count(queues[name]) for name, seconds in _SECONDS.items() if name in queues},
        )
        with self._lock:
            self._seen.pop(desk, None)  # so that the newest is the last
            self._seen[desk] = seen

    def drop(self, desk: DeskKey) -> None:
        with self._lock:
            self._seen.pop(desk, None)

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            places = {seen.place: seen for seen in self._seen.values()}
        labels = ["rabbitmq_cluster", "vhost"]
        orphans = GaugeMetricFamily("redrive_orphans", "Retries of consumers that are gone.", labels=labels)
        sleeping = GaugeMetricFamily(
            "redrive_sleeping_messages",
            "Retries that sleep, by the seconds of their rung.",
            labels=[*labels, "rung"],
        )
        for place, seen in places.items():
            orphans.add_metric(place, seen.orphans)
            for seconds, count in seen.sleeping.items():
                sleeping.add_metric([*place, seconds], count)
        yield from (orphans, sleeping)


def _count(queue: FoundQueue) -> int:
    return (queue.ready or 0) + (queue.unacked or 0)
