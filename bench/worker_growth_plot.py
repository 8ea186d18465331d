"""What a message costs a worker, over how many there are and how many run at once: flat, if nothing grows."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.measure import median
from bench.plot import Panel, draw_panels
from bench.tables import grouped
from bench.worker_figures import Growth


def draw(rows: Sequence[Growth], file: Path) -> None:
    """Draw two panels for each release, side by side; the least stands left."""
    draw_panels(plan_panels(rows), file)


def plan_panels(rows: Sequence[Growth]) -> list[Panel]:
    return [panel for _, group in grouped(rows, lambda row: (row.version,)) for panel in _panels(group)]


def list_growth(rows: Sequence[Growth]) -> str:
    """Say how much dearer a message is at the end of each curve than at its beginning, and at the highest point."""
    lines = [
        f"- {panel.title}, from {panel.places[0]:,} to {panel.places[-1]:,} {panel.axis}: {_grown(panel)}"
        for panel in plan_panels(rows)
        if len(panel.places) > 1
    ]
    return "\n".join(lines)


def _grown(panel: Panel) -> str:
    told = (
        f"{name} × {last / first:.2f} (its highest × {span(values):.2f} of its lowest)"
        for name, values in panel.lines.items()
        for first, last in [(values[0], values[-1])]
        if first > 0 and last > 0
    )
    return ", ".join(told)


def span(values: Sequence[float]) -> float:
    """Divide the highest by the lowest: a curve may bend between its ends."""
    known = [value for value in values if value > 0]
    return max(known) / min(known) if known else math.nan


def _panels(rows: Sequence[Growth]) -> Iterator[Panel]:
    version = f"RabbitMQ {rows[0].version}"
    for axis, varied, fixed in (
        ("messages", lambda row: row.messages, lambda row: row.concurrency),
        ("concurrency", lambda row: row.concurrency, lambda row: row.messages),
    ):
        chosen = curve_rows(rows, varied, fixed)
        places = sorted({varied(row) for row in chosen})
        names = dict.fromkeys(row.contender for row in chosen)
        lines = {name: [_cost(chosen, name, varied, place) for place in places] for name in names}
        yield Panel(f"{version}: CPU of the worker", "µs a message", axis, places, lines)


def curve_rows(rows: Sequence[Growth], varied: Callable[[Growth], int], fixed: Callable[[Growth], int]) -> list[Growth]:
    """Choose the rows of one curve: of what stood still, the value at which the other varied most."""

    def breadth(value: int) -> int:
        return len({varied(row) for row in rows if fixed(row) == value})

    still = max((fixed(row) for row in rows), key=breadth)
    return [row for row in rows if fixed(row) == still]


def _cost(rows: Sequence[Growth], name: str, varied: Callable[[Growth], int], place: int) -> float:
    """Take the median of the rounds; what was not measured is NaN, which no picture shows."""
    return median(row.worker_cpu for row in rows if row.contender == name and varied(row) == place)
