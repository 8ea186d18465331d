"""Objects as plain dicts: whose they are, whether two say the same, what lies in a Secret. Nothing here does I/O."""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from redrive_operator.errors import NameTaken
from redrive_operator.subject import Key, Subject

Body = dict[str, Any]
Bodies = list[Body]

# What the API server itself counts and notes, whoever changes what.
_BOOKKEEPING = ("resourceVersion", "managedFields", "generation")


@dataclass(frozen=True, slots=True)
class Applied:
    """An object as it is now, and what had to be done for that."""

    body: Body = field(repr=False)
    change: Literal["created", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class SecretSeen:
    """A Secret as it was read. `data` is decoded, without what is not UTF-8, and never shown."""

    uid: str
    resource_version: str
    data: Mapping[str, str] = field(repr=False)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owner_uid: str | None = None


def own(manifest: Mapping[str, Any], owner: Subject) -> Body:
    """Write into a manifest who controls the object, and so with whom it goes."""
    metadata = {"namespace": owner.key.namespace, **manifest["metadata"], "ownerReferences": [refer_to(owner)]}
    if metadata["namespace"] != owner.key.namespace:
        raise ValueError(f"{owner.kind} {owner.key} cannot own what is in namespace {metadata['namespace']}")
    return {**manifest, "metadata": metadata}


def refer_to(owner: Subject) -> Body:
    # Without blockOwnerDeletion: that would need a right to the owner's finalizers where OpenShift's admission is on.
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.key.name,
        "uid": owner.uid,
        "controller": True,
    }


def controller_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find who controls an object: the API server lets it be one at most."""
    references = body["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def refuse_foreign(body: Mapping[str, Any], owner: Subject, what: str) -> None:
    """Raise NameTaken unless `owner` controls the object, which is `what` ("Deployment shop/orders")."""
    controller = controller_of(body)
    if controller is None:
        change = f"delete it, or give the {owner.kind} another name"
        raise NameTaken(f"{what} exists already, and was not made for {owner.kind} {owner.key}: {change}")
    if controller["uid"] == owner.uid:
        return
    theirs = f"{controller['kind']} {controller['name']}"
    if theirs == f"{owner.kind} {owner.key.name}":
        change = "it goes by itself; if it stays, delete it"
        raise NameTaken(f"{what} is still that of an earlier {owner.kind} of the same name: {change}")
    raise NameTaken(f"{what} exists already, and {theirs} controls it: give the {owner.kind} another name")


def say_the_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Compare what people and controllers ask for, not the version: some no-op writes are given a new one.

    See https://github.com/kubernetes/kubernetes/issues/124605.
    """
    return _asked(one) == _asked(other)


def decode_secret(body: Mapping[str, Any]) -> SecretSeen:
    metadata = body["metadata"]
    decoded = {name: _decode(value) for name, value in (body.get("data") or {}).items()}
    controller = controller_of(body)
    return SecretSeen(
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        data={name: text for name, text in decoded.items() if text is not None},
        annotations=metadata.get("annotations") or {},
        owner_uid=None if controller is None else controller["uid"],
    )


def encode_secret(
    key: Key, data: Mapping[str, str], *, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Body:
    metadata = {"name": key.name, "namespace": key.namespace, "labels": dict(labels), "annotations": dict(annotations)}
    encoded = {name: b64encode(text.encode()).decode() for name, text in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded}


def _asked(body: Mapping[str, Any]) -> Body:
    metadata = {name: value for name, value in body["metadata"].items() if name not in _BOOKKEEPING}
    return {**body, "metadata": metadata, "status": None}


def _decode(value: str) -> str | None:
    try:
        return b64decode(value or "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
