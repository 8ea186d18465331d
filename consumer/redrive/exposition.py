"""What is told to a scraper: all of a registry's metrics, in the form that it asked for.

What changes with every message is a plain number until then. The library takes a lock and makes several calls to add
one to anything; here only one thread ever adds, that of the loop, and whoever reads in another sees each number as it
was at some moment just now.
"""

import gzip
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


@dataclass(frozen=True, slots=True)
class Exposition:
    """An answer to a scrape; `encoding` is that of the body, if any."""

    content_type: str
    body: bytes
    encoding: str | None = None


def expose(registry: CollectorRegistry, accept: str, accept_encoding: str) -> Exposition:
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # of a version that is no number
        encode, content_type = choose_encoder("")
    body = encode(registry)
    if gzip_accepted(accept_encoding):
        return Exposition(content_type, gzip.compress(body, compresslevel=1), "gzip")
    return Exposition(content_type, body)


Labels = Mapping[str, str]


class Tally:
    """One series of a counter."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def inc(self) -> None:
        self.count += 1


class Tallies(Collector):
    """A counter with one series for each of the labels given, which differ in their values alone."""

    def __init__(self, name: str, says: str, series: Sequence[Labels], registry: CollectorRegistry) -> None:
        self._name = name
        self._says = says
        self._series = series
        self.tallies = [Tally() for _ in series]
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._says, labels=list(self._series[0]))
        for labels, tally in zip(self._series, self.tallies, strict=True):
            family.add_metric(list(labels.values()), tally.count)
        yield family


class Spread(Collector):
    """A histogram of one series."""

    def __init__(
        self, name: str, says: str, labels: Labels, buckets: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._name = name
        self._says = says
        self._labels = labels
        self._buckets = buckets
        self._counts = [0] * (len(buckets) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, amount: float) -> None:
        self._sum += amount
        self._counts[bisect_left(self._buckets, amount)] += 1

    def collect(self) -> Iterator[HistogramMetricFamily]:
        bounds = [*map(floatToGoString, self._buckets), "+Inf"]
        buckets = list(zip(bounds, map(float, accumulate(self._counts)), strict=True))
        family = HistogramMetricFamily(self._name, self._says, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), buckets, self._sum)
        yield family
