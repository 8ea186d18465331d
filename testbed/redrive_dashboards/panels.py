"""What is on a dashboard, and each thing's JSON for Grafana. Where it stands is not known here.

Only panel types that Grafana has in its core and does not deprecate: `stat`, `timeseries`, `table`. A threshold is a
value from which on a colour holds; the first has no value and holds below all others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

GREEN, YELLOW, ORANGE, RED, BLUE, GREY, CLEAR = "green", "yellow", "orange", "red", "blue", "text", "transparent"

NAN = "nan"  # the word for a quantile of nothing

Steps = Sequence[tuple[float | None, str]]
Json = dict[str, Any]

GOOD: Steps = ((None, GREEN),)
PLAIN: Steps = ((None, GREY),)
NONE_WANTED: Steps = ((None, GREEN), (1, RED))  # one is too many
YES_WANTED: Steps = ((None, RED), (1, GREEN))


def colour_at(steps: Steps, value: float) -> str:
    """Find the colour of a value: that of the last threshold that it reaches."""
    return [colour for threshold, colour in steps if threshold is None or value >= threshold][-1]


@dataclass(frozen=True)
class Query:
    """One expression; `legend` names its series, with `{{label}}` for what is in a label."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Stat:
    """One number that is read from across the room. `words` stand for values that have a name."""

    title: str
    says: str
    expr: str
    unit: str = "short"
    steps: Steps = PLAIN
    words: Mapping[str, str] = field(default_factory=dict)
    decimals: int | None = None
    width: int = 3
    height: int = 4

    @property
    def queries(self) -> tuple[Query, ...]:
        return (Query(self.expr),)

    def body(self) -> Json:
        return {
            "type": "stat",
            "targets": [_target(0, Query(self.expr), instant=True)],
            "options": {
                "colorMode": "background_solid" if len(self.steps) > 1 else "none",
                "graphMode": "none",
                "justifyMode": "center",
                "orientation": "auto",
                "percentChangeColorMode": "standard",
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                "showPercentChange": False,
                "textMode": "value",
                "wideLayout": True,
            },
            "fieldConfig": {
                "defaults": _defaults(self.unit, self.steps, self.words, self.decimals, colour="thresholds"),
                "overrides": [],
            },
        }


@dataclass(frozen=True)
class Curves:
    """Lines over time. `limits` names the series that are drawn as a dashed red line: thresholds of alarms."""

    title: str
    says: str
    queries: tuple[Query, ...]
    unit: str = "short"
    stacked: bool = False
    colours: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    steps: Steps = GOOD
    highest: float | None = None
    width: int = 8
    height: int = 8

    def body(self) -> Json:
        defaults = _defaults(self.unit, self.steps, colour="palette-classic-by-name")
        defaults["min"] = 0
        if self.highest is not None:
            defaults["max"] = self.highest
        defaults["custom"] = {
            "drawStyle": "line",
            "fillOpacity": 40 if self.stacked else 8,
            "lineInterpolation": "linear",
            "lineWidth": 1 if self.stacked else 2,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"group": "A", "mode": "normal" if self.stacked else "none"},
            "thresholdsStyle": {"mode": "dashed" if len(self.steps) > 1 else "off"},
        }
        overrides = [_override(name, color=_fixed(colour)) for name, colour in self.colours.items()]
        overrides += [_override(name, **_limit()) for name in self.limits]
        return {
            "type": "timeseries",
            "targets": [_target(place, query) for place, query in enumerate(self.queries)],
            "options": {
                "legend": {"calcs": ["lastNotNull"], "displayMode": "list", "placement": "bottom", "showLegend": True},
                "tooltip": {"mode": "multi", "sort": "desc"},
            },
            "fieldConfig": {"defaults": defaults, "overrides": overrides},
        }


@dataclass(frozen=True)
class Column:
    """A column of numbers: one for each row's labels.

    What would be green has no colour in a table: a red cell must stand out among hundreds.
    """

    name: str
    expr: str
    unit: str = "short"
    steps: Steps = PLAIN
    words: Mapping[str, str] = field(default_factory=dict)
    decimals: int | None = None

    @property
    def shades(self) -> Steps:
        return [(threshold, CLEAR if colour == GREEN else colour) for threshold, colour in self.steps]


