"""The cost of each consumer over the size of the fleet, drawn as SVG: where it is flat, a fleet costs its sum.

Written by hand, so that the bench needs no library for a few curves. Sizes stand at equal distances, since each is ten
times the one before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from bench.fleet_figures import Size

WIDTH, HEIGHT, MARGIN_LEFT, MARGIN_RIGHT, TOP, BOTTOM = 300, 220, 46, 22, 40, 40


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
    width = WIDTH * len(CURVES)
    panels = "\n".join(
        f'<g transform="translate({WIDTH * place},0)">{"".join(_panel(curve, ordered))}</g>'
        for place, curve in enumerate(CURVES)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="11">\n'
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>\n{panels}\n</svg>\n'
    )


def _panel(curve: Curve, sizes: Sequence[Size]) -> Iterator[str]:
    values = [curve.value(size) for size in sizes]
    top = round_up(max(values))
    xs = [_x(place, len(sizes)) for place in range(len(sizes))]
    ys = [_y(value, top) for value in values]
    yield _text(WIDTH / 2, 16, curve.title, weight="bold")
    yield _text(WIDTH / 2, 30, curve.unit, colour="#555")
    for share in (0.0, 0.5, 1.0):
        y = _y(top * share, top)
        yield f'<line x1="{MARGIN_LEFT}" x2="{WIDTH - MARGIN_RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield _text(MARGIN_LEFT - 5, y + 4, f"{top * share:g}", anchor="end", colour="#555")
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    yield f'<polyline points="{points}" fill="none" stroke="#2a6fb0" stroke-width="2"/>'
    for x, y, value, size in zip(xs, ys, values, sizes, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="#2a6fb0"/>'
        yield _text(x, y - 8, f"{value:,.0f}" if value >= 100 else f"{value:.3g}")
        yield _text(x, HEIGHT - BOTTOM + 16, f"{size.consumers:,}", colour="#555")
    yield _text(WIDTH / 2, HEIGHT - 8, "consumers", colour="#555")


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
