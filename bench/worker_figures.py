"""What a run of the worker's bench has found, as values that go into a file and come back from it.

CPU for a message is in microseconds, other times are in milliseconds and memory in mebibytes, unless the name says
otherwise: they are written for people.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.measure import Share
from bench.run_file import read_run
from bench.tables import count_lost
from bench.worker_contenders import CONTENDERS


@dataclass(frozen=True)
class Success:
    """What a full queue gave whose messages all succeed."""

    version: str
    contender: str
    round: int
    concurrency: int
    handler_ms: float
    body_bytes: int
    messages: int
    per_second: float
    worker_cpu: float
    broker_cpu: float
    worker_busy: float  # cores
    broker_busy: float
    others_busy: float  # cores used meanwhile by programs that have nothing to do with the measurement
    peak_memory: float
    held: int  # not acknowledged a moment after the last was handled
    redelivered: int  # deliveries that the broker said were not the first of their message
    lost: int
    duplicated: int


@dataclass(frozen=True)
class Retry:
    """What a full queue gave whose messages all fail once, and how late they came back where few did at a time."""

    version: str
    contender: str
    round: int
    concurrency: int
    messages: int
    per_second: float
    worker_cpu: float
    broker_cpu: float
    others_busy: float
    peak_memory: float
    late_p50: float
    late_p99: float
    late_max: float
    earliest: float
    offered_per_second: float
    redelivered: int
    lost: int
    duplicated: int


@dataclass(frozen=True)
class Sleepers:
    """What messages cost that have failed and sleep, and how fresh ones fare meanwhile."""

    version: str
    contender: str
    round: int
    sleepers: int
    asleep: int  # the fewest at any moment that was measured
    memory_before: float
    memory_asleep: float
    unacked: int
    fresh_per_second: float
    fresh_p50: float
    fresh_p99: float
    fresh_max: float
    others_busy: float
    lost: int
    duplicated: int
    own_before: float = math.nan  # of the worker's own process; older runs have only that of it and its children
    own_asleep: float = math.nan


@dataclass(frozen=True)
class Crash:
    """What became of messages that slept when their worker was killed."""

    version: str
    contender: str
    round: int
    sleepers: int
    asleep: int  # when it was killed
    home_seconds: float  # from starting another worker to the last success
    others_busy: float
    overspent: int  # attempts that messages were charged with and did not use
    lost: int
    duplicated: int


@dataclass(frozen=True)
class Growth:
    """What a message cost, of so many, at such a concurrency, where all succeed."""

    version: str
    contender: str
    round: int
    messages: int
    concurrency: int
    repeats: int
    worker_cpu: float
    broker_cpu: float
    others_busy: float
    lost: int


@dataclass(frozen=True)
class Idle:
    """What a worker costs that has nothing to do; CPU is in milliseconds a minute."""

    version: str
    contender: str
    round: int
    concurrency: int
    seconds: float
    worker_cpu: float
    broker_cpu: float  # above that of the broker alone
    broker_alone: float
    memory: float
    others_busy: float
    shares: list[Share]  # of Redrive's modes


@dataclass
class Run:
    """Everything that one command found, and what a reader must know of how."""

    facts: dict[str, str]
    success: list[Success] = field(default_factory=list)
    retry: list[Retry] = field(default_factory=list)
    sleepers: list[Sleepers] = field(default_factory=list)
    crash: list[Crash] = field(default_factory=list)
    sweep: list[Success] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    idle: list[Idle] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> "Run":
        return cls(**read_run(path, **_ROWS))

    def others_busy(self) -> list[float]:
        return [row.others_busy for row in (*self._worked(), *self.idle)]

    def losses(self) -> dict[str, int]:
        return count_lost(self._worked())

    def lost(self) -> int:
        return sum(count for name, count in self.losses().items() if is_ours(name))

    def _worked(self) -> list[Success | Retry | Sleepers | Crash | Growth]:
        return [*self.success, *self.retry, *self.sleepers, *self.crash, *self.sweep, *self.growth]


def is_ours(name: str) -> bool:
    return name in CONTENDERS and CONTENDERS[name].ours


def _idle(**row: Any) -> Idle:  # noqa: ANN401 - as a file holds it
    return Idle(**{**row, "shares": [Share(**share) for share in row["shares"]]})


_ROWS: dict[str, Callable[..., object]] = {
    "success": Success, "retry": Retry, "sleepers": Sleepers, "crash": Crash, "sweep": Success, "growth": Growth,
    "idle": _idle,
}  # fmt: skip
