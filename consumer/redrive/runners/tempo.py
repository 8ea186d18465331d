"""How long jobs take, and so how many of them a child is sent at once. Pure.

Two averages, because a mistake costs something different. Sent ahead to children who all work, a job that turns out to
be slow keeps waiting what could not have begun anyway. Sent together to one child while others are free, it keeps
waiting what could have: so one that takes some milliseconds is nearly enough to end it, and one that was found to hold
others up does, until enough have shown that they are fast.
"""

from collections.abc import Iterable

from redrive.runners import Ended

AHEAD = 0.005  # seconds' worth of jobs sent to a child: longer than a turn of the loop takes
# Seconds' worth of jobs sent to one child while another has nothing to do. With half as much, jobs that take no time
# are spread over more children, each of which is woken for few: a retry then costs the worker a twentieth more.
TOGETHER = 0.001
DEEPEST = 64

# How much one run counts in the averages. A slow one counts as barely slow, or the fast ones behind it would be taken
# for slow for a long time.
_WEIGHT = 0.05
_SLOWEST = 4 * AHEAD
_SLOWEST_TOGETHER = 8 * TOGETHER


class Tempo:
    """`depth`: jobs that a child may have when all work. `together`: those that it may have when others do not."""

    __slots__ = ("_ahead", "_together", "depth", "together")

    def __init__(self) -> None:
        self.depth = self.together = 1
        self._ahead = AHEAD
        self._together = _SLOWEST_TOGETHER

    def note(self, ended: Iterable[Ended]) -> None:
        ahead, together = self._ahead, self._together
        for one in ended:
            seconds = one.seconds
            ahead += ((seconds if seconds < _SLOWEST else _SLOWEST) - ahead) * _WEIGHT
            together += ((seconds if seconds < _SLOWEST_TOGETHER else _SLOWEST_TOGETHER) - together) * _WEIGHT
        self._ahead, self._together = ahead, together
        self.depth = _fit(AHEAD, ahead)
        self.together = _fit(TOGETHER, together)

    def hesitate(self) -> None:
        """Learn that one is slow which has not even ended: send no more together than is known to be fast."""
        self._together = _SLOWEST_TOGETHER
        self.together = 1


def _fit(budget: float, pace: float) -> int:
    return DEEPEST if pace * DEEPEST <= budget else max(1, int(budget / pace))
