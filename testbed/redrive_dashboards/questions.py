"""Everything that the dashboards ask of a Prometheus, for those who want to see that it answers.

A number and a table ask for now, a curve for a stretch of time, as Grafana does. An answer that has no number in it,
such as a quantile of nothing, is none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from redrive_dashboards.dashboards import DASHBOARDS
from redrive_dashboards.filling import Choice, fill
from redrive_dashboards.panels import Curves
from redrive_dashboards.prometheus import Prometheus, Series, Window


@dataclass(frozen=True)
class Question:
    """One query of one panel, ready to be asked; `query` is the letter that Grafana gives it."""

    dashboard: str
    panel: str
    query: str
    expr: str
    over_time: bool

    def ask(self, prometheus: Prometheus, window: Window) -> list[Series]:
        return prometheus.over(self.expr, window) if self.over_time else prometheus.now(self.expr, window.end)

    def __str__(self) -> str:
        return f"{self.dashboard}, {self.panel} {self.query}: {self.expr}"


def questions(choice: Choice) -> Iterator[Question]:
    """Every query of every dashboard, for one consumer."""
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            for letter, query in zip(ascii_uppercase, panel.queries, strict=False):
                expr = fill(dashboard.fill(query.expr), choice)
                yield Question(dashboard.uid, panel.title, letter, expr, over_time=isinstance(panel, Curves))


def unanswered(prometheus: Prometheus, window: Window, choice: Choice) -> Sequence[Question]:
    """Ask them all, and give back those that got no number; a query that cannot be read raises PrometheusError."""
    return [one for one in questions(choice) if not any(series.points for series in one.ask(prometheus, window))]
