"""The chart as files: its kinds are those of `crds/`; every value is told, bounded and used; its rights are known."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from redrive_operator.crews import COST_ANNOTATION
from redrive_operator.metrics import Metrics
from redrive_operator.names import MANAGED_BY, WORKER_COMPONENT
from redrive_operator.settings import read_settings
from redrive_testbed import chart_crds, chart_values
from redrive_testbed.operator_manifests import read_rules

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "redrive"
TEMPLATES = CHART / "templates"
META = yaml.safe_load((CHART / "Chart.yaml").read_text())
TEXT = (CHART / "values.yaml").read_text()
DEFAULTS = yaml.safe_load(TEXT)
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = chart_values.read_values(TEXT)
OBJECTS = sorted(path for path in TEMPLATES.rglob("*.yaml"))

# Whoever has this chart as a dependency gives these; the chart uses neither.
FOREIGN = {"enabled", "global"}


def leaves(values, path=()):
    """List every value that is not a group of others; an empty map or a list is one value."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def resolve(schema):
    while "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def find(path):
    """Find the schema of a value; None where it has none."""
    schema = SCHEMA
    for name in path:
        schema = resolve(schema)
        found = schema.get("properties", {}).get(name)
        if found is None:
            found = next(
                (inner for key, inner in schema.get("patternProperties", {}).items() if re.search(key, name)), None
            )
        if found is None and isinstance(schema.get("additionalProperties"), dict):
            found = schema["additionalProperties"]
        if found is None:
            return None
        schema = found
    return resolve(schema)


def groups(schema, path=()):
    """List every group of values that the schema knows by name."""
    schema = resolve(schema)
    if "properties" in schema:
        yield path, schema
        for name, inner in schema["properties"].items():
            yield from groups(inner, (*path, name))


