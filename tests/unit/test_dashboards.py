"""The dashboards as files: what Grafana takes, what Prometheus can answer, and what a person can read at night."""

import json
import re
from itertools import combinations
from xml.etree import ElementTree

import pytest
import yaml
from grafana_foundation_sdk.models import units
from grafana_schema import complaints
from prometheus_client import CollectorRegistry

from redrive import metrics as worker_metrics
from redrive.ladder import PLACES, Rung
from redrive_dashboards.dashboards import CHART, DASHBOARDS, path_of, written
from redrive_dashboards.expressions import ALARMS, BANDS, RULES_ARE_LOADED
from redrive_dashboards.figures import format_number
from redrive_dashboards.filling import Choice, fill
from redrive_dashboards.layout import COLUMNS, MANY, ONE
from redrive_dashboards.panels import Curves, Stat
from redrive_dashboards.picture import draw, draw_all
from redrive_dashboards.prometheus import Series, Window
from redrive_dashboards.questions import questions, unanswered
from redrive_operator import metrics as operator_metrics

FILES = {dashboard.uid: json.loads(path_of(dashboard).read_text()) for dashboard in DASHBOARDS}
PANELS = [
    pytest.param(panel, id=f"{uid}: {panel['title']}")
    for uid, file in FILES.items()
    for panel in file["panels"]
    if panel["type"] != "row"
]

# Of a broker or of the operator itself, and so of no consumer.
OF_NOBODY = {
    "redrive_brokers",
    "redrive_orphans",
    "redrive_reading_lag_seconds",
    "redrive_reconciles_total",
    "redrive_sleeping_messages",
    "redrive_watch_age_seconds",
}
METRIC = re.compile(r"(?<![:\w])(redrive_\w+|ALERTS)(?:\{([^}]*)\})?")


def exposed():
    """Name every series that a worker or the operator serves."""
    worker = worker_metrics.Metrics("shop", "orders", version="1", mode="Thread", registry=CollectorRegistry())
    operator = operator_metrics.Metrics()
    operator.watch(lambda: 0.0, lambda: 0.0, lambda: (1, 0))
    names = set()
    names.add("ALERTS")  # Prometheus makes it from the rules
    for source in (worker, operator):
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", source.expose().body.decode(), re.MULTILINE):
            parts = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
            names |= {name + part for part in parts}
    return names


def expressions(panel):
    return [target["expr"] for target in panel["targets"]]


def variables(file):
    return {variable["name"]: variable for variable in file["templating"]["list"]}


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_the_chart_has_what_is_built(dashboard):
    assert path_of(dashboard).read_text() == written(dashboard), "run: make dashboards"


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_grafana_knows_every_key_and_value(file):
    assert complaints(file) == []


def test_a_key_that_grafana_does_not_know_is_found():
    file = json.loads(json.dumps(FILES["redrive-overview"]))
    file["panels"][0]["options"]["colourMode"] = "value"
    file["panels"][1]["options"]["colorMode"] = "loud"
    assert len(complaints(file)) == 2


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_every_panel_has_a_number_of_its_own(file):
    numbers = [panel["id"] for panel in file["panels"]]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_no_panel_lies_on_another_or_outside(file):
    places = [panel["gridPos"] for panel in file["panels"]]
    assert all(place["x"] >= 0 and place["x"] + place["w"] <= COLUMNS for place in places)
    for one, other in combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_rows_of_panels_are_full(file):
    """A hole at the end of a line is a slip: Grafana would pull panels up into it."""
    lines = {}
    for panel in file["panels"]:
        lines.setdefault(panel["gridPos"]["y"], []).append(panel["gridPos"]["w"])
    assert {sum(widths) for widths in lines.values()} == {COLUMNS}


@pytest.mark.parametrize("panel", PANELS)
def test_panel_is_of_a_kind_that_stays(panel):
    assert panel["type"] in {"stat", "timeseries", "table"}


@pytest.mark.parametrize("panel", PANELS)
def test_panel_says_what_to_make_of_it(panel):
    assert panel["title"]
    assert len(panel["description"]) > 40
    assert panel["description"].endswith(".")


