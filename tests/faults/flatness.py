"""Says whether a figure that was watched for long stays where it is: what leaks grows, however slowly.

Pure. The beginning is left out, where caches fill and processes find their size. The rest is cut into windows, each of
which counts with its median: what a fault did to one sample, or to a minute, does not matter. The rise is the median
of the slopes between any two windows (Theil and Sen), over the whole time that was looked at: one window that stands
out cannot tilt it, and a growth that goes on in every window cannot hide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

WINDOWS = 10
WARM_UP = 1 / 6
FEWEST_SAMPLES = 3 * WINDOWS

Series = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Allowance:
    """How much may be more at the end than at the beginning: so much, or this share of the beginning."""

    absolute: float
    share: float = 0.0

    def of(self, beginning: float) -> float:
        return max(self.absolute, self.share * beginning)


@dataclass(frozen=True)
class Course:
    """How a figure went: the medians of its windows, the most that was seen, and how much it rose over all windows."""

    medians: tuple[float, ...]
    most: float
    rise: float
    allowed: float

    @property
    def is_flat(self) -> bool:
        return self.rise <= self.allowed


def judge(series: Series, allowance: Allowance, *, windows: int = WINDOWS, warm_up: float = WARM_UP) -> Course | None:
    """Judge samples of time and value, in the order of time; None where there are too few to say anything."""
    if len(series) < FEWEST_SAMPLES:
        return None
    first, last = series[0][0], series[-1][0]
    begin = first + warm_up * (last - first)
    length = (last - begin) / windows
    places: list[list[float]] = [[] for _ in range(windows)]
    for at, value in series:
        if at >= begin:
            places[min(windows - 1, int((at - begin) / length))].append(value)
    middles = [(place, median(values)) for place, values in enumerate(places) if values]
    if len(middles) < windows / 2:
        return None
    medians = tuple(value for _, value in middles)
    slope = median((late - early) / (after - before) for (before, early), (after, late) in combinations(middles, 2))
    return Course(
        medians=medians,
        most=max(value for _, value in series),
        rise=slope * (windows - 1),
        allowed=allowance.of(medians[0]),
    )
