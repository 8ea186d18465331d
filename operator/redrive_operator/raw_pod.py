"""Raw parts of a pod, as a person wrote them: to plain JSON, and to items that are known by a key.

Nothing is known of them beforehand: a list may be an object, a name a number. What cannot be read raises SpecError.
What is merely no field of a pod is left in, for the API server to judge: it knows its own version best.
"""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from redrive.errors import SpecError
from redrive.spec.fields import mapping, show, string

# The API server's numbers have 64 bits.
_LARGEST = 2**63 - 1

# Keys that are paths in a container, where "/tmp", "/tmp/" and "tmp" are the same place.
_PATHS = ("mountPath", "devicePath")


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a list, and where it is. `key` is what it is known by, such as a container's name."""

    path: str
    key: str
    raw: Mapping[str, Any]


def tidy(raw: object, path: str) -> Any:  # noqa: ANN401 - JSON, whatever it holds
    """Copy a raw value as JSON without nulls: in an object, null means "left out"."""
    match raw:
        case Mapping():
            return {string(key, path): tidy(value, f"{path}.{key}") for key, value in raw.items() if value is not None}
        case list() | tuple():
            return [tidy(item, f"{path}[{index}]") for index, item in enumerate(raw)]
        case str():
            return string(raw, path)
        case int() if abs(raw) <= _LARGEST:
            return raw
        case float() if isfinite(raw):
            return raw
        case _:
            raise SpecError(path, f"must be text, a number, true or false, a list or an object, got {show(raw)}")


def object_in(holder: Mapping[str, Any], field: str, path: str) -> Mapping[str, Any]:
    """Read an object that is empty when it is left out."""
    return mapping(holder.get(field, {}), f"{path}.{field}")


def objects_in(holder: Mapping[str, Any], field: str, path: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Read a list of objects, each with its path; it is empty when it is left out."""
    several = list_of(holder.get(field, []), f"{path}.{field}")
    paths = [f"{path}.{field}[{index}]" for index in range(len(several))]
    return [(here, mapping(raw, here)) for here, raw in zip(paths, several, strict=True)]


def items_in(holder: Mapping[str, Any], field: str, path: str, *, key: str = "name") -> list[Item]:
    """Read a list of objects that are known by a key, each by its own: the API server takes no key twice."""
    items: dict[str, Item] = {}
    for here, raw in objects_in(holder, field, path):
        if key not in raw:
            raise SpecError(f"{here}.{key}", "is required")
        value = normal_key(key, string(raw[key], f"{here}.{key}"))
        if value in items:
            raise SpecError(f"{here}.{key}", f"is {show(value)}, as in {items[value].path}: leave one of them out")
        items[value] = Item(here, value, raw)
    return list(items.values())


def normal_key(key: str, value: str) -> str:
    """Write a key in one way. Kubernetes takes a path without a leading slash for one with it."""
    return posixpath.normpath("/" + value.lstrip("/")) if key in _PATHS else value


def list_of(raw: object, path: str) -> list[Any]:
    if not isinstance(raw, list):
        raise SpecError(path, f"must be a list, got {show(raw)}")
    return raw
