"""What is asked of every contender: which delays, how many messages, how fast. Delays are whole units of the ladder.

A contender with one fixed delay cannot have random ones: it is given their middle, the same time asleep on average.
"""

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from redrive.ladder import UNIT


@dataclass(frozen=True)
class Workload:
    """Delays between two numbers of units, both included; equal ones mean a fixed delay."""

    name: str
    shortest: int
    longest: int

    @property
    def middle(self) -> timedelta:
        return (self.shortest + self.longest) // 2 * UNIT

    def draw(self, random: Random) -> timedelta:
        return random.randint(self.shortest, self.longest) * UNIT


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    sleepers: tuple[int, ...]  # ascending
    workloads: tuple[Workload, ...]
    burst: int  # messages as fast as confirms allow
    pace: float  # messages a second in the stream that tells the lateness
    paced_seconds: float
    window: int  # unconfirmed messages at a time
    longest_hold: float  # seconds that sleepers may sleep: what needs longer is not measured

    @property
    def paced(self) -> int:
        return int(self.pace * self.paced_seconds)

    @property
    def messages(self) -> int:
        """Count every message of a trial."""
        return max(self.sleepers) + len(self.sleepers) * len(self.workloads) * (self.burst + self.paced)

    def probing_seconds(self, publishes_per_second: float) -> float:
        """Guess how long the measurements over one number of sleepers take, on the safe side."""
        burst = 3 * self.burst / publishes_per_second
        asleep = sum(2 * workload.longest for workload in self.workloads) * UNIT.total_seconds()
        return asleep + len(self.workloads) * (burst + 1.2 * self.paced_seconds + 0.3)


# 15 s needs two hexadecimal digits. 2 s is one rung, and one bit: a single sleep on either ladder.
FULL = (Workload("random to 15 s", 1, 120), Workload("fixed 2 s", 16, 16))
QUICK = (Workload("random to 0.5 s", 1, 4), Workload("fixed 0.25 s", 2, 2))
