"""Curves side by side, drawn as SVG by hand, so that the bench needs no library for a few of them.

Points stand at equal distances, since each is usually several times the one before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, MARGIN_LEFT, MARGIN_RIGHT, TOP, BOTTOM = 300, 220, 46, 22, 40, 40
LEGEND = 18  # of height, where there are several lines
COLOURS = ("#2a6fb0", "#c2571a", "#3d8b40", "#7b4ea3", "#8a6d1b", "#555555")


@dataclass(frozen=True)
class Panel:
    """One panel: what is drawn, in which unit, over what; each line has a value for every place."""

    title: str
    unit: str
    axis: str
    places: Sequence[int]
    lines: Mapping[str, Sequence[float]]


def draw_panels(panels: Sequence[Panel]) -> str:
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    width, height = WIDTH * len(panels), HEIGHT + (LEGEND if len(names) > 1 else 0)
    colours = dict(zip(names, (COLOURS[place % len(COLOURS)] for place in range(len(names))), strict=True))
    drawn = "\n".join(
        f'<g transform="translate({WIDTH * place},0)">{"".join(_draw(panel, colours))}</g>'
        for place, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n{drawn}\n{"".join(_legend(colours))}</svg>\n'
    )


def _draw(panel: Panel, colours: Mapping[str, str]) -> Iterator[str]:
    top = round_up(max(value for values in panel.lines.values() for value in values))
    xs = [_x(place, len(panel.places)) for place in range(len(panel.places))]
    yield _text(WIDTH / 2, 16, panel.title, weight="bold")
    yield _text(WIDTH / 2, 30, panel.unit, colour="#555")
    for share in (0.0, 0.5, 1.0):
        y = _y(top * share, top)
        yield f'<line x1="{MARGIN_LEFT}" x2="{WIDTH - MARGIN_RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield _text(MARGIN_LEFT - 5, y + 4, f"{top * share:g}", anchor="end", colour="#555")
    for name, values in panel.lines.items():
        yield from _line(xs, values, top, colours[name])
    for x, place in zip(xs, panel.places, strict=True):
        yield _text(x, HEIGHT - BOTTOM + 16, f"{place:,}", colour="#555")
    yield _text(WIDTH / 2, HEIGHT - 8, panel.axis, colour="#555")


def _line(xs: Sequence[float], values: Sequence[float], top: float, colour: str) -> Iterator[str]:
    ys = [_y(value, top) for value in values]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y, value in zip(xs, ys, values, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
        yield _text(x, y - 8, f"{value:,.0f}" if value >= 100 else f"{value:.3g}")


def _legend(colours: Mapping[str, str]) -> Iterator[str]:
    if len(colours) < 2:
        return
    for place, (name, colour) in enumerate(colours.items()):
        x = MARGIN_LEFT + 90 * place
        yield f'<circle cx="{x}" cy="{HEIGHT + 5}" r="3.5" fill="{colour}"/>'
        yield _text(x + 8, HEIGHT + 9, name, anchor="start")


def round_up(value: float) -> float:
    """Find the end of an axis: above the value, with room for its number, and easy to halve."""
    step = 1.0
    while step < value:
        step *= 10
    while step / 10 >= value > 0:
        step /= 10
    return next(step * part for part in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2) if step * part >= value * 1.1)


def _x(place: int, count: int) -> float:
    inner = WIDTH - MARGIN_LEFT - MARGIN_RIGHT - 30
    return MARGIN_LEFT + 15 + (inner * place / (count - 1) if count > 1 else inner / 2)


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP - 10) * (value / top if top else 0)


def _text(x: float, y: float, words: str, *, anchor: str = "middle", colour: str = "#000", weight: str = "") -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{bold}>{escape(words)}</text>'
