"""What a run has found, as values that go into a file and come back from it.

Times are in milliseconds and memory in mebibytes, unless the name says otherwise: they are written for people.
"""

from dataclasses import dataclass, field
from pathlib import Path

from bench.contenders import OURS
from bench.run_file import read_run
from bench.tables import count_lost


@dataclass(frozen=True)
class Figures:
    """What one workload gave over so many sleepers."""

    version: str
    contender: str
    workload: str
    sleepers: int
    round: int
    publishes_per_second: float
    publisher_busy: float  # cores that the publishing client itself used
    cpu_per_message: float  # of the burst
    paced_cpu_per_message: float  # of the stream at the offered rate
    late_p50: float
    late_p99: float
    late_max: float
    earliest: float
    offered_per_second: float
    receiver_busy: float  # cores, at the offered rate
    others_busy: float  # cores used meanwhile by programs that have nothing to do with the measurement
    peak_memory: float
    lost: int
    duplicated: int
    disturbed: bool  # sleepers came home while it was measured


@dataclass(frozen=True)
class Homecoming:
    """What laying all the sleepers gave, and their coming home at once."""

    version: str
    contender: str
    sleepers: int
    round: int
    hold_seconds: float
    laid_per_second: float
    home_per_second: float  # of those laid last, in one go
    cpu_per_message: float
    late_p50: float
    late_max: float
    peak_memory: float
    lost: int
    duplicated: int


@dataclass(frozen=True)
class Idle:
    """What so many ladders cost that nobody uses, on all nodes together. 0 ladders: the bare broker."""

    version: str
    nodes: int
    places: int
    ladders: int
    queues: int
    cpu_percent: float  # of one core
    memory: float
    memory_per_ladder: float
    declare_seconds: float  # a ladder, the mean of those declared for this row
    others_busy: float


@dataclass
class Run:
    """Everything that one command found, and what a reader must know of how."""

    facts: dict[str, str]
    receiver_capacity: dict[str, float] = field(default_factory=dict)
    figures: list[Figures] = field(default_factory=list)
    homecomings: list[Homecoming] = field(default_factory=list)
    idle: list[Idle] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # of others, which are too slow for it
    skipped: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path) -> "Run":
        return cls(**read_run(path, figures=Figures, homecomings=Homecoming, idle=Idle))

    def losses(self) -> dict[str, int]:
        return count_lost((*self.figures, *self.homecomings))

    def lost(self) -> int:
        return self.losses().get(OURS, 0)
