"""What every contender of the worker's bench is told, and the names of the queues that are looked into."""

from dataclasses import dataclass
from datetime import timedelta

from redrive.ladder import address_of, routing_key
from redrive.topology import dead_queue_name

NAMESPACE = "bench"
QUEUE = "work"
ADDRESS = address_of(NAMESPACE, QUEUE)


@dataclass(frozen=True)
class Settings:
    """What of a worker's config a workload decides; without a `delay` nothing is meant to fail."""

    concurrency: int
    delay: timedelta | None = None

    @property
    def retry_key(self) -> str:
        return "" if self.delay is None else routing_key(self.delay, ADDRESS)


@dataclass(frozen=True)
class Queues:
    """Where a contender takes from, where it parks what it gave up, and from where else it takes what it may hold."""

    work: str
    dead: str
    others: tuple[str, ...] = ()

    @property
    def held(self) -> tuple[str, ...]:
        """Those that a worker takes from, so that it can hold messages of theirs unacknowledged."""
        return (self.work, *self.others)


REDRIVE_QUEUES = Queues(QUEUE, dead_queue_name(QUEUE))
