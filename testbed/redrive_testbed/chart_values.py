"""The values of the chart as people read them: one row for each, made from the comments of `values.yaml`.

A comment stands right above the value that it is about. What has no comment of its own belongs to the value that it
stands in. The table of the chart's README is made from this, and a test compares the two.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from redrive_testbed.files import write_whole
from redrive_testbed.places import REPOSITORY

CHART = REPOSITORY / "charts" / "redrive"
BEGIN, END = "<!-- values: made by `make chart` from values.yaml -->", "<!-- end of values -->"

_KEY = re.compile(r"(?P<indent> *)(?P<name>[A-Za-z]+):(?: |$)")


@dataclass(frozen=True, slots=True)
class Value:
    """One value, or a group of them; `told` is its comment, empty where there is none."""

    path: tuple[str, ...]
    default: Any
    told: str

    @property
    def name(self) -> str:
        return ".".join(self.path)


def read_values(text: str) -> list[Value]:
    """Read every value that has a comment, and every group that holds one, in the order of the file."""
    defaults = yaml.safe_load(text)
    seen = [Value(path, _find(defaults, path), told) for path, told in _comments(text)]
    groups = {value.path[:depth] for value in seen if value.told for depth in range(1, len(value.path))}
    return [value for value in seen if value.told or value.path in groups]


def write_table(values: list[Value]) -> str:
    """Write the table; a group's own default is that of its values."""
    groups = {value.path[:-1] for value in values}
    rows = [
        f"| `{value.name}` | {'' if value.path in groups else f'`{_short(value.default)}`'} | {value.told} |"
        for value in values
        if value.told
    ]
    return "\n".join(["| value | default | what it is |", "|---|---|---|", *rows])


def replace_table(readme: str, table: str) -> str:
    before, rest = readme.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def write_readme(chart: Path = CHART) -> None:
    readme, values = chart / "README.md", read_values((chart / "values.yaml").read_text())
    write_whole(readme, replace_table(readme.read_text(), write_table(values)))


def _comments(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give each key of the file with the comment above it. Two hashes are a heading, and about no key."""
    told: list[str] = []
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = line.strip()
        key = _KEY.match(line)
        if words.startswith("# "):
            told.append(words.removeprefix("# "))
            continue
        if key is not None:
            depth = len(key["indent"])
            path = [*((at, name) for at, name in path if at < depth), (depth, key["name"])]
            yield tuple(name for _, name in path), " ".join(told)
        told = []


def _find(defaults: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - whatever a value is
    for name in path:
        defaults = defaults[name]
    return defaults


def _short(default: Any) -> str:  # noqa: ANN401 - as above
    return json.dumps(default)
