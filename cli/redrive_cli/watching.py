"""Reads the consumers of a cluster and their brokers, again and again.

Each broker is reached once and stays open. One that cannot be reached costs its own consumers their rates, and nobody
else theirs: what the operator last wrote is shown instead. It is tried again after a while, by a way that is looked for
anew: its pod may have been replaced.
"""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from redrive.reading import FoundQueue
from redrive_cli.broker_door import BrokerDoor, open_door
from redrive_cli.consumers import BrokerKey, Target, broker_key, parse_found
from redrive_cli.counting import pick, read_queues
from redrive_cli.errors import CliError
from redrive_cli.kube import CONSUMERS, Cluster
from redrive_cli.options import UNFLAGGED
from redrive_cli.rates import Rates, rate_between
from redrive_cli.standing import Standing, read_standing

# A broker that does not answer takes ten seconds to find out.
PATIENCE_SECONDS = 30.0

Queues = Mapping[str, FoundQueue]
Body = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Line:
    """One consumer, and how fast messages come and go; no rates before the second reading."""

    standing: Standing
    rates: Rates | None = None


class Watch:
    """Use it as a context. `troubles` says which broker could not be read the last time, and why."""

    def __init__(self, cluster: Cluster, *, everywhere: bool) -> None:
        self.everywhere = everywhere
        self.troubles: dict[BrokerKey, str] = {}
        self._cluster = cluster
        self._doors: dict[BrokerKey, tuple[BrokerDoor, ExitStack]] = {}
        self._failed: dict[BrokerKey, tuple[float, str]] = {}
        self._before: dict[BrokerKey, tuple[float, Queues]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for key in list(self._doors):
            self._close(key)

    def read(self) -> list[Line]:
        """Read it all once; the consumers with the longest queues come first."""
        bodies = list(self._cluster.list(CONSUMERS, everywhere=self.everywhere))
        self.troubles.clear()
        now, readings = time.monotonic(), {}
        for key, body in {broker_key(body): body for body in bodies}.items():
            queues = self._read_broker(key, body, now)
            if queues is not None:
                readings[key] = queues
        lines = [self._line(body, readings, now) for body in bodies]
        self._before = {key: (now, queues) for key, queues in readings.items()}
        return sorted(lines, key=lambda line: -(line.standing.counts.ready or 0))

    def _read_broker(self, key: BrokerKey, body: Body, now: float) -> Queues | None:
        failed_at, said = self._failed.get(key, (float("-inf"), ""))
        if now - failed_at < PATIENCE_SECONDS:
            self.troubles[key] = said
            return None
        try:
            queues = read_queues(self._door(key, body))
        except CliError as error:
            self._failed[key] = (now, str(error))
            self.troubles[key] = str(error)
            self._close(key)
            return None
        self._failed.pop(key, None)
        return queues

    def _line(self, body: Body, readings: Mapping[BrokerKey, Queues], now: float) -> Line:
        standing, key = read_standing(body), broker_key(body)
        if key not in readings:
            return Line(standing)
        queues = readings[key]
        then, before = self._before.get(key, (now, {}))
        rates = rate_between(before.get(standing.queue), queues.get(standing.queue), now - then)
        return Line(standing.with_counts(pick(queues, standing.queue)), rates)

    def _door(self, key: BrokerKey, body: Body) -> BrokerDoor:
        if key not in self._doors:
            stack = ExitStack()
            door = stack.enter_context(open_door(UNFLAGGED, Target(parse_found(body), self._cluster, body)))
            self._doors[key] = (door, stack)
        return self._doors[key][0]

    def _close(self, key: BrokerKey) -> None:
        if key in self._doors:
            self._doors.pop(key)[1].close()
