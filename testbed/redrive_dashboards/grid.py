"""The rows of a table, and what they look like in a picture."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from redrive_dashboards.drawing import Box, rectangle, shortened, text, width_of
from redrive_dashboards.figures import format_number
from redrive_dashboards.panels import CLEAR, Column, Table, colour_at
from redrive_dashboards.prometheus import Series
from redrive_dashboards.theme import ink_on

LINE, HEAD, FOOT = 19, 44, 8
MOST_ROWS = 12

Rows = Sequence[tuple[tuple[str, ...], Mapping[str, float | None]]]


def rows_of(table: Table, ask: Callable[[str], list[Series]]) -> Rows:
    """Ask every column, and put together what has the same keys."""
    cells: dict[tuple[str, ...], dict[str, float | None]] = {}
    for column in table.columns:
        for one in ask(column.expr):
            key = tuple(one.labels.get(name, "") for name in table.keys)
            cells.setdefault(key, {})[column.name] = one.last
    rows = sorted(cells.items())
    rows.sort(key=lambda row: _sort_key(row[1].get(table.sort)), reverse=table.descending)
    return rows[:MOST_ROWS]


def height_of_table(rows: int) -> float:
    return HEAD + LINE * max(rows, 1) + FOOT


def draw_table(table: Table, box: Box, rows: Rows) -> Iterator[str]:
    widths = _widths(table, rows, box.width - 16)
    lefts = [box.left + 8 + sum(widths[:place]) for place in range(len(widths))]
    names = [*table.keys, *(column.name for column in table.columns)]
    for left, name in zip(lefts, names, strict=True):
        yield text(left + 4, box.top + 36, name, size=10, colour="soft", bold=True)
    if not rows:
        yield text(box.left + 12, box.top + HEAD + 13, "No data", colour="soft")
    for line, (key, values) in enumerate(rows):
        top = box.top + HEAD + LINE * line
        yield rectangle(Box(box.left + 8, top - 1, box.width - 16, 1), "frame")
        for place, word in enumerate(key):
            shown = shortened(_written(table, place, word), widths[place] - 8)
            yield text(lefts[place] + 4, top + 13, shown)
        for place, column in enumerate(table.columns, start=len(table.keys)):
            cell = Box(lefts[place], top + 0.5, widths[place] - 2, LINE - 2)
            yield from _cell(column, values.get(column.name), cell)


def _written(table: Table, place: int, word: str) -> str:
    unit = table.numbers.get(table.keys[place])
    return format_number(float(word), unit) if unit else word


def _widths(table: Table, rows: Rows, room: float) -> list[float]:
    """Give the keys what their longest word needs, and all columns of numbers the same of what is left."""
    keys = [
        min(
            260.0, 18 + max(width_of(word) for word in (name, *(_written(table, place, key[place]) for key, _ in rows)))
        )
        for place, name in enumerate(table.keys)
    ]
    rest = (room - sum(keys)) / len(table.columns)
    return [*keys, *(rest for _ in table.columns)]


def _cell(column: Column, value: float | None, box: Box) -> Iterator[str]:
    if value is None:
        return
    shade = colour_at(column.shades, value) if len(column.steps) > 1 else CLEAR
    ink = "text"
    if shade != CLEAR:
        yield rectangle(box, shade, round_by=2)
        ink = ink_on(shade)
    shown = format_number(value, column.unit, column.words, column.decimals)
    yield text(box.left + 4, box.top + 12.5, shown, colour=ink)


def _sort_key(value: float | None) -> float:
    return float("-inf") if value is None else value
