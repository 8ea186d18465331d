"""What Redrives do: how many dead letters they have moved, and how many are at work or wait, of each consumer."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from redrive.spec import RedriveAction
from redrive_operator.metrics.consumers import OF_CONSUMER
from redrive_operator.subject import Key

STATES = ("working", "waiting", "paused", "blocked")


class RedriveMeter(Collector):
    """Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._moved: Counter[tuple[Key, str]] = Counter()
        self._states: dict[Key, dict[str, int]] = {}

    def moved(self, consumer: Key, action: str, number: int) -> None:
        with self._lock:
            self._moved[consumer, action] += number

    def saw(self, consumer: Key, states: Mapping[str, int]) -> None:
        """Be told how many are in these states; the others are as before."""
        with self._lock:
            known = self._states.setdefault(consumer, dict.fromkeys(STATES, 0))
            known.update(states)
            for action in RedriveAction:  # from zero on, so that the first ones that are moved are seen as an increase
                self._moved[consumer, action] += 0

    def forget(self, consumer: Key) -> None:
        with self._lock:
            self._states.pop(consumer, None)
            for key in [key for key in self._moved if key[0] == consumer]:
                del self._moved[key]

    def collect(self) -> Iterator[Metric]:
        moved = CounterMetricFamily(
            "redrive_redriven", "Dead letters that Redrives have put back or deleted.", labels=[*OF_CONSUMER, "action"]
        )
        states = GaugeMetricFamily(
            "redrive_redrives", "Redrives that have not come to their end.", labels=[*OF_CONSUMER, "state"]
        )
        with self._lock:
            for (consumer, action), number in self._moved.items():
                moved.add_metric([consumer.namespace, consumer.name, action], number)
            for consumer, counts in self._states.items():
                for state, number in counts.items():
                    states.add_metric([consumer.namespace, consumer.name, state], number)
        yield from (moved, states)
