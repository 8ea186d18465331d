"""A path into a JSON body, and what may be asked of what is there: `$.order.items[0].sku = "x"`.

A small part of JSONPath: keys, `['any key']`, `[0]` and `[-1]`, `[*]` for each. Without an operator it asks whether
there is anything; `=`, `!=`, `<`, `<=`, `>`, `>=` compare, and `~` searches for a regular expression. Of several values
that a path finds, one that fits is enough. What is compared with is JSON, or else a plain text.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Step = str | int | None  # a key, an index, or each
Test = Callable[[object], bool]

_STEP = re.compile(
    r"""\.?(?P<key>[^\s.\[\]=<>!~'"$*]+)|\.?(?P<all>\*)|\[(?:(?P<index>-?\d{1,9})|(?P<each>\*)|'(?P<one>[^']*)'|"(?P<two>[^"]*)")\]"""
)
_OPERATOR = re.compile(r"\s*(?P<name>!=|<=|>=|=~|==|=|<|>|~)\s*(?P<value>.*)", re.DOTALL)
_ORDERED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class BadCondition(ValueError):
    """Why a condition cannot be read, as a sentence."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Something asked of a JSON body. An empty path is the body itself."""

    steps: tuple[Step, ...]
    test: Test

    def holds(self, document: object) -> bool:
        return any(map(self.test, find(document, self.steps)))


def parse_condition(text: str) -> Condition:
    """Read a path with or without a comparison; BadCondition says what is wrong."""
    steps, rest = _parse_path(text.strip())
    if not rest.strip():
        return Condition(steps, lambda _value: True)
    found = _OPERATOR.fullmatch(rest)
    if found is None:
        raise BadCondition(f"{text!r} makes no sense from {rest.strip()!r} on: write PATH, or PATH=VALUE")
    return Condition(steps, _make_test(found["name"], found["value"].strip()))


def find(document: object, steps: tuple[Step, ...]) -> Iterator[object]:
    """Find every value at the end of a path."""
    values = iter([document])
    for step in steps:
        values = _follow(values, step)
    return values


def _follow(values: Iterator[object], step: Step) -> Iterator[object]:
    for value in values:
        match step, value:
            case None, dict():
                yield from value.values()
            case None, list():
                yield from value
            case str(), dict() if step in value:
                yield value[step]
            case int(), list() if -len(value) <= step < len(value):
                yield value[step]


def _parse_path(text: str) -> tuple[tuple[Step, ...], str]:
    steps: list[Step] = []
    position = 1 if text.startswith("$") else 0
    while step := _STEP.match(text, position):
        position = step.end()
        steps.append(_read_step(step))
    if position == 0:
        raise BadCondition(f"{text!r} does not begin with a path: write one such as $.order.id")
    return tuple(steps), text[position:]


def _read_step(found: re.Match[str]) -> Step:
    if found["index"] is not None:
        return int(found["index"])
    if found["each"] is not None or found["all"] is not None:
        return None
    return next(text for text in (found["key"], found["one"], found["two"]) if text is not None)


def _make_test(name: str, value: str) -> Test:
    if name in ("~", "=~"):
        return _searches(value)
    wanted = _read_value(value)
    if name in _ORDERED:
        return _compares(_ORDERED[name], wanted, value)
    equal = _equals(wanted, value)
    return (lambda found: not equal(found)) if name == "!=" else equal


def _searches(pattern: str) -> Test:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise BadCondition(f"{pattern!r} is no regular expression: {error}") from error
    return lambda found: compiled.search(found if isinstance(found, str) else json.dumps(found)) is not None


def _read_value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _equals(wanted: object, text: str) -> Test:
    """A text is equal to what was typed, with or without quotes; true is no 1."""
    return lambda found: found == text if isinstance(found, str) and wanted != found else _same(found, wanted)


def _same(found: object, wanted: object) -> bool:
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)


def _compares(compare: Callable[[Any, Any], bool], wanted: object, text: str) -> Test:
    def test(found: object) -> bool:
        if _is_number(found) and _is_number(wanted):
            return compare(found, wanted)
        return isinstance(found, str) and compare(found, wanted if isinstance(wanted, str) else text)

    return test


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