@pytest.mark.parametrize("panel", PANELS)
def test_every_metric_exists(panel):
    asked = {name for expr in expressions(panel) for name, _ in METRIC.findall(expr)}
    assert asked
    assert asked <= exposed()


@pytest.mark.parametrize("panel", PANELS)
def test_every_query_keeps_to_the_chosen_consumers(panel):
    for expr in expressions(panel):
        for name, selector in METRIC.findall(expr):
            if name in OF_NOBODY or 'consumer=""' in selector:
                assert "$" not in selector
            else:
                assert MANY in selector or ONE in selector, expr


@pytest.mark.parametrize("panel", PANELS)
def test_every_query_goes_to_the_chosen_prometheus(panel):
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert panel["datasource"] == chosen
    assert all(target["datasource"] == chosen for target in panel["targets"])


@pytest.mark.parametrize("panel", PANELS)
def test_a_legend_uses_only_labels_that_the_query_keeps(panel):
    for target in panel["targets"]:
        used = set(re.findall(r"{{(\w+)}}", target.get("legendFormat", "")))
        kept = {label for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in group.split(", ")}
        assert used <= kept


@pytest.mark.parametrize("panel", PANELS)
def test_thresholds_rise(panel):
    first, *others = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert first["value"] is None
    values = [step["value"] for step in others]
    assert values == sorted(values)


@pytest.mark.parametrize("panel", PANELS)
def test_brackets_close(panel):
    for expr in expressions(panel):
        assert all(expr.count(one) == expr.count(other) for one, other in ("()", "{}", "[]"))


@pytest.mark.parametrize("panel", PANELS)
def test_nothing_is_left_to_fill_in(panel):
    for expr in expressions(panel):
        filled = fill(expr, Choice("shop", "orders"))
        assert "$" not in filled
        assert "WHOSE" not in filled


@pytest.mark.parametrize("panel", PANELS)
def test_grafana_knows_every_unit(panel):
    config = panel["fieldConfig"]
    asked = [one["value"] for override in config["overrides"] for one in override["properties"] if one["id"] == "unit"]
    asked += [config["defaults"]["unit"]] if "unit" in config["defaults"] else []
    assert asked
    assert set(asked) <= {value for name, value in vars(units).items() if not name.startswith("_")}


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_the_title_of_a_small_tile_can_be_read_whole(dashboard):
    assert all(len(panel.title) <= 18 for panel in dashboard.panels if isinstance(panel, Stat))


def rules():
    text = (CHART.parent / "alarms" / "rules.yaml").read_text()
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def test_every_alarm_is_marked():
    assert set(ALARMS) == {rule["alert"] for rule in rules() if "alert" in rule}


def test_whether_the_rules_are_loaded_is_seen_by_one_of_them():
    assert RULES_ARE_LOADED in {rule.get("record") for rule in rules()}


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_alarms_are_marked_in_the_curves(file):
    marked = next(one for one in file["annotations"]["list"] if one["name"] == "Alarms")
    assert MANY in marked["expr"] or ONE in marked["expr"]
    assert marked["datasource"]["uid"] == "${datasource}"


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_prometheus_namespace_and_consumer_can_be_chosen(file):
    found = variables(file)
    assert list(found) == ["datasource", "namespace", "consumer"]
    assert found["datasource"]["query"] == "prometheus"
    assert "$namespace" in found["consumer"]["query"]


def test_the_overview_begins_with_all_and_the_detail_with_one():
    assert variables(FILES["redrive-overview"])["consumer"]["includeAll"] is True
    assert variables(FILES["redrive-consumer"])["consumer"]["multi"] is False


def test_the_table_leads_to_a_dashboard_that_exists():
    links = re.findall(r"/d/([\w-]+)\?", path_of(DASHBOARDS[0]).read_text())
    assert links
    assert set(links) <= set(FILES)


