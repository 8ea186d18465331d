"""Curves side by side, drawn as one picture.

Points stand at equal distances, since each is usually several times the one before.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

PANEL_INCHES = (3.4, 2.9)
DOTS_PER_INCH = 130
HEADROOM = 1.2  # above the highest point, for its number


@dataclass(frozen=True)
class Panel:
    """One panel: what is drawn, in which unit, over what; each line has a value for every place, or NaN."""

    title: str
    unit: str
    axis: str
    places: Sequence[int]
    lines: Mapping[str, Sequence[float]]


def draw_panels(panels: Sequence[Panel], file: Path) -> None:
    """Draw the panels from left to right into a file, whose ending says of which kind it is."""
    figure = make_figure(panels)
    # Without a date and the library's version in it, the same figures make the same file.
    figure.savefig(file, dpi=DOTS_PER_INCH, metadata={"Software": None})


def make_figure(panels: Sequence[Panel]) -> Figure:
    """Lay the panels out; each names its lines where there are several."""
    width, height = PANEL_INCHES
    figure = Figure(figsize=(width * len(panels), height), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw(axes, panel)
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=9, fontweight="bold")
    axes.set_ylabel(panel.unit, fontsize=8)
    axes.set_xlabel(panel.axis, fontsize=8)
    places = range(len(panel.places))
    for name, values in panel.lines.items():
        axes.plot(places, values, marker="o", markersize=4, label=name)
        for place, value in zip(places, values, strict=True):
            if not math.isnan(value):
                axes.annotate(write(value), (place, value), (0, 5), textcoords="offset points", ha="center", fontsize=7)
    axes.set_xticks(places, [f"{place:,}" for place in panel.places])
    axes.tick_params(labelsize=8)
    axes.margins(x=0.12)
    # From zero: a curve that is flat must look flat.
    highest = max((value for values in panel.lines.values() for value in values if value > 0), default=1.0)
    axes.set_ylim(0, highest * HEADROOM)
    axes.grid(axis="y", alpha=0.3)
    if len(panel.lines) > 1:
        axes.legend(fontsize=7, loc="lower right")


def write(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
