"""In which portions messages are given back to a quorum queue, so that it keeps their order: pure.

It forgets the order of what it is given back at once, as soon as that is more than 32 messages or of two consumers; and
a channel puts together what it is given faster than the queue can write.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PORTION = 32

# So many of these are on their way to the queue at most.
PORTIONS = 16

# A queue that has not taken some messages back in this time has them taken away by somebody else.
GIVING_BACK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Together:
    """What may be given back without a pause: the last tag of each portion, and how many messages that is."""

    lasts: list[int]
    count: int


def plan_portions(takes: Sequence[Sequence[int]]) -> Iterator[Together]:
    """Divide what is held of each `take`, the oldest first."""
    portions = [tags[start : start + PORTION] for tags in takes for start in range(0, len(tags), PORTION)]
    for start in range(0, len(portions), PORTIONS):
        together = portions[start : start + PORTIONS]
        yield Together([portion[-1] for portion in together], sum(map(len, together)))
