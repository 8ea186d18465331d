"""The CRDs as files: every field described, bounded, known to the parser and to the docs, and its mutability said."""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CRDS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))}
GOOD = yaml.safe_load((ROOT / "tests" / "objects" / "good.yaml").read_text())["good"]
BODIES = [
    *(case["object"] for case in GOOD),
    *(
        body
        for path in sorted((ROOT / "examples").rglob("*.yaml"))
        for body in yaml.safe_load_all(path.read_text())
        if body["apiVersion"].startswith("redrive.dev/")
    ),
]
KINDS = {"retryingconsumer": "RetryingConsumer", "brokerconnection": "BrokerConnection", "redrive": "Redrive"}

# Structural schemas know these keys; anything else is a slip, such as a comma in an unquoted description.
KEYWORDS = {
    "additionalProperties",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}


def version(crd):
    (only,) = crd["spec"]["versions"]
    return only


def fields(schema, path, above=""):
    """List every field below a schema: its path, its schema, and the descriptions of all that hold it."""
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        told = f"{above} {field.get('description', '')}"
        yield here, field, told
        yield from fields(field, here, told)
        yield from fields(field.get("items", {}), f"{here}[]", told)


def part(crd, name):
    return version(crd)["schema"]["openAPIV3Schema"]["properties"][name]


SPEC = [(kind, *field) for kind, crd in CRDS.items() for field in fields(part(crd, "spec"), "spec")]
STATUS = [(kind, *field) for kind, crd in CRDS.items() for field in fields(part(crd, "status"), "status")]
EVERY = [*SPEC, *STATUS]


def test_every_field_is_described_with_a_sentence():
    assert [path for _, path, schema, _ in EVERY if not re.search(r"(?s)^[A-Z].*\.$", schema["description"])] == []


def test_no_field_has_a_stray_keyword():
    assert [path for _, path, schema, _ in EVERY if {*schema, *schema.get("items", {})} - KEYWORDS] == []


def test_every_field_or_what_holds_it_says_whether_it_may_change():
    told_at_the_top = {kind: part(crd, "spec")["description"] for kind, crd in CRDS.items()}
    silent = [
        path
        for kind, path, schema, told in SPEC
        if "properties" not in schema
        and not re.search(r"(may|cannot) be changed", f"{told_at_the_top[kind]} {told}", re.IGNORECASE)
        and not re.search(r"must be left out", told, re.IGNORECASE)
    ]
    assert silent == []


def test_every_field_is_bounded():
    assert [path for _, path, schema, _ in EVERY if not all(bounded(one) for one in (schema, *inner(schema)))] == []


def inner(schema):
    return [schema[name] for name in ("items", "additionalProperties") if name in schema]


def bounded(schema):
    match schema.get("type"):
        case "string":
            return "maxLength" in schema or "enum" in schema or schema.get("format") == "date-time"
        case "integer":
            return "minimum" in schema
        case "array":
            return "maxItems" in schema
        case "object" if "additionalProperties" in schema:
            return "maxProperties" in schema
        case _:
            return True


def test_every_field_is_in_a_good_object_so_that_the_parser_is_known_to_know_it():
    refused = ("restartPolicy", "terminationGracePeriodSeconds")
    missing = [
        f"{kind} {path}"
        for kind, path, _, _ in SPEC
        if not path.endswith(refused)
        and not any(holds(body, path.split(".")) for body in BODIES if body["kind"] == KINDS[kind])
    ]
    assert missing == []


def holds(value, names):
    if not names:
        return True
    name = names[0].removesuffix("[]")
    if not isinstance(value, dict) or name not in value:
        return False
    inner = value[name] if names[0].endswith("[]") else [value[name]]
    return any(holds(one, names[1:]) for one in inner)


def reference():
    """Read the tables of the reference: kind → field → default."""
    tables, kind = {}, None
    for line in (ROOT / "docs" / "reference.md").read_text().splitlines():
        if line.startswith("## "):
            kind = line.removeprefix("## ").lower()
        elif line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            tables.setdefault(kind, {})[cells[0].strip("`")] = cells[2]
    return tables


REFERENCE = reference()


def test_the_reference_has_every_field_and_no_other():
    known = {(kind, path) for kind, path, _, _ in EVERY}
    assert {(kind, path) for kind, table in REFERENCE.items() for path in table} == known


def test_defaults_in_the_reference_are_those_of_the_crds():
    wrong = [
        (path, REFERENCE[kind][path])
        for kind, path, schema, _ in SPEC
        if "default" in schema and schema["type"] != "object"
        if REFERENCE[kind][path] not in {f"`{json.dumps(schema['default'])}`", f"`{schema['default']}`"}
    ]
    assert wrong == []


@pytest.mark.parametrize("crd", CRDS.values(), ids=CRDS)
def test_no_kind_has_a_category(crd):
    assert "categories" not in crd["spec"]["names"]


@pytest.mark.parametrize(
    "path",
    ["spec.retry.budget", "spec.breaker", "spec.limits", "spec.idempotency", "spec.security", "spec.broker.fallback"],
)
def test_names_reserved_for_later_are_free(path):
    assert path not in {known for kind, known, _, _ in SPEC if kind == "retryingconsumer"}


def test_the_scale_subresource_reads_and_writes_where_the_operator_does():
    assert version(CRDS["retryingconsumer"])["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
