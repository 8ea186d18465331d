"""Boxes, words and curves as SVG. It knows nothing of dashboards; colours are names of the theme."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Box:
    """A place on the page."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


@dataclass(frozen=True)
class Line:
    """One series of a plot."""

    points: Points
    colour: str
    dashed: bool = False


def rectangle(box: Box, colour: str, *, round_by: int = 0) -> str:
    corner = f' rx="{round_by}"' if round_by else ""
    place = f'x="{box.left:.1f}" y="{box.top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    return f'<rect class="{colour}" {place}{corner}/>'


def text(
    x: float, y: float, words: str, *, anchor: str = "start", colour: str = "text", size: int = 11, bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return (
        f'<text class="{colour}" x="{x:.1f}" y="{y:.1f}" font-size="{size}"{side}{weight}>'
        f"{escape(words, quote=False)}</text>"
    )


def width_of(words: str, size: float = 11) -> float:
    """Guess how wide words are: a little more than most fonts need."""
    return 0.56 * size * len(words)


def shortened(words: str, width: float, size: float = 11) -> str:
    """Cut words to what fits, and say so with an ellipsis."""
    room = max(1, int(width / width_of("x", size)))
    return words if len(words) <= room else f"{words[: room - 1]}…"


def plot(
    box: Box,
    lines: Sequence[Line],
    *,
    span: tuple[float, float],
    stacked: bool,
    highest: float | None,
    written: Callable[[float], str],
) -> Iterator[str]:
    """Draw lines over time, from zero up; stacked ones stand on those before them."""
    if not any(line.points for line in lines):
        yield text(box.middle, box.top + box.height / 2, "No data", anchor="middle", colour="soft")
        return
    flat: list[tuple[Points, Points]] = [(line.points, ()) for line in lines]
    shown = _stack(lines) if stacked else flat
    top = highest or round_up(max(value for upper, _ in shown for _, value in upper))
    yield from _axes(box, span, top, written)

    def place(point: tuple[float, float]) -> str:
        moment, value = point
        x = box.left + box.width * (moment - span[0]) / ((span[1] - span[0]) or 1)
        return f"{x:.1f},{box.bottom - box.height * min(value / top, 1):.1f}"

    for (upper, lower), line in zip(shown, lines, strict=True):
        if lower and upper:
            area = " ".join(map(place, [*_thinned(upper), *reversed(_thinned(lower))]))
            yield f'<polygon class="{line.colour}" points="{area}" fill-opacity="0.5"/>'
        dashes = ' stroke-dasharray="6 4"' if line.dashed else ""
        thickness = 1.2 if line.dashed or stacked else 1.7
        for part in _unbroken(upper, span):
            points = " ".join(map(place, _thinned(part)))
            yield f'<polyline class="{line.colour}" points="{points}" stroke-width="{thickness}"{dashes}/>'


def round_up(value: float) -> float:
    """Find the end of an axis: above the value, and easy to halve."""
    if value <= 0:
        return 1.0
    step = 1.0
    while step < value:
        step *= 10
    while step / 10 >= value:
        step /= 10
    return next(step * part for part in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2) if step * part >= value * 1.05)


def _axes(box: Box, span: tuple[float, float], top: float, written: Callable[[float], str]) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        y = box.bottom - box.height * share
        ends = f'x1="{box.left:.1f}" x2="{box.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        yield f'<line class="frame" {ends}/>'
        yield text(box.left - 5, y + 3, written(top * share), size=9, colour="soft", anchor="end")
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        moment = datetime.fromtimestamp(span[0] + (span[1] - span[0]) * share, UTC)
        x = box.left + box.width * share
        yield text(x, box.bottom + 12, f"{moment:%H:%M}", size=9, colour="soft", anchor=anchor)


def _stack(lines: Sequence[Line]) -> list[tuple[Points, Points]]:
    """Put each line on the sum of those before, moment by moment; a limit stays where it is."""
    below: dict[float, float] = {}
    found: list[tuple[Points, Points]] = []
    for line in lines:
        if line.dashed:
            found.append((line.points, ()))
            continue
        floor = [(moment, below.get(moment, 0.0)) for moment, _ in line.points]
        upper = [(moment, value + below.get(moment, 0.0)) for moment, value in line.points]
        below.update(upper)
        found.append((upper, floor))
    return found


def _unbroken(line: Points, span: tuple[float, float]) -> Iterator[Points]:
    """Split where points are missing: a gap is a gap, and not a straight line over it."""
    longest = (span[1] - span[0]) / 40
    part: list[tuple[float, float]] = []
    for point in line:
        if part and point[0] - part[-1][0] > longest:
            yield part
            part = []
        part.append(point)
    if part:
        yield part


def _thinned(line: Points) -> list[tuple[float, float]]:
    """Leave out the points in the middle of a level stretch: most lines are level most of the time."""
    inner = (
        point
        for before, point, after in zip(line, line[1:], line[2:], strict=False)
        if not before[1] == point[1] == after[1]
    )
    return [*line[:1], *inner, *(line[1:] and line[-1:])]