@dataclass(frozen=True)
class Table:
    """Rows that are told apart by the labels `keys`; `link` is where a click on the last of them leads.

    `numbers` gives a unit to those keys that are numbers written as text, so that they are sorted as such.
    """

    title: str
    says: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    sort: str
    descending: bool = True
    link: str = ""
    numbers: Mapping[str, str] = field(default_factory=dict)
    width: int = 24
    height: int = 10

    @property
    def queries(self) -> tuple[Query, ...]:
        return tuple(Query(column.expr) for column in self.columns)

    def body(self) -> Json:
        return {
            "type": "table",
            "targets": [_target(place, query, table=True) for place, query in enumerate(self.queries)],
            "transformations": self._transformations(),
            "options": {
                "cellHeight": "sm",
                "frameIndex": 0,
                "showHeader": True,
                "sortBy": [{"desc": self.descending, "displayName": self.sort}],
            },
            "fieldConfig": {
                "defaults": {
                    "color": {"mode": "thresholds"},
                    "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True, "inspect": False},
                    "thresholds": _thresholds(PLAIN),
                },
                "overrides": [*self._key_overrides(), *map(_column_override, self.columns)],
            },
        }

    def _transformations(self) -> list[Json]:
        """One frame a query becomes one row a key. A lone query's value is `Value`, that of many `Value #A`."""
        names = {f"Value #{letter}": column.name for letter, column in zip(ascii_uppercase, self.columns, strict=False)}
        order = [*self.keys, *names.values()]
        steps: list[Json] = [
            {"id": "merge", "options": {}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True},
                    "indexByName": {_field_name(name, names): place for place, name in enumerate(order)},
                    "renameByName": {"Value": self.columns[0].name, **names},
                },
            },
        ]
        if self.numbers:
            conversions = [{"destinationType": "number", "targetField": key} for key in self.numbers]
            steps.append({"id": "convertFieldType", "options": {"conversions": conversions, "fields": {}}})
        return steps

    def _key_overrides(self) -> list[Json]:
        found = [_override(key, unit=unit) for key, unit in self.numbers.items()]
        if self.link:
            links = [{"targetBlank": False, "title": "Look at this one", "url": self.link}]
            found.append(_override(self.keys[-1], links=links))
        return found


Panel = Stat | Curves | Table


def _target(place: int, query: Query, *, instant: bool = False, table: bool = False) -> Json:
    target: Json = {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": query.expr,
        "instant": instant or table,
        "range": not (instant or table),
        "refId": ascii_uppercase[place],
    }
    if table:
        target["format"] = "table"
    if query.legend:
        target["legendFormat"] = query.legend
    return target


def _defaults(
    unit: str, steps: Steps, words: Mapping[str, str] | None = None, decimals: int | None = None, *, colour: str
) -> Json:
    defaults: Json = {"color": {"mode": colour}, "thresholds": _thresholds(steps), "unit": unit}
    if words:
        defaults["mappings"] = _mappings(words)
    if decimals is not None:
        defaults["decimals"] = decimals
    return defaults


def _thresholds(steps: Steps) -> Json:
    return {"mode": "absolute", "steps": [{"color": colour, "value": value} for value, colour in steps]}


def _mappings(words: Mapping[str, str]) -> list[Json]:
    plain = {value: {"text": text} for value, text in words.items() if value != NAN}
    found: list[Json] = [{"type": "value", "options": plain}] if plain else []
    if NAN in words:
        found.append({"type": "special", "options": {"match": "null+nan", "result": {"text": words[NAN]}}})
    return found


def _override(name: str, **properties: object) -> Json:
    listed = [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": listed}


def _column_override(column: Column) -> Json:
    properties: Json = {"unit": column.unit}
    if len(column.steps) > 1:
        properties["thresholds"] = _thresholds(column.shades)
        properties["custom__cellOptions"] = {"mode": "basic", "type": "color-background"}
    if column.words:
        properties["mappings"] = _mappings(column.words)
    if column.decimals is not None:
        properties["decimals"] = column.decimals
    return _override(column.name, **properties)


def _fixed(colour: str) -> Json:
    return {"fixedColor": colour, "mode": "fixed"}


def _limit() -> Json:
    return {
        "color": _fixed(RED),
        "custom__fillOpacity": 0,
        "custom__lineStyle": {"dash": [8, 6], "fill": "dash"},
        "custom__lineWidth": 1,
        "custom__stacking": {"group": "limits", "mode": "none"},
    }


def _field_name(name: str, names: Mapping[str, str]) -> str:
    """Turn a column's name back into the field that `organize` finds it by."""
    return next((field_name for field_name, shown in names.items() if shown == name), name)
