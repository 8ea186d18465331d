"""Grafana's own schema of dashboards, as its Python SDK carries it: which keys there are, and what they may hold.

The SDK's classes are generated from the schemas of Grafana, its panels and its Prometheus queries. They read anything
without complaint and forget what they do not know, so two things are looked at here: that nothing was forgotten, and
that each value is of the kind that its annotation says.
"""

import enum
import json
import types
import typing
import warnings

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder

with warnings.catch_warnings():
    # It would rather have the newer form of a dashboard, which Grafana 11 and the sidecars' files do not know.
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.models import dashboard as models

plugins.register_default_plugins()


def complaints(document):
    """List what is wrong with a dashboard, as `path: what`."""
    return list(_check(document, models.Dashboard, "dashboard"))


def _check(value, hint, path):
    if hint in (object, typing.Any):
        hint = type(value)
        if not hasattr(hint, "from_json"):
            return
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        yield from _check_union(value, typing.get_args(hint), path)
    elif origin is typing.Literal:
        if value not in typing.get_args(hint):
            yield f"{path}: {value!r} is none of {typing.get_args(hint)}"
    elif origin is list:
        if not isinstance(value, list):
            yield f"{path}: {value!r} is no list"
            return
        for place, item in enumerate(value):
            yield from _check(item, typing.get_args(hint)[0], f"{path}[{place}]")
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is no object"
            return
        for key, item in value.items():
            yield from _check(item, typing.get_args(hint)[1], f"{path}.{key}")
    elif issubclass(hint, enum.Enum):
        if value not in [one.value for one in hint]:
            yield f"{path}: {value!r} is none of {[one.value for one in hint]}"
    elif hasattr(hint, "from_json"):
        yield from _check_model(value, hint, path)
    elif not _is_a(value, hint):
        yield f"{path}: {value!r} is not of type {hint.__name__}"


def _check_union(value, hints, path):
    if value is None and type(None) in hints:
        return
    found = [list(_check(value, hint, path)) for hint in hints if hint is not type(None)]
    if all(found):
        yield from min(found, key=len)


def _check_model(value, hint, path):
    if isinstance(value, dict):
        model = hint.from_json(value)
        yield from _forgotten(value, json.loads(json.dumps(model, cls=JSONEncoder)), path)
        value = model
    elif not hasattr(type(value), "from_json"):
        yield f"{path}: {value!r} is no object"
        return
    for name, kind in typing.get_type_hints(type(value)).items():
        yield from _check(getattr(value, name), kind, f"{path}.{name.removesuffix('_val')}")


def _forgotten(given, kept, path):
    """Compare what was given with what the SDK made of it; what it adds are defaults."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key not in kept and value is not None:
                yield f"{path}.{key}: there is no such key"
            elif key in kept:
                yield from _forgotten(value, kept[key], f"{path}.{key}")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for place, (one, other) in enumerate(zip(given, kept, strict=True)):
            yield from _forgotten(one, other, f"{path}[{place}]")
    elif given != kept:
        yield f"{path}: {given!r} became {kept!r}"


def _is_a(value, hint):
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
