"""The cost of each consumer over the size of the fleet: where it is flat, a fleet costs its sum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.fleet_figures import Size
from bench.measure import median
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
    draw_panels(plan_panels(sizes), file)


def plan_panels(sizes: Sequence[Size]) -> list[Panel]:
    """Take the median of several runs; what one of them has not measured is NaN, which no picture shows."""
    places = sorted({size.consumers for size in sizes})
    names = dict.fromkeys(map(_name, sizes))

    def line(curve: Curve, name: str) -> list[float]:
        alike = [size for size in sizes if _name(size) == name]
        return [median(curve.value(size) for size in alike if size.consumers == place) for place in places]

    return [
        Panel(curve.title, curve.unit, "consumers", places, {name: line(curve, name) for name in names})
        for curve in CURVES
    ]


def _name(size: Size) -> str:
    return f"RabbitMQ {size.version}{', in many vhosts' if size.spread > 1 else ''}"
