"""Who used the CPU while something was measured: the broker, the receiver, this process, or other programs."""

import time
from dataclasses import dataclass, field

from bench.measure import Load, Meter


@dataclass(frozen=True)
class Usage:
    """CPU seconds up to a moment, or between two of them."""

    seconds: float
    broker: float
    receiver: float
    own: float
    machine: float

    @property
    def others_busy(self) -> float:
        """Cores that other programs used: what is left of the machine's use."""
        return max(0.0, self.machine - self.broker - self.receiver - self.own) / self.seconds

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.seconds + other.seconds,
            self.broker + other.broker,
            self.receiver + other.receiver,
            self.own + other.own,
            self.machine + other.machine,
        )

    def __sub__(self, earlier: "Usage") -> "Usage":
        return Usage(
            self.seconds - earlier.seconds,
            self.broker - earlier.broker,
            self.receiver - earlier.receiver,
            self.own - earlier.own,
            self.machine - earlier.machine,
        )


@dataclass(frozen=True)
class Accounts:
    """Reads the meters of everybody who takes part."""

    broker: Meter
    receiver: Meter = field(default_factory=lambda: Meter(()))
    beside: Meter = field(default_factory=lambda: Meter(()))  # who belongs to the bench, as this process does

    def read(self) -> Usage:
        return Usage(
            time.monotonic(),
            self.broker.cpu_seconds(),
            self.receiver.cpu_seconds(),
            time.process_time() + self.beside.cpu_seconds(),
            Load.read().busy,
        )
