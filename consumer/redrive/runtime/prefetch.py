"""How many messages a worker asks for ahead: enough that a handler never waits for one, and no more.

What is held and not begun waits behind the handlers of this pod while others may be idle, and is given back or becomes
a suspect when this pod ends. So it is as much as is run in a moment, and no more bytes than a small pod can hold.
"""

from dataclasses import dataclass

# As much as the handlers run in this time is held ahead. A round trip to the broker is a few milliseconds.
AHEAD_SECONDS = 0.2
# Of messages that take no time, as measured: with 500 a retry costs worker and broker together a tenth more; with
# fewer, fast handlers wait for deliveries.
MOST_AHEAD = 200
MOST_BYTES = 16 * 1024 * 1024

# The share of a new measurement in what is known, at least; of the first ones the plain average is known. Where fast
# and slow messages come mixed, a larger one has the prefetch go up and down all the time, and each time the consumer is
# cancelled: what it holds in that moment is stranded if its node of the broker is lost (before RabbitMQ 4.3). Who
# becomes slow is noticed soon all the same, for a long time weighs much in an average.
_WEIGHT = 0.005
# Large messages must be noticed at once: they cost memory.
_SIZE_WEIGHT = 0.1


@dataclass(slots=True)
class Pace:
    """How long handlers run and how large messages are, as moving averages."""

    seconds: float | None = None
    bytes: float = 0.0
    _runs: int = 0

    def note_run(self, seconds: float) -> None:
        self._runs += 1
        known = seconds if self.seconds is None else self.seconds
        self.seconds = known + max(_WEIGHT, 1 / self._runs) * (seconds - known)

    def note_size(self, size: int) -> None:
        self.bytes += _SIZE_WEIGHT * (size - self.bytes)


def choose_prefetch(concurrency: int, pace: Pace) -> int:
    """Say how many to have unacknowledged at once."""
    if pace.seconds is None:
        ahead = concurrency
    else:
        ahead = min(MOST_AHEAD, int(concurrency * AHEAD_SECONDS / max(pace.seconds, 1e-6)))
    ahead = min(ahead, int(MOST_BYTES / max(pace.bytes, 1.0)))
    return concurrency + ahead


def is_worth_changing(current: int, wanted: int) -> bool:
    """Changing costs two round trips in which nothing comes: only for a change that matters."""
    return wanted > current * 1.5 or wanted <= current // 2
