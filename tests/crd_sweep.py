"""Values just inside and just outside of every rule of the CRDs, each in an object that is good otherwise.

They are made from the schemas alone, so a field that is added is swept without anybody thinking of it. What a value
should come to is not said here: the API server and the parser are to agree on it, whatever it is. Half of a surrogate
pair is missing on purpose, since the API server mends it before anybody sees it.
"""

import json
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rearranging import put

ROOT = Path(__file__).parents[1]
MADE_UP = "made-up"
WHOLE_FLOAT = "a good number with a decimal point"

# Of each type one value of every other.
_OF_EVERY_TYPE: tuple[Any, ...] = ("7", 7, 1.5, True, [], {}, ["7"], {"a": "7"})

_DURATIONS = (
    "", "0", "5", "s", "0s", "0ms", "0h", "1ms", "99ms", "100ms", "999ms", "1s", "1m", "1h", "10m", "10m1ms", "24h",
    "24h1ms", "23h60m", "36h", "36h1ms", "35h59m60s", "87600h", "87600h1ms", "99999ms", "99999s", "99999m", "99999h",
    "100000h", "00001h", "1h1m1s1ms", "1h1h1h1h", "1h1m1s1ms1ms", "1ms1s1m1h", "1.5s", ".5s", "-1s", "+1s", "1d", "1us",
    "1S", "1H", "1 s", " 1s", "1s ", "1s\n", "1h,1m", "1h 1m", "1mss", "1sm", "infinity", "forever", "Forever",
    "FOREVER", "Forever ", "\u0661s", "\uff11s",
)  # fmt: skip
_TEXTS = (
    "", " ", "a", "A", "0", "-", ".", "*", "/", "//", "#", "a b", "a\nb", "a\n", "\na", "a\t", "\x00", "\x7f", "\x85",
    "\xa0", "\u2028", "\ufeff", "\u00fc", "\u0130", "\U0001f407", "a-", "-a", "a.", ".a", "a..b", "a-.b", "a/b", "/a/b",
    "a:b", "a:b:c", "a.b:c", "a.b:c.d", ":", "*a", "a*", "a**", "a*b", "redrive", "redrive.", "redrive.a",
    "redrive.dev/a", "amq.", "amq.a", "Redrive.a", "amq.rabbitmq.trace", "http://a", "https://a:1/b", "http://a?b",
    "http://a b", "http://u:p@a", "ftp://a/bcd", "HTTP://a", "http://[::1]", "http://", "1.0", "1", "0.999", "100",
    "100.0", "100.001", "1.", ".5", "1e1", "1_0", "+1", "0x1", "001", "1.0000", "nan", "inf", "\u0661", "0a1b", "0A1B",
    "300", "299", "599", "600", "5xx", "2xx", "6xx", "5XX", "429\n", "null", "true",
)  # fmt: skip
_NUMBERS = (
    *(0, -1, 255, 256, 65535, 65536, 9464),
    *(2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**30),
)
_KEYS = (
    "", "a", "A", "-", "a b", "a\n", "\u00fc", "a/b", "a/b/c", "/a", "a/", "A.b/c", "a..b/c", "redrive.dev/a",
    "redrive.dev", "sub.redrive.dev/a", "x-redrive-a", "X-Redrive-a", "a" * 63, "a" * 64, "a" * 128, "a" * 129,
    "\u00fc" * 127, "\u00fc" * 128, f"{'a' * 253}/b", f"{'a' * 254}/b", f"{'a.' * 126}a/b", f"{'a.' * 127}a/b",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One object, and what in it is on the edge."""

    field: str
    what: str
    body: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.body['kind']} {self.field}: {self.what}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a good object has a field."""

    body: dict[str, Any]
    path: tuple[Any, ...]
    value: Any


def good_bodies() -> list[dict[str, Any]]:
    """Give the good objects of the tables, and the examples."""
    table = yaml.safe_load((ROOT / "tests" / "objects" / "good.yaml").read_text())["good"]
    examples = [
        body
        for path in sorted((ROOT / "examples").rglob("*.yaml"))
        for body in yaml.safe_load_all(path.read_text())
        if body["apiVersion"].startswith("redrive.dev/")
    ]
    return [*(case["object"] for case in table), *examples]


def read_schemas() -> dict[str, dict[str, Any]]:
    """Give the schema of each kind's spec."""
    kinds = [yaml.safe_load(path.read_text())["spec"] for path in sorted((ROOT / "crds").glob("*.yaml"))]
    return {
        kind["names"]["kind"]: kind["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] for kind in kinds
    }


def swept_fields(schema: dict[str, Any]) -> list[str]:
    """Name every field of a kind's spec: with "[]" the items of a list, with "{}" the values of a map."""
    return [field for field, _ in _fields(schema, "spec")]


def sweep() -> list[Case]:
    """Make the objects of every field of every kind."""
    bodies = good_bodies()
    cases = []
    for kind, schema in read_schemas().items():
        places: dict[str, _Place] = {}
        for body in bodies:
            if body["kind"] == kind:
                _find_places(schema, "spec", _Place(body, ("spec",), body["spec"]), places)
        for field, inner in _fields(schema, "spec"):
            cases += _sweep_field(field, inner, places)
        cases += _sweep_names(kind, next(body for body in bodies if body["kind"] == kind))
    return cases


def _sweep_field(field: str, schema: dict[str, Any], places: dict[str, _Place]) -> Iterator[Case]:
    place = places.get(field)
    if place is None:  # no good object has it: its holder gets it
        holder, _, name = field.rpartition(".")
        above = places[holder]
        body = put(above.body, above.path, {**above.value, name: None})
        place = _Place(body, (*above.path, name), None)
    known = set()
    for what, value in _edges(schema, place.value):
        if (written := json.dumps(value)) not in known:
            known.add(written)
            yield Case(field, what, put(place.body, place.path, value))


def _sweep_names(kind: str, good: dict[str, Any]) -> Iterator[Case]:
    for length in (178, 179, 180, 181, 253):
        for queue in ({"name": "given"}, {}):
            body = {**good, "metadata": {"name": "a" * length}}
            if kind == "RetryingConsumer":
                body["spec"] = {**good["spec"], "queue": queue}
            yield Case("metadata.name", f"{length} characters, queue {queue}", body)


def _fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _fields(inner, f"{path}.{name}")
    for word, sign in (("items", "[]"), ("additionalProperties", "{}")):
        if word in schema:
            yield from _fields(schema[word], f"{path}{sign}")


def _find_places(schema: dict[str, Any], field: str, place: _Place, places: dict[str, _Place]) -> None:
    """Note the first place where a field has a value, and in the same way what is below it."""
    if place.value is None:
        return
    places.setdefault(field, place)
    children: list[tuple[dict[str, Any], str, Any]] = []
    if "properties" in schema:
        known = schema["properties"]
        children += [(known[name], f"{field}.{name}", name) for name in place.value if name in known]
    if "items" in schema and place.value:
        children.append((schema["items"], f"{field}[]", 0))
    if "additionalProperties" in schema and place.value:
        children.append((schema["additionalProperties"], f"{field}{{}}", next(iter(place.value))))
    for inner, name, key in children:
        _find_places(inner, name, _Place(place.body, (*place.path, key), place.value[key]), places)


def _edges(schema: dict[str, Any], good: Any) -> Iterator[tuple[str, Any]]:
    """Give values in and beside what a schema allows, each with what it is; `good` is one that it allows."""
    yield "as it is", good
    yield "null", None
    for value in _OF_EVERY_TYPE:
        yield f"the {type(value).__name__} {value}", value
    if schema.get("x-kubernetes-int-or-string"):
        yield from _numbers(_NUMBERS)
        yield from _strings(schema, "a")
    match schema.get("type"):
        case "string":
            yield from _strings(schema, good or "a")
        case "integer":
            yield from _integers(schema)
        case "boolean":
            yield from ((f"the text {text}", text) for text in ("true", "false", "yes", ""))
            yield "false", False
        case "array":
            yield from _lists(schema, good)
        case "object":
            yield from _objects(schema, good)


def _strings(schema: dict[str, Any], good: str) -> Iterator[tuple[str, Any]]:
    for value in schema.get("enum", ()):
        yield from ((f"the word {word!r}", word) for word in (value, value.lower(), value.upper(), f"{value} "))
    pattern = schema.get("pattern", "")
    texts = _DURATIONS if "(h|m|s|ms)" in pattern else _TEXTS
    yield from ((f"the text {text!r}", text) for text in texts)
    if pattern and texts is _TEXTS:  # whatever its classes of characters are
        yield from ((f"the good text and {letter!r}", f"{good}{letter}") for letter in string.printable)
    for text in (
        f"{good} ",
        f" {good}",
        f"{good}\n",
        f"{good}\x00",
        f"{good}\u00fc",
        f"\u00fc{good}",
        good.upper(),
        good * 2,
    ):
        yield f"the good text as {text[:40]!r}", text
    for bound in (schema.get("minLength", 0), schema.get("maxLength", 0)):
        for length in (bound - 1, bound, bound + 1):
            yield from ((f"{length} times {letter!r}", letter * length) for letter in ("a", "\u00fc") if length >= 0)
            if length > len(good):
                yield f"the good text, {length} long", good + good[-1] * (length - len(good))


def _integers(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    edges = [edge + step for edge in (schema["minimum"], schema.get("maximum", 2**31)) for step in (-1, 0, 1)]
    yield from _numbers((*edges, *_NUMBERS))
    yield "a good number in quotes", str(schema["minimum"])
    yield "a good number and a half", schema["minimum"] + 0.5
    yield WHOLE_FLOAT, float(schema["minimum"])


def _numbers(numbers: tuple[int, ...] | list[int]) -> Iterator[tuple[str, Any]]:
    yield from ((f"the number {number}", number) for number in dict.fromkeys(numbers))


def _lists(schema: dict[str, Any], good: list[Any] | None) -> Iterator[tuple[str, Any]]:
    if not good:
        return
    item = good[0]
    yield "none", []
    yield "one", [item]
    yield "one twice", [item, item]
    yield "one and null", [item, None]
    yield "one after null", [None, item]
    yield "the list in a list", [good]
    for bound in (schema.get("minItems", 0), schema["maxItems"]):
        for length in (bound - 1, bound, bound + 1):
            if length > 0:
                yield f"{length} different ones", [_vary(item, number) for number in range(length)]


def _vary(item: Any, number: int) -> Any:
    """Make another of the kind of an item: as good as it is, where that can be."""
    match item:
        case int():
            return 1 + number
        case str() if re.fullmatch(r"[345]([0-9]{2}|xx)", item):
            return str(300 + number)
        case str() if re.fullmatch(r"[0-9]+(ms|s|m|h)", item):
            return f"{1 + number}ms"
        case str():
            return f"{item if item != '*' else 'a'}{number}"
        case _:
            return item


def _objects(schema: dict[str, Any], good: dict[str, Any] | None) -> Iterator[tuple[str, Any]]:
    good = good or {}
    yield "with a field that there is not", {**good, MADE_UP: 1}
    yield "with a field that there is not, which is null", {**good, MADE_UP: None}
    for name in good:
        yield f"without {name}", {key: value for key, value in good.items() if key != name}
        yield f"with null for {name}", {**good, name: None}
        yield f"with {name} in upper case", {**good, name.upper(): good[name]}
    for name, inner in schema.get("properties", {}).items():
        if name not in good:
            yield f"with an empty {name}", {**good, name: {} if inner["type"] == "object" else []}
    if "additionalProperties" in schema:
        value = next((value for value in good.values() if value is not None), "a")
        yield from ((f"with the key {key[:40]!r} of {len(key)}", {**good, key: value}) for key in _KEYS)
        most = schema["maxProperties"]
        for count in (most - 1, most, most + 1):
            yield f"with {count} keys", {f"k{number}": value for number in range(count)}
        yield f"with {most} keys and one that is null", {**{f"k{number}": value for number in range(most)}, "l": None}