def rights(rules):
    return {
        (group, resource, verb, tuple(rule.get("resourceNames", ())))
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


# The kinds


@pytest.mark.parametrize("source", sorted((ROOT / "crds").glob("*.yaml")), ids=lambda path: path.stem)
def test_kind_of_the_chart_is_the_one_of_the_repository(source):
    template = TEMPLATES / "crds" / source.name
    assert template.read_text() == chart_crds.build_template(source), "run `make chart`"


def test_chart_has_no_kind_that_the_repository_has_not():
    assert {path.name for path in (TEMPLATES / "crds").iterdir()} == {path.name for path in (ROOT / "crds").iterdir()}


def test_what_helm_would_run_is_escaped():
    assert chart_crds.escape("rule: '{{x}}' == {a: {b: c}}") == "rule: '{{ \"{{\" }}x}}' == {a: {b: c}}"


# The values


def test_every_value_is_told_in_a_sentence():
    told = {value.path for value in VALUES if value.told}
    silent = [".".join(path) for path in leaves(DEFAULTS) if not any(path[:n] in told for n in range(1, len(path) + 1))]
    assert silent == []
    assert [value.name for value in VALUES if value.told and not re.search(r"^[A-Z].*[.\]]$", value.told)] == []


def test_table_of_the_readme_is_made_from_the_values():
    readme = (CHART / "README.md").read_text()
    assert chart_values.replace_table(readme, chart_values.write_table(VALUES)) == readme, "run `make chart`"


def test_schema_knows_every_value():
    assert [".".join(path) for path in leaves(DEFAULTS) if find(path) is None] == []


def test_schema_knows_no_value_that_is_not_there():
    """What is below a value that is told as a whole is Kubernetes' own, such as a toleration."""
    ours = {value.path[:-1] for value in VALUES}
    known = {(*path, name) for path, schema in groups(SCHEMA) if path in ours for name in schema["properties"]}
    assert {path for path in known if path[0] not in FOREIGN} == {value.path for value in VALUES} - {("global",)}


def test_schema_lets_no_unknown_name_pass():
    assert [".".join(path) for path, schema in groups(SCHEMA) if schema.get("additionalProperties") is not False] == []


def test_every_value_is_used_by_a_template():
    text = "\n".join(path.read_text() for path in TEMPLATES.rglob("*") if path.is_file())
    unused = [".".join(path) for path in leaves(DEFAULTS) if path[0] not in FOREIGN and not _is_used(path, text)]
    assert unused == []


def _is_used(path, text):
    """Say whether a template names a value, or a group that it is in and that is handed on whole."""
    whole = {("resources",), ("image",), ("consumerImage",), ("monitoring", "dashboard", "labels")}
    names = [path, *(path[:n] for n in range(1, len(path)) if path[:n] in whole)]
    return any(f".Values.{'.'.join(name)}" in text for name in names)


# The operator


def test_defaults_are_the_operators_own():
    settings = read_settings([], {})
    said = DEFAULTS["interval"], DEFAULTS["threads"], DEFAULTS["logLevel"], tuple(DEFAULTS["watchNamespaces"])
    assert said == (settings.interval, settings.threads, settings.log_level, settings.watch_namespaces)


def test_every_setting_of_the_operator_can_be_given():
    deployment = (TEMPLATES / "deployment.yaml").read_text()
    given = set(re.findall(r"name: REDRIVE_(\w+)", deployment))
    # The port is the chart's, and a kubeconfig is for an operator outside of a cluster.
    assert given == {name.upper() for name in read_settings([], {}).__slots__} - {"PORT", "KUBECONFIG"}


@pytest.mark.parametrize(
    ("name", "value"), [("interval", 61), ("interval", 0.5), ("threads", 65), ("threads", 0)], ids=str
)
def test_schema_bounds_a_number_as_the_operator_does(name, value):
    schema = SCHEMA["properties"][name]
    assert not schema["minimum"] <= value <= schema["maximum"]


def test_version_is_the_projects():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (META["version"], META["appVersion"]) == (project["version"], project["version"])


# The rights


def test_role_of_a_namespace_has_nothing_of_the_whole_cluster():
    kinds = [yaml.safe_load(path.read_text())["spec"] for path in (ROOT / "crds").glob("*.yaml")]
    of_the_cluster = {kind["names"]["plural"] for kind in kinds if kind["scope"] == "Cluster"} | {"namespaces", "nodes"}
    assert of_the_cluster.isdisjoint(resource.split("/")[0] for _, resource, *_ in rights(read_rules("redrive.rules")))


def test_no_right_is_a_wildcard_and_secrets_are_never_listed():
    every = rights([*read_rules("redrive.rules"), *read_rules("redrive.clusterRules")])
    assert not [right for right in every if "*" in right]
    assert {verb for _, resource, verb, _ in every if resource == "secrets"} == {"get", "create", "patch"}
    never = {"update", "deletecollection", "impersonate", "bind", "escalate"}
    assert never.isdisjoint(verb for _, _, verb, _ in every)


def test_pod_policy_allows_the_annotation_that_the_operator_sets():
    assert f"\"'{COST_ANNOTATION}'\"" in (TEMPLATES / "validatingadmissionpolicy.yaml").read_text()


def test_workers_are_chosen_by_the_labels_that_the_operator_gives_them():
    helpers = (TEMPLATES / "_helpers.tpl").read_text()
    assert MANAGED_BY.replace("=", ": ") in helpers
    assert f"app.kubernetes.io/component: {WORKER_COMPONENT}" in helpers


def test_no_worker_can_say_what_is_for_the_operator_or_the_rules_to_say():
    metrics = Metrics()
    metrics.watch(lambda: 0.0, lambda: 0.0, lambda: (1, 0))
    (dropped,) = re.findall(r"regex: ('.*:.*')", (TEMPLATES / "podmonitor.yaml").read_text())
    assert dropped in (ROOT / "docs" / "alarms.md").read_text()
    names = re.findall(r"^# TYPE (\S+) ", metrics.expose().body.decode(), re.MULTILINE)
    recorded = re.findall(r"record: (\S+)", (CHART / "alarms" / "rules.yaml").read_text())
    pattern = re.compile(dropped.strip("'"))
    assert [name for name in (*names, *recorded) if not pattern.fullmatch(name)] == []
    assert not pattern.fullmatch("redrive_messages_total")


# The templates


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.stem)
def test_template_has_one_object(path):
    assert len(re.findall(r"^kind: ", path.read_text(), re.MULTILINE)) == 1


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.stem)
def test_template_comes_out_the_same_wherever_it_is_rendered(path):
    """Nothing is asked of the cluster: GitOps renders where there is none."""
    actions = "\n".join(re.findall(r"{{(?!- /\*).*?}}", path.read_text()))
    assert not re.search(r"\.Capabilities|\blookup\b|\brand\w+|\bnow\b", actions)


def test_chart_carries_alarms_and_dashboard():
    assert yaml.safe_load((CHART / "alarms" / "rules.yaml").read_text())["groups"]
    assert [json.loads(path.read_text())["title"] for path in sorted((CHART / "dashboards").glob("*.json"))]


def test_alarms_point_to_runbooks_where_the_chart_says_that_they_are():
    alarms = yaml.safe_load((CHART / "alarms" / "rules.yaml").read_text())
    rules = [rule for group in alarms["groups"] for rule in group["rules"] if "alert" in rule]
    pages = {f"{DEFAULTS['monitoring']['rules']['runbookUrl']}/{rule['alert']}.md" for rule in rules}
    assert {rule["annotations"]["runbook_url"] for rule in rules} == pages
