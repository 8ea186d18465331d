"""Lays what `spec.worker.podTemplate` asks for over the pod that the operator plans.

Objects are merged field by field and the user's word counts, except for what is the operator's (`pod_ownership`), a
service account's (`pod_identity`) or the node's (`pod_safety`).
Lists are merged by what the API server knows their items by. A container is merged field by field too; any other item
is taken as the user wrote it, because half of an env variable and half of another make none.

The order of init containers is the order in which they start, so it is the user's. What he does not name comes last:
his init containers get ready what the app needs.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from redrive.spec.fields import mapping
from redrive_operator.names import APP_CONTAINER
from redrive_operator.pod_identity import refuse_identity
from redrive_operator.pod_ownership import refuse_owned
from redrive_operator.pod_safety import refuse_unsafe
from redrive_operator.raw_pod import Item, items_in, list_of, normal_key, tidy

PATH = "spec.worker.podTemplate"

_CONTAINERS = ("containers", "initContainers")
_KEYS = {"containers": "name", "initContainers": "name", "volumes": "name", "env": "name", "volumeMounts": "mountPath"}
_APPENDED = ("ports", "imagePullSecrets", "tolerations", "hostAliases", "topologySpreadConstraints")

# Objects of which exactly one field may be set: two of them merged would have two.
_WHOLE = ("startupProbe", "livenessProbe", "readinessProbe")

Raw = dict[str, Any]


def merge_pod_template(
    template: Mapping[str, Any],
    planned: Mapping[str, Any],
    *,
    trusted: bool = False,
    accounts: tuple[str, ...] = (),
) -> Raw:
    """Merge a raw template into a planned one; SpecError names what it must not say, or what nobody could read.

    One that is `trusted` may ask for what is the node's. Any may ask for one of these service accounts.
    """
    asked = mapping(tidy(template, PATH), PATH)
    refuse_owned(asked, PATH, is_http=_has_app(planned))
    refuse_identity(asked, PATH, accounts)
    if not trusted:
        refuse_unsafe(asked, PATH)
    return _merge_objects(copy.deepcopy({**planned}), asked, PATH)


def _has_app(planned: Mapping[str, Any]) -> bool:
    return any(container["name"] == APP_CONTAINER for container in planned["spec"].get("initContainers", ()))


def _merge_objects(planned: Mapping[str, Any], asked: Mapping[str, Any], path: str) -> Raw:
    merged = {
        field: _merge_field(field, planned[field], value, f"{path}.{field}") if field in planned else value
        for field, value in asked.items()
    }
    return {**planned, **merged}


def _merge_field(field: str, planned: object, asked: object, path: str) -> object:
    match planned:
        case _ if field in _WHOLE:
            return mapping(asked, path)
        case dict():
            return _merge_objects(planned, mapping(asked, path), path)
        case list() if field in _KEYS:
            return _merge_items(field, planned, list_of(asked, path), path)
        case list() if field in _APPENDED:
            return [*planned, *list_of(asked, path)]
        case list():
            return list_of(asked, path)
        case _:
            return asked


def _merge_items(field: str, planned: list[Raw], asked: list[Raw], path: str) -> list[Raw]:
    holder, _, _ = path.rpartition(".")
    key = _KEYS[field]
    merge: Callable[[Raw, Item], Raw] = _merge_container if field in _CONTAINERS else _take
    known = {normal_key(key, item[key]): item for item in planned}
    merged = {
        item.key: merge(known.get(item.key, {}), item) for item in items_in({field: asked}, field, holder, key=key)
    }
    both = {**merged, **known} if field == "initContainers" else {**known, **merged}  # for the order of their keys
    return [merged.get(name, item) for name, item in both.items()]


def _take(_: Raw, asked: Item) -> Raw:
    return {**asked.raw}


def _merge_container(planned: Raw, asked: Item) -> Raw:
    return _merge_objects(_yield_requests(planned, asked.raw, asked.path), asked.raw, asked.path)


def _yield_requests(planned: Raw, asked: Mapping[str, Any], path: str) -> Raw:
    """Take back a planned request where the user sets a limit, which may be lower; Kubernetes then requests that."""
    resources = mapping(asked.get("resources", {}), f"{path}.resources")
    limits = mapping(resources.get("limits", {}), f"{path}.resources.limits")
    requests = planned.get("resources", {}).get("requests", {})
    left = {resource: amount for resource, amount in requests.items() if resource not in limits}
    if left == requests:
        return planned
    return {**planned, "resources": {**planned["resources"], "requests": left}}