@pytest.mark.parametrize("place", range(PLACES))
def test_every_rung_is_in_the_band_of_its_place(place):
    for value in range(1, 16):
        seconds = Rung(place, value).delay.total_seconds()
        names = [name for name, pattern in BANDS if re.fullmatch(pattern.replace("\\\\", "\\"), f"{seconds:g}")]
        assert names == [BANDS[place][0]], seconds


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0, "short", "0"),
        (1234, "short", "1.23 K"),
        (0.5, "percentunit", "50%"),
        (0.02, "s", "20 ms"),
        (7200, "s", "2 hours"),
        (12, "mpm", "12 msgs/m"),
        (None, "s", "No data"),
    ],
)
def test_numbers_are_written_as_grafana_writes_them(value, unit, shown):
    assert format_number(value, unit) == shown


@pytest.mark.parametrize(("decimals", "shown"), [(0, "27%"), (1, "26.8%"), (None, "26.8%")])
def test_decimals_are_kept(decimals, shown):
    assert format_number(0.2678, "percentunit", {}, decimals) == shown


LABELS = {"namespace": "shop", "consumer": "orders", "outcome": "done", "reason": "Exhausted", "rung": "2"}


class Steady:
    """A Prometheus of which every answer is one series, with all labels that anybody groups by."""

    def __init__(self):
        self.asked = []

    def now(self, expr, at):
        self.asked.append(expr)
        return [Series(LABELS, ((at, 1.0),))]

    def over(self, expr, window):
        self.asked.append(expr)
        return [Series(LABELS, ((window.start, 1.0), (window.end, 3.0)))]


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_the_picture_has_every_panel_and_asks_every_query(dashboard):
    prometheus = Steady()
    choice = Choice("shop", "orders")
    page = ElementTree.fromstring(draw(dashboard, prometheus, Window(0, 900), choice))  # noqa: S314  it is our own
    words = {"".join(node.itertext()) for node in page.iter("{http://www.w3.org/2000/svg}text")}
    assert {panel.title for panel in dashboard.panels} <= words
    assert sorted(prometheus.asked) == sorted(fill(expr, choice) for expr in dashboard.expressions())


def test_the_overview_is_drawn_for_all_and_the_detail_for_one():
    prometheus = Steady()
    assert set(draw_all(prometheus, Window(0, 900), Choice("shop", "orders"))) == set(FILES)
    assert any('consumer=~".+"' in expr for expr in prometheus.asked)
    assert any('consumer="orders"' in expr for expr in prometheus.asked)
    assert not any('consumer=~"orders"' in expr for expr in prometheus.asked)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_the_picture_says_where_there_is_nothing(dashboard):
    class Empty(Steady):
        def now(self, expr, at):
            return []

        def over(self, expr, window):
            return []

    page = draw(dashboard, Empty(), Window(0, 900), Choice())
    assert page.count(">No data<") >= sum(isinstance(panel, Curves) for panel in dashboard.panels)


def test_every_query_is_a_question():
    asked = list(questions(Choice("shop", "orders")))
    assert [one.expr for one in asked] == [
        fill(expr, Choice("shop", "orders")) for dashboard in DASHBOARDS for expr in dashboard.expressions()
    ]


def test_a_curve_is_asked_for_a_stretch_of_time_and_a_number_for_now():
    ranges = [target["range"] for panel in PANELS for target in panel.values[0]["targets"]]
    assert [one.over_time for one in questions(Choice())] == ranges


def test_an_answer_without_a_number_is_none():
    class Vague(Steady):
        def now(self, expr, at):
            return [Series(LABELS, ())]

    assert unanswered(Steady(), Window(0, 900), Choice()) == []
    missing = unanswered(Vague(), Window(0, 900), Choice())
    assert missing
    assert not any(one.over_time for one in missing)


def test_the_picture_suits_a_light_page_and_a_dark_one():
    page = draw(DASHBOARDS[0], Steady(), Window(0, 900), Choice())
    style = page[page.index("<style>") : page.index("</style>")]
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    used = set(re.findall(r'class="([\w-]+)"', page))
    assert used
    assert all(f".{name}{{" in light and f".{name}{{" in dark for name in used)
