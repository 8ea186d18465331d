"""How many messages a worker asks for ahead: enough that a handler never waits for one, and no more.

What is held and not begun waits behind the handlers of this pod while others may be idle, and is given back or becomes
a suspect when this pod ends. So it is as much as is run in a moment, and no more bytes than a small pod can hold.

A broker counts messages, not bytes, and pushes as many as it was asked for without another word. So the largest body
counts, not the usual one; and before anything is known of their size, one message is asked for.
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

# A large body is reckoned with for as long as this, and for up to twice as long. Where few are large, each of them has
# the prefetch go down and, when it is forgotten, up: twice a minute at most.
LARGEST_SECONDS = 30.0


@dataclass(slots=True)
class Pace:
    """How long handlers run, as a moving average, and how large the largest message was lately."""

    seconds: float | None = None
    _runs: int = 0
    _largest: int | None = None  # of this while
    _largest_before: int | None = None  # of the while before
    _since: float = 0.0

    @property
    def largest(self) -> int | None:
        """Give the largest size that was noted lately, None before the first."""
        return max((size for size in (self._largest, self._largest_before) if size is not None), default=None)

    def note_run(self, seconds: float) -> None:
        self._runs += 1
        known = seconds if self.seconds is None else self.seconds
        self.seconds = known + max(_WEIGHT, 1 / self._runs) * (seconds - known)

    def note_size(self, size: int) -> None:
        if self._largest is None or size > self._largest:
            self._largest = size

    def forget_sizes(self, now: float) -> None:
        """Forget what came long ago, unless nothing has come since."""
        if now - self._since >= LARGEST_SECONDS and self._largest is not None:
            self._since = now
            self._largest, self._largest_before = None, self._largest


def choose_prefetch(concurrency: int, pace: Pace) -> int:
    """Say how many to have unacknowledged at once."""
    largest = pace.largest
    if largest is None:
        return 1
    if pace.seconds is None:
        ahead = concurrency
    else:
        ahead = min(MOST_AHEAD, int(concurrency * AHEAD_SECONDS / max(pace.seconds, 1e-6)))
    return concurrency + min(ahead, MOST_BYTES // max(largest, 1))


def is_worth_changing(current: int, wanted: int) -> bool:
    """Changing costs two round trips in which nothing comes: only for a change that matters.

    Half of an odd number is rounded up. A worker begins with one less than it means to hold, and one whose handlers
    turn out to be slow is to hold half of that.
    """
    return wanted > current * 1.5 or (wanted < current and 2 * wanted <= current + 1)
