"""A dashboard drawn as SVG from the data of a real Prometheus, for the docs.

It is no screenshot: Grafana is not asked. The same definitions, the same queries, the same order, colours and
thresholds; what Grafana adds to that, its menus and its fonts, is left out, and so is the empty part of a table.
Written by hand, as the bench's curves are, so that no library is needed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import assert_never

from redrive_dashboards.dashboards import DASHBOARDS
from redrive_dashboards.drawing import Box, Line, plot, rectangle, shortened, text, width_of
from redrive_dashboards.figures import format_number
from redrive_dashboards.filling import Choice, fill
from redrive_dashboards.grid import Rows, draw_table, height_of_table, rows_of
from redrive_dashboards.layout import COLUMNS, ONE, Dashboard, build
from redrive_dashboards.panels import Curves, Panel, Stat, Table, colour_at
from redrive_dashboards.prometheus import Prometheus, Series, Window
from redrive_dashboards.theme import PALETTE, ink_on, stylesheet

CELL_WIDTH, CELL_HEIGHT, GAP = 44, 25, 6
TILE_HEIGHT = 64  # whatever the dashboard says: one number needs no more
HEADING = 40
ROW_HEADING = 28


@dataclass(frozen=True)
class _Asker:
    """Asks the queries of one dashboard, for one choice of its variables."""

    dashboard: Dashboard
    prometheus: Prometheus
    window: Window
    choice: Choice

    def now(self, expr: str) -> list[Series]:
        return self.prometheus.now(self._fill(expr), self.window.end)

    def over(self, expr: str) -> list[Series]:
        return self.prometheus.over(self._fill(expr), self.window)

    def _fill(self, expr: str) -> str:
        return fill(self.dashboard.fill(expr), self.choice)


def draw_all(prometheus: Prometheus, window: Window, choice: Choice) -> dict[str, str]:
    """Draw every page, by its name: that of one consumer for the one that was chosen, the overview for all."""
    everybody = Choice(interval=choice.interval)
    return {
        dashboard.uid: draw(dashboard, prometheus, window, choice if dashboard.whose == ONE else everybody)
        for dashboard in DASHBOARDS
    }


def draw(dashboard: Dashboard, prometheus: Prometheus, window: Window, choice: Choice) -> str:
    """Ask every panel's queries, and draw the whole page."""
    asker = _Asker(dashboard, prometheus, window, choice)
    panels = iter(dashboard.panels)
    drawn: list[str] = []
    top = float(HEADING)
    for _, line in groupby(build(dashboard)["panels"], key=lambda one: one["gridPos"]["y"]):
        placed = list(line)
        if placed[0]["type"] == "row":
            drawn.append(text(GAP, top + 19, placed[0]["title"], size=14, bold=True))
            top += ROW_HEADING
            continue
        told = [(one["gridPos"], panel, _told(panel, asker)) for one, panel in zip(placed, panels, strict=False)]
        height = max(_height(place["h"], panel, rows) for place, panel, rows in told)
        for place, panel, rows in told:
            box = Box(place["x"] * CELL_WIDTH + GAP / 2, top, place["w"] * CELL_WIDTH - GAP, height)
            drawn.append("".join(_panel(panel, box, asker, rows)))
        top += height + GAP
    return _page(dashboard.title, drawn, height=top)


def _page(title: str, drawn: Sequence[str], *, height: float) -> str:
    width = COLUMNS * CELL_WIDTH
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'width="{width}" height="{height:.0f}" role="img" aria-label="{escape(title)}">\n{stylesheet()}\n'
        f"{rectangle(Box(0, 0, width, height), 'background')}\n"
        f"{text(GAP, 26, title, size=18, bold=True)}\n" + "\n".join(drawn) + "\n</svg>\n"
    )


def _told(panel: Panel, asker: _Asker) -> Rows:
    """Ask for a table's rows before it is drawn: it is as high as they are."""
    return rows_of(panel, asker.now) if isinstance(panel, Table) else ()


