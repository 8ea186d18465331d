"""What a run of the operator's bench has found, as values that go into a file and come back from it."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.run_file import read_run


@dataclass(frozen=True)
class Steady:
    """What the operator costs while nothing happens. CPU is in percent of one core, requests are a minute's."""

    seconds: float
    cpu_percent: float
    memory: float
    api_requests: dict[str, float]  # by verb
    broker_requests: dict[str, float]  # by method
    broker_connections: float
    broker_cpu_percent: float
    bare_broker_cpu_percent: float  # the same queues, without an operator
    others_busy: float  # cores; the API server is among them


@dataclass(frozen=True)
class Start:
    """How it came to that: everything applied, until all were Ready."""

    apply_seconds: float
    first_ready_seconds: float
    half_ready_seconds: float
    ready_seconds: float
    cpu_seconds: float
    api_requests: dict[str, int]
    peak_memory: float


@dataclass(frozen=True)
class Restart:
    """How an operator takes over what another has left. Nothing is to be written then."""

    stop_seconds: float
    ready_seconds: float
    settled_seconds: float  # until every consumer has been seen to
    cpu_seconds: float
    api_requests: dict[str, int]
    peak_memory: float


@dataclass(frozen=True)
class Size:
    """Everything of one number of consumers. `changes` are the seconds from an edit to the config that follows it."""

    version: str
    consumers: int
    spread: int  # vhosts, each with a namespace
    foreign: int  # Secrets, and as many pods
    start: Start
    steady: Steady
    changes: list[float]
    restart: Restart


@dataclass(frozen=True)
class FirstMessage:
    """From applying a consumer to its first message handled; every step in seconds since the apply."""

    version: str
    queue: float
    deployment: float
    pod_running: float
    handled: float


@dataclass(frozen=True)
class Burst:
    """From a burst of messages to enough pods, and to the last message handled; None for what did not come."""

    version: str
    messages: int
    wanted: int  # pods
    most: int  # pods that were available at the same time
    asked: float | None  # seconds until the Deployment was asked for all of them
    enough: float | None  # seconds until all of them were available
    handled: int
    drained: float | None
    waited: float = math.nan  # from the queue until the burst; older runs do not tell it


@dataclass
class Run:
    """Everything that one command found, and what a reader must know of how."""

    facts: dict[str, str]
    sizes: list[Size] = field(default_factory=list)
    first_messages: list[FirstMessage] = field(default_factory=list)
    bursts: list[Burst] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> "Run":
        return cls(**read_run(path, sizes=_size, first_messages=FirstMessage, bursts=Burst))

    def lost(self) -> int:
        return 0  # no message is promised here; what a burst leaves unhandled stands in its row


def _size(**row: Any) -> Size:  # noqa: ANN401 - as a file holds it
    parts = {"start": Start(**row["start"]), "steady": Steady(**row["steady"]), "restart": Restart(**row["restart"])}
    return Size(**{**row, **parts})
