"""The cost of each consumer over the size of the fleet: where it is flat, a fleet costs its sum."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.fleet_figures import Size
from bench.plot import Panel, draw_panels


@dataclass(frozen=True)
class Curve:
    """One panel: what is drawn, in which unit."""

    title: str
    unit: str
    value: Callable[[Size], float]


CURVES = (
    Curve("until Ready, CPU of the operator", "ms for each", lambda s: 1000 * s.start.cpu_seconds / s.consumers),
    Curve("until all are Ready", "ms for each", lambda s: 1000 * s.start.ready_seconds / s.consumers),
    Curve("quiet, CPU of the operator", "ms a minute for each", lambda s: 600 * s.steady.cpu_percent / s.consumers),
    Curve("quiet, memory of the operator", "MiB in all", lambda s: s.steady.memory),
)


def draw(sizes: Sequence[Size], file: Path) -> None:
    """Draw all panels side by side, a line for each release; the smallest fleet stands left."""
    places = sorted({size.consumers for size in sizes})
    found = {(size.version, size.consumers): size for size in sizes}
    versions = dict.fromkeys(size.version for size in sizes)

    def line(curve: Curve, version: str) -> list[float]:
        known = [found.get((version, place)) for place in places]
        return [math.nan if size is None else curve.value(size) for size in known]

    panels = [
        Panel(curve.title, curve.unit, "consumers", places, {f"RabbitMQ {v}": line(curve, v) for v in versions})
        for curve in CURVES
    ]
    draw_panels(panels, file)
