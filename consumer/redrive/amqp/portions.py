"""In which portions messages are given back to a quorum queue, so that it keeps their order: pure.

It forgets the order of what it is given back at once, as soon as that is more than 32 messages or of two consumers. And
a channel has no more than 32 portions on their way to the queue: what is beyond it puts together. So no more than half
as many are on their way, as far as the queue's count of ready messages tells. What others publish meanwhile is counted
there too, as if it were ours: so now and then it is waited until all are there, and counted anew.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

PORTION = 32

# So many of these are sent together, and so many, full or not, are on their way at most.
PORTIONS = 4
MOST_FLYING = 16

# After so many messages it is counted anew.
LONGEST_FLIGHT = 8 * MOST_FLYING * PORTION

# A queue that has not taken some messages back in this time has them taken away by somebody else.
GIVING_BACK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Together:
    """What may be given back without a pause: the last tag of each portion, and how many messages each is."""

    lasts: list[int]
    sizes: list[int]


class Flight:
    """Messages on their way back, which arrive in their order. `ready` is how many were there before."""

    def __init__(self, ready: int) -> None:
        self.ready = ready
        self._homes = [ready]  # how many are ready when each portion has arrived

    @property
    def home(self) -> int:
        """How many are ready when all have arrived."""
        return self._homes[-1]

    @property
    def is_long(self) -> bool:
        return self.home - self.ready >= LONGEST_FLIGHT

    def clearance(self, portions: int) -> int:
        """How many must be ready before so many more portions are sent."""
        return self._homes[max(0, len(self._homes) - 1 + portions - MOST_FLYING)]

    def send(self, sizes: Iterable[int]) -> None:
        for size in sizes:
            self._homes.append(self.home + size)


def plan_portions(takes: Sequence[Sequence[int]]) -> Iterator[Together]:
    """Divide what is held of each `take`, the oldest first."""
    portions = (tags[start : start + PORTION] for tags in takes for start in range(0, len(tags), PORTION))
    while together := list(islice(portions, PORTIONS)):
        yield Together([portion[-1] for portion in together], [len(portion) for portion in together])
