"""When memory is short, and whose fault that is. Pure.

A container that reaches its limit is killed as a whole, on a modern cluster, with every message in flight. So the
worker ends the biggest child before that: late enough to let everybody use what they paid for, early enough for a child
that takes memory as fast as it can between two looks.
"""

from redrive.memory import Reading

TIGHT = 0.7  # of the limit: from here on one need not wait for a big child to be idle

# How fast memory can be taken: about twice what one thread was seen to.
_BYTES_A_SECOND = 8 << 30
_SHORTEST_PAUSE = 0.004
_LONGEST_PAUSE = 0.1

_MIB = 1 << 20


def reserve(limit: int) -> int:
    """Say how much of the limit must stay free: a tenth, yet some tens of MiB, and at most what a look can miss.

    Of a very small limit a quarter at most, or there would be nothing left for a handler.
    """
    return min(max(limit // 10, 32 * _MIB), limit // 4, 1024 * _MIB)


def next_look(reading: Reading) -> float:
    """Say in how many seconds to look again: sooner than what is left can be taken."""
    free = max(0, reading.limit - reading.used)
    return min(max(free / _BYTES_A_SECOND, _SHORTEST_PAUSE), _LONGEST_PAUSE)


def is_short(reading: Reading) -> bool:
    return reading.used > reading.limit - reserve(reading.limit)


def is_tight(reading: Reading) -> bool:
    return reading.share > TIGHT


def is_swollen(size: int, *, newborn: int, limit: int, children: int) -> bool:
    """Say whether a child has more than its share, and so much that a fresh one in its place would be a gain."""
    share = limit // (children + 1)
    return size > share and size - newborn > share // 2


def is_worth_ending(size: int, *, newborn: int, limit: int) -> bool:
    """Say whether ending a child frees anything to speak of: a newborn one only shares what all have imported."""
    return size - newborn > reserve(limit) // 4
