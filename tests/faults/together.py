"""Which faults are broken together: drawn by chance from a seed and a release, or listed by their names.

A seed draws something else as soon as there is another fault to be drawn. What was drawn is told, and can be listed.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from faults.fault import Fault
from faults.scripts import seeded

Lanes = list[list[Fault]]


def draw_for(draw: Callable[[Random], Lanes], *, seed: int, release: str) -> Lanes:
    """Draw by a seed, and for each release something else: there is more to be seen than one mixture twice."""
    return draw(seeded(f"{seed} {release}"))


def put_together(catalogue: Mapping[str, type[Fault]], order: Sequence[str], names: Sequence[str]) -> Lanes:
    """Put each where it belongs, in the order in which they are listed; ValueError where they do not go together."""
    unknown = [name for name in names if name not in catalogue]
    if unknown:
        raise ValueError(f"there is no fault {', '.join(unknown)} among those that go together with the others")
    chosen = [catalogue[name]() for name in names]
    modes = {fault.mode for fault in chosen}
    if len(modes) > 1:
        raise ValueError(f"their workers would need different modes: {', '.join(sorted(modes))}")
    lanes = [[fault for fault in chosen if fault.lane == lane] for lane in order]
    return [lane for lane in lanes if lane]