def _height(cells: int, panel: Panel, rows: Rows) -> float:
    match panel:
        case Stat():
            return TILE_HEIGHT
        case Curves():
            return cells * CELL_HEIGHT
        case Table():
            return height_of_table(len(rows))
        case _:
            assert_never(panel)


def _panel(panel: Panel, box: Box, asker: _Asker, rows: Rows) -> Iterator[str]:
    yield f"<g><title>{escape(panel.says, quote=False)}</title>"
    yield rectangle(box, "frame", round_by=4)
    yield rectangle(Box(box.left + 1, box.top + 1, box.width - 2, box.height - 2), "paper", round_by=3)
    match panel:
        case Stat():
            yield from _stat(panel, box, asker)
        case Curves():
            yield from _curves(panel, box, asker)
        case Table():
            yield text(box.left + 9, box.top + 17, panel.title, size=12, bold=True)
            yield from draw_table(panel, box, rows)
        case _:
            assert_never(panel)
    yield "</g>"


def _stat(panel: Stat, box: Box, asker: _Asker) -> Iterator[str]:
    found = asker.now(panel.expr)
    value = found[0].last if found else None
    ink = "text"
    if len(panel.steps) > 1 and value is not None:
        shade = colour_at(panel.steps, value)
        ink = ink_on(shade)
        yield rectangle(box, shade, round_by=4)
    yield text(box.left + 9, box.top + 17, panel.title, colour=ink)
    shown = format_number(value, panel.unit, panel.words, panel.decimals)
    size = 26 if width_of(shown, 30) < box.width - 12 else 18  # bold words are wider
    yield text(box.middle, box.top + 48, shown, anchor="middle", colour=ink, size=size, bold=True)


def _curves(panel: Curves, box: Box, asker: _Asker) -> Iterator[str]:
    named = [(_legend(query.legend, one.labels), one) for query in panel.queries for one in asker.over(query.expr)]
    named.sort(key=lambda pair: (_place_of(pair[0], panel), -(pair[1].last or 0)))
    lines = [
        Line(one.points, _colour(panel, name, place), dashed=name in panel.limits)
        for place, (name, one) in enumerate(named)
    ]
    yield text(box.left + 9, box.top + 17, panel.title, size=12, bold=True)
    yield from plot(
        Box(box.left + 60, box.top + 32, box.width - 72, box.height - 84),
        lines,
        span=(asker.window.start, asker.window.end),
        stacked=panel.stacked,
        highest=panel.highest,
        written=lambda value: format_number(value, panel.unit),
    )
    rows = [
        (name, line.colour, format_number(one.last, panel.unit)) for (name, one), line in zip(named, lines, strict=True)
    ]
    yield from _legend_rows(box, rows)


def _place_of(name: str, panel: Curves) -> int:
    """Say which series comes first: those that have a colour in its order, then all others, the largest first."""
    known = list(panel.colours)
    return known.index(name) if name in known else len(known)


def _colour(panel: Curves, name: str, place: int) -> str:
    if name in panel.limits:
        return "red"
    return panel.colours.get(name, PALETTE[place % len(PALETTE)])


def _legend_rows(box: Box, rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Name each series, and its last value; there is room for two lines."""
    left, line = box.left + 10, 0
    for name, shade, last in rows:
        words = f"{shortened(name, box.width - 90, 10)}  {last}"
        length = 24 + width_of(words, 10)
        if left + length > box.right and left > box.left + 10:
            left, line = box.left + 10, line + 1
        if line > 1:
            return
        y = box.bottom - 22 + 15 * line
        yield rectangle(Box(left, y - 4, 10, 3), shade)
        yield text(left + 14, y, words, size=10, colour="soft")
        left += length


def _legend(pattern: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{\s*(\w+)\s*}}", lambda found: labels.get(found[1], ""), pattern).strip() or "value"
