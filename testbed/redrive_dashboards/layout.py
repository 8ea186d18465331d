"""A whole dashboard: panels set from left to right in Grafana's grid of 24 columns, row by row, and the variables.

Numbers of panels follow their order, so a link to one panel holds only until another is put before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redrive_dashboards.panels import DATASOURCE, RED, Json, Panel

COLUMNS = 24
ROW_HEIGHT = 1

# What Grafana 12 calls current; newer ones raise it by themselves, and 11 takes it as it is.
SCHEMA_VERSION = 42

# Panels without it are taken for very old ones, and rewritten when they are loaded.
PLUGIN_VERSION = "12.0.0"

TAG = "redrive"

# Whom a query is about. An overview takes many of each, a page about one consumer exactly one.
MANY = 'namespace=~"$namespace", consumer=~"$consumer"'
ONE = 'namespace="$namespace", consumer="$consumer"'


@dataclass(frozen=True)
class Section:
    """Panels under one heading; without a title they stand at the very top."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Dashboard:
    """What there is to see; `WHOSE` in an expression becomes the selector of `whose`."""

    uid: str
    title: str
    says: str
    whose: str
    alarms: str
    sections: Sequence[Section]

    @property
    def panels(self) -> list[Panel]:
        return [panel for section in self.sections for panel in section.panels]

    def expressions(self) -> list[str]:
        return [self.fill(query.expr) for panel in self.panels for query in panel.queries]

    def fill(self, expr: str) -> str:
        return expr.replace("WHOSE", self.whose)


def build(dashboard: Dashboard) -> Json:
    """Make the JSON that Grafana imports."""
    many = dashboard.whose == MANY
    return {
        "annotations": {"list": [_GRAFANAS_OWN, _alarms(dashboard)]},
        "description": dashboard.says,
        "editable": True,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "links": [_LINK],
        "panels": list(_panels(dashboard)),
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "tags": [TAG],
        "templating": {
            "list": [
                _datasource(),
                _variable("namespace", "label_values(redrive_consumer_ready, namespace)", many=many),
                _variable("consumer", f"label_values(redrive_consumer_ready{{{_within(many)}}}, consumer)", many=many),
            ]
        },
        "time": {"from": "now-3h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "title": dashboard.title,
        "uid": dashboard.uid,
        "weekStart": "",
    }


def _panels(dashboard: Dashboard) -> Iterator[Json]:
    number, top = 0, 0
    for section in dashboard.sections:
        if section.title:
            number += 1
            yield _row(number, section.title, top)
            top += ROW_HEIGHT
        left = height = 0
        for panel in section.panels:
            if left + panel.width > COLUMNS:
                left, top, height = 0, top + height, 0
            number += 1
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            yield _place(dashboard, panel, number, place)
            left, height = left + panel.width, max(height, panel.height)
        top += height


def _place(dashboard: Dashboard, panel: Panel, number: int, place: Json) -> Json:
    body = panel.body()
    targets = [{**target, "expr": dashboard.fill(target["expr"])} for target in body["targets"]]
    return {
        **body,
        "datasource": DATASOURCE,
        "description": panel.says,
        "gridPos": place,
        "id": number,
        "pluginVersion": PLUGIN_VERSION,
        "targets": targets,
        "title": panel.title,
    }


def _row(number: int, title: str, top: int) -> Json:
    place = {"h": ROW_HEIGHT, "w": COLUMNS, "x": 0, "y": top}
    return {"collapsed": False, "gridPos": place, "id": number, "panels": [], "title": title, "type": "row"}


def _alarms(dashboard: Dashboard) -> Json:
    """Mark in every curve when an alarm called."""
    return {
        "datasource": DATASOURCE,
        "enable": True,
        "expr": dashboard.fill(dashboard.alarms),
        "hide": False,
        "iconColor": RED,
        "name": "Alarms",
        "textFormat": "{{namespace}}/{{consumer}}",
        "titleFormat": "{{alertname}}",
    }


def _within(many: bool) -> str:
    return 'namespace=~"$namespace"' if many else 'namespace="$namespace"'


def _datasource() -> Json:
    return {"label": "Prometheus", "name": "datasource", "query": "prometheus", "refresh": 1, "type": "datasource"}


def _variable(name: str, query: str, *, many: bool) -> Json:
    found: Json = {
        "datasource": DATASOURCE,
        "includeAll": many,
        "multi": many,
        "name": name,
        "query": query,
        "refresh": 2,
        "sort": 1,
        "type": "query",
    }
    if many:
        # Every name matches: a list of a thousand consumers would make a query that is too long.
        found |= {"allValue": ".+", "current": {"text": "All", "value": "$__all"}}
    return found


_GRAFANAS_OWN: Json = {
    "builtIn": 1,
    "datasource": {"type": "grafana", "uid": "-- Grafana --"},
    "enable": True,
    "hide": True,
    "iconColor": "rgba(0, 211, 255, 1)",
    "name": "Annotations & Alerts",
    "type": "dashboard",
}

_LINK: Json = {
    "asDropdown": False,
    "icon": "external link",
    "includeVars": True,
    "keepTime": True,
    "tags": [TAG],
    "targetBlank": False,
    "title": "Redrive",
    "tooltip": "All consumers, and one of them in detail",
    "type": "dashboards",
    "url": "",
}
