"""The cost of each consumer over the size of the fleet: where it is flat, a fleet costs its sum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    Curve("quiet, memory of the operator", "MB in all", lambda s: s.steady.memory),
)


def draw(sizes: Sequence[Size]) -> str:
    """Draw all panels side by side; the smallest fleet stands left."""
    ordered = sorted(sizes, key=lambda size: size.consumers)
    places = [size.consumers for size in ordered]
    return draw_panels(
        [
            Panel(curve.title, curve.unit, "consumers", places, {"operator": [curve.value(size) for size in ordered]})
            for curve in CURVES
        ]
    )
