"""Every alarm has a page, tests and metrics that exist; what the pages tell a tired person to type can be typed."""

import re

import pytest
import yaml
from prometheus_client import CollectorRegistry
from runbooks import (
    ALARMS_PAGE,
    ALL_PAGES,
    INDEX,
    PAGES,
    PROGRAMS,
    blocks,
    calls,
    commands,
    inline_code,
    named,
    programs,
)
from typer.main import get_command

from redrive.metrics import OUTCOMES
from redrive.metrics import Metrics as WorkerMetrics
from redrive_cli.main import app
from redrive_operator.metrics import Metrics as OperatorMetrics
from redrive_testbed.places import REPOSITORY

(GROUP,) = yaml.safe_load((REPOSITORY / "charts" / "redrive" / "alarms" / "rules.yaml").read_text())["groups"]
RULES = GROUP["rules"]
ALARMS = [rule for rule in RULES if "alert" in rule]
NAMES = sorted({rule["alert"] for rule in ALARMS})

PARTS = ["What it means", "What users feel", "How to look", "How to mend", "When to worry"]

METRIC = re.compile(r"(?<![\w:])redrive_\w+(?![\w:])")
RECORD = re.compile(r"\b[a-z_]+:redrive_\w+:\w+\b")


def exposed(text):
    """The names of all series that an exposition has, or would have if there were any."""
    for name, kind in re.findall(r"(?m)^# TYPE (\S+) (\w+)$", text):
        yield from (f"{name}_{part}" for part in ("bucket", "sum", "count")) if kind == "histogram" else (name,)


@pytest.fixture(scope="module")
def metrics():
    worker = WorkerMetrics("shop", "orders", version="1", mode="Process", registry=CollectorRegistry())
    operator = OperatorMetrics()
    operator.watch(lambda: 0.0, lambda: 0.0, lambda: (0, 0))
    return {name for each in (worker, operator) for name in exposed(each.expose().body.decode())}


def anchors(page):
    titles = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_alarm_has_a_runbook_and_every_runbook_an_alarm():
    assert [page.stem for page in PAGES] == NAMES


def test_every_alarm_has_tests():
    assert {page.stem for page in (REPOSITORY / "tests" / "alarms").glob("*.yaml")} >= set(NAMES)


@pytest.mark.parametrize("rule", ALARMS, ids=lambda rule: rule["alert"])
def test_alarm_says_how_bad_it_is_what_it_is_and_what_to_do(rule):
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"].endswith(f"/runbooks/{rule['alert']}.md")
    if "consumer" in rule["expr"]:
        assert "{{ $labels.namespace }}/{{ $labels.consumer }}" in rule["annotations"]["summary"]


def test_all_runbooks_are_in_one_place():
    assert len({rule["annotations"]["runbook_url"].removesuffix(f"/{rule['alert']}.md") for rule in ALARMS}) == 1


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_runbook_has_its_name_and_its_five_parts(page):
    assert re.findall(r"(?m)^# (.*)$", page.read_text().split("```")[0]) == [page.stem]
    assert re.findall(r"(?m)^## (.*)$", page.read_text()) == PARTS


def test_index_and_table_have_every_alarm_with_its_severity():
    severities = {rule["alert"]: rule["labels"]["severity"] for rule in ALARMS}
    index = re.findall(r"(?m)^\| \[(\w+)\]\(\1\.md\) \| (\w+) \|", INDEX.read_text())
    assert dict(index) == severities
    table = re.findall(r"(?m)^\| \[(\w+)\]\(runbooks/\1\.md\) \|.*\| (warning|critical) \|", ALARMS_PAGE.read_text())
    assert dict(table) == severities


def test_records_of_the_page_are_those_of_the_rules():
    section = ALARMS_PAGE.read_text().split("## Records")[1]
    assert sorted(RECORD.findall(section)) == sorted(rule["record"] for rule in RULES if "record" in rule)


@pytest.mark.parametrize("page", ALL_PAGES, ids=named)
def test_command_is_of_a_program_that_exists(page):
    for command in commands(page):
        for program, *words in programs(command):
            assert program in PROGRAMS, command
            known = PROGRAMS[program]
            assert known is None or words[0] in known, command


def test_no_program_is_known_that_no_page_uses():
    used = [words for page in ALL_PAGES for command in commands(page) for words in programs(command)]
    assert set(PROGRAMS) == {program for program, *_ in used}
    for name, known in PROGRAMS.items():
        assert known is None or known == {words[0] for program, *words in used if program == name}


@pytest.mark.parametrize("page", ALL_PAGES, ids=named)
def test_kind_in_a_command_is_one_of_ours_or_of_kubernetes(page):
    ours = set()
    for crd in (REPOSITORY / "crds").glob("*.yaml"):
        names = yaml.safe_load(crd.read_text())["spec"]["names"]
        ours |= {names["singular"], names["plural"], *names.get("shortNames", ())}
    theirs = {"deployment", "events", "pod", "pods", "secret"}
    for command in commands(page):
        for program, *words in programs(command):
            if program == "kubectl" and words[0] in ("describe", "get", "patch", "scale") and words[1] != "--raw":
                assert words[1].split("/")[0] in ours | theirs, command


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_runbook_shows_how_to_look(page):
    assert any(command.startswith("kubectl ") for command in commands(page)) or blocks(page, "promql")


@pytest.mark.parametrize("page", ALL_PAGES, ids=named)
def test_every_reference_leads_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text()):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_metric_of_a_rule_exists(rule, metrics):
    assert set(METRIC.findall(rule["expr"])) <= metrics


@pytest.mark.parametrize("page", ALL_PAGES, ids=named)
def test_metric_of_a_page_exists(page, metrics):
    text = "\n".join([*blocks(page, "promql"), *inline_code(page)])
    assert set(METRIC.findall(text)) <= metrics


def test_record_is_made_before_it_is_used():
    made = set()
    for rule in RULES:
        assert set(RECORD.findall(rule["expr"])) <= made, rule.get("alert") or rule["record"]
        made.add(rule.get("record"))


def test_threshold_is_asked_for_by_the_name_of_an_alarm():
    for rule in ALARMS:
        assert set(re.findall(r'alarm="(\w+)"', rule["expr"])) <= set(NAMES)


def test_outcome_of_a_rule_is_one_that_workers_count():
    matchers = [matcher for rule in RULES for matcher in re.findall(r'outcome=~?"([\w|]+)"', rule["expr"])]
    asked = [outcome for matcher in matchers for outcome in matcher.split("|")]
    assert asked
    assert set(asked) <= set(OUTCOMES)


@pytest.mark.parametrize("rule", ALARMS, ids=lambda rule: rule["alert"])
def test_a_restart_of_prometheus_ends_no_alarm(rule):
    """It begins anew with a patience below ten minutes; one of two is over before Alertmanager misses the alarm."""
    assert rule.get("for") in (None, "1m", "2m", "10m", "15m")


@pytest.mark.parametrize("words", calls("redrive"), ids=" ".join)
def test_command_of_ours_takes_what_a_page_tells_to_type(words):
    command = get_command(app)
    rest = list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    known = {flag for parameter in command.params for flag in parameter.opts}
    assert {word for word in rest if word.startswith("-")} <= known
