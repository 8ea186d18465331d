"""The alarms, as Prometheus itself reads them: the rules are sound, their tests hold, and no part of them is idle.

A rule of which some part can be taken away without any test noticing is a rule that was not tested: so each part is.
"""

import copy
import re
import shutil

import pytest
import yaml
from runbooks import ALARMS_PAGE, blocks, expressions

from redrive_testbed import prometheus
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.shell import run, succeeds

RULES = REPOSITORY / "charts" / "redrive" / "alarms" / "rules.yaml"
TESTS = REPOSITORY / "tests" / "alarms"

ALL = yaml.safe_load(RULES.read_text())
(GROUP,) = ALL["groups"]
ALARMS = [number for number, rule in enumerate(GROUP["rules"]) if "alert" in rule]
BRIDGES = [number for number, rule in enumerate(GROUP["rules"]) if rule.get("record", "").endswith(":last5m")]

# The comparison on which an alarm turns. A large number can be made smaller by a hair; else it is the sign.
COMPARISON = re.compile(r"(?<![<>=!])(>|==) (\d\d+)?")


def name(number):
    rule = GROUP["rules"][number]
    cause = rule.get("labels", {}).get("cause", "")
    return rule.get("record") or f"{rule['alert']}{cause and '-'}{cause}"


def each(numbers):
    return pytest.mark.parametrize("number", [pytest.param(number, id=name(number)) for number in numbers])


@pytest.fixture(scope="module")
def programs():
    """Give promtool; nobody is spared these tests for want of it."""
    return prometheus.prepare(Places.from_environment())


@pytest.fixture
def holds(programs, tmp_path):
    """Give a function that changes one rule of a copy, and says whether the tests still hold, all or those named."""

    def run_tests(number, change, names="*.yaml"):
        rules = copy.deepcopy(ALL)
        change(rules["groups"][0]["rules"][number])
        assert rules != ALL
        there = tmp_path / RULES.relative_to(REPOSITORY)
        there.parent.mkdir(parents=True)
        there.write_text(yaml.safe_dump(rules))
        run(programs.promtool, "check", "rules", there)
        tests = shutil.copytree(TESTS, tmp_path / TESTS.relative_to(REPOSITORY))
        return succeeds(programs.promtool, "test", "rules", *sorted(tests.glob(names)))

    return run_tests


def soften(rule):
    def milder(found):
        return f"> {int(found[2]) * 0.98} " if found[2] else ">= "

    rule["expr"] = COMPARISON.sub(milder, rule["expr"], count=1)


def forget_threshold(rule):
    """Have the comparison say 0 or 1, so that there is always something to be alarmed about."""
    rule["expr"] = COMPARISON.sub(lambda found: f"{found[1]} bool {found[2] or ''}", rule["expr"], count=1)


def file_of(number):
    return f"{GROUP['rules'][number]['alert']}.yaml"


def test_rules_are_sound_and_no_two_are_alike(programs):
    said = run(programs.promtool, "check", "rules", "--lint-fatal", RULES)
    assert f"SUCCESS: {len(GROUP['rules'])} rules found" in said


def test_every_test_of_the_alarms_holds(programs):
    files = sorted(TESTS.glob("*.yaml"))
    assert run(programs.promtool, "test", "rules", *files).count("SUCCESS") == len(files)


def test_expressions_of_the_pages_can_be_read(programs, tmp_path):
    rules = [{"record": f"page:expression:{number}", "expr": expr} for number, expr in enumerate(expressions())]
    file = tmp_path / "pages.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "pages", "rules": rules}]}))
    assert f"SUCCESS: {len(rules)} rules found" in run(programs.promtool, "check", "rules", file)


def test_alertmanager_takes_what_the_page_tells_people_to_write(programs, tmp_path):
    (block,) = [block for block in blocks(ALARMS_PAGE, "yaml") if "inhibit_rules" in block]
    config = yaml.safe_load(block)
    config = {**config, "route": {**config["route"], "receiver": "somebody"}, "receivers": [{"name": "somebody"}]}
    file = tmp_path / "alertmanager.yaml"
    file.write_text(yaml.safe_dump(config))
    assert f"{len(config['inhibit_rules'])} inhibit rules" in run(programs.amtool, "check-config", file)


@each(ALARMS)
def test_alarm_without_its_threshold_fails_its_tests(holds, number):
    assert not holds(number, forget_threshold, file_of(number))


@each(ALARMS)
def test_alarm_with_a_threshold_milder_by_a_hair_fails_its_tests(holds, number):
    assert not holds(number, soften, file_of(number))


@each(number for number in ALARMS if "for" in GROUP["rules"][number])
def test_alarm_without_patience_fails_its_tests(holds, number):
    assert not holds(number, lambda rule: rule.pop("for"), file_of(number))


@each(number for number in ALARMS if "offset" in GROUP["rules"][number]["expr"])
def test_alarm_that_was_not_so_before_fails_its_tests(holds, number):
    def forget(rule):
        rule["expr"] = rule["expr"].split(" and ")[0]

    assert not holds(number, forget, file_of(number))


@each(ALARMS)
def test_alarm_that_is_not_kept_fails_its_tests(holds, number):
    assert not holds(number, lambda rule: rule.pop("keep_firing_for"), file_of(number))


@each(BRIDGES)
def test_gap_that_is_not_bridged_fails_some_test(holds, number):
    def cut(rule):
        rule["expr"] = rule["expr"].split(" or ")[0]

    assert not holds(number, cut)
