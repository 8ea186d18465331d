"""How long workers have had no place: one for every ten seconds of every such worker, by cause.

Time is counted and not sights, so the rate is the same however often anybody looks, or scrapes. What was seen last is
taken to last, but not for ever: of an object that nobody looks at any more, nothing further is counted.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from redrive_operator.causes import PlacementCause
from redrive_operator.observation import Unplaced
from redrive_operator.subject import Key

UNIT_SECONDS = 10.0

# Much longer than from one reading to the next, of a slow broker too.
TRUST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Tally:
    """What there is to say of one consumer and cause: how many have no place now, and the count of all time."""

    consumer: Key
    cause: PlacementCause
    unplaced: int
    failed: float


class PlacementMeter:
    """Counts for all consumers, by a clock that never goes back. Every method may be called from any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._accounts: dict[Key, _Account] = {}

    def saw(self, consumer: Key, unplaced: Iterable[Unplaced]) -> None:
        counts: Counter[PlacementCause] = Counter()
        for one in unplaced:
            counts[one.cause] += one.count
        with self._lock:
            if not counts and consumer not in self._accounts:
                return  # most never have any trouble, and cost nothing
            now = self._clock()
            self._accounts.setdefault(consumer, _Account(now, now)).note(now, counts)

    def forget(self, consumer: Key) -> None:
        with self._lock:
            self._accounts.pop(consumer, None)

    def read(self) -> list[Tally]:
        """Give the counts as of now. A cause that was ever seen keeps its own, so that a rate can be made of it."""
        with self._lock:
            now = self._clock()
            return [tally for key, account in self._accounts.items() for tally in account.read(key, now)]


@dataclass(slots=True)
class _Account:
    """One consumer's: `counted_to` is the moment up to which all is in `failed`."""

    seen_at: float
    counted_to: float
    unplaced: Counter[PlacementCause] = field(default_factory=Counter)
    failed: dict[PlacementCause, float] = field(default_factory=dict)

    def accrue(self, now: float) -> None:
        until = min(now, self.seen_at + TRUST_SECONDS)
        for cause, number in self.unplaced.items():
            self.failed[cause] += number * (until - self.counted_to) / UNIT_SECONDS
        self.counted_to = until

    def note(self, now: float, unplaced: Counter[PlacementCause]) -> None:
        self.accrue(now)
        self.seen_at = self.counted_to = now
        self.unplaced = unplaced
        for cause in unplaced:
            self.failed.setdefault(cause, 0.0)

    def read(self, consumer: Key, now: float) -> Iterator[Tally]:
        self.accrue(now)
        for cause, failed in self.failed.items():
            yield Tally(consumer, cause, self.unplaced[cause], failed)
