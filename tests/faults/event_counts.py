"""Counts what was told of a namespace by Events, and says whether that grew while nothing changed.

Pure. Events are flat when no more are told in a time in which nothing happens: so the rises of such times are laid end
to end, what came while something was broken is left out, and the rest is judged as memory is. What was told while
something was broken has a bound of its own. All bounds were fixed before the first run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from faults.flatness import Allowance, Series

# Who told it: the operator, or anybody, Kubernetes included.
REDRIVE, NAMESPACE = "Redrive's events", "all events of the namespace"
OBJECTS, TOLD = "objects", "times told"
_COMPONENT = "redrive"

# The operator has nothing to tell. Nodes may: a probe that is answered late on a machine that has much else to do.
QUIET_ALLOWANCES = {REDRIVE: Allowance(absolute=0.5), NAMESPACE: Allowance(absolute=5.0)}

# A fault takes workers away twice, or changes them twice: each time it is told that they are missing, and that they are
# back. An operator that was started anew repeats nothing.
TOLD_OF_A_FAULT = 4

Figures = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Sample:
    """What was counted at one time; in a time in which nothing happened, the `quiet` one of that number."""

    at: float
    figures: Figures
    quiet: int | None


def count_events(items: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Count Event objects, and how often their senders told them, by either of the two APIs."""
    counts = dict.fromkeys(((who, what) for who in (REDRIVE, NAMESPACE) for what in (OBJECTS, TOLD)), 0.0)
    for event in items:
        times = max(event.get("count") or 1, (event.get("series") or {}).get("count") or 1)
        own = _COMPONENT in (event.get("reportingComponent"), (event.get("source") or {}).get("component"))
        for who in (NAMESPACE, *((REDRIVE,) if own else ())):
            counts[who, OBJECTS] += 1
            counts[who, TOLD] += times
    return counts


def quiet_growth(samples: Sequence[Sample], key: tuple[str, str]) -> Series:
    """Lay the times in which nothing happened end to end: seconds of them, and by how much a figure rose in these.

    What Kubernetes forgets after an hour is no fall.
    """
    series, seconds, grown = [], 0.0, 0.0
    for before, after in pairwise(samples):
        if after.quiet is None or after.quiet != before.quiet:
            continue
        seconds += after.at - before.at
        grown += max(0.0, after.figures[key] - before.figures[key])
        series.append((seconds, grown))
    return series


def told_too_much(samples: Sequence[Sample], faults: int) -> list[str]:
    """Complain where the operator told more than faults of that number explain."""
    key = (REDRIVE, TOLD)
    told = sum(max(0.0, after.figures[key] - before.figures[key]) for before, after in pairwise(samples))
    allowed = faults * TOLD_OF_A_FAULT
    return [f"{REDRIVE}: told {told:.0f} times of {faults} faults, not {allowed}"] if told > allowed else []


def longest(lives: Mapping[object, Series]) -> Series:
    """Give the series of the process that was seen most often: one that is killed is another afterwards."""
    return max(lives.values(), key=len, default=())
