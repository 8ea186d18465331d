"""Which object is spoken of: what the operator reads from an object's metadata, whatever its spec says.

It is read before the spec, and from objects whose spec cannot be read at all: they too get a status and events.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from redrive_operator.history import History, read_history
from redrive_operator.reasons import Status

FINALIZER = "redrive.dev/finalizer"

# Anybody may put as many on an object as fit into it, and they would be kept for as long as the object is there.
MOST_FINALIZERS = 32


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Where an object is found. A cluster-scoped one has no namespace: it is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True)
class Subject:
    """One object of ours as it was last seen. `status` is raw, and not to be written to.

    Of very many finalizers only our own is kept, and then it is `crowded`.
    """

    kind: str
    api_version: str
    key: Key
    uid: str
    resource_version: str
    generation: int
    created: datetime
    deleting: bool
    finalizers: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    status: Mapping[str, Any] = field(default_factory=dict, hash=False)
    crowded: bool = False

    @cached_property
    def history(self) -> History:
        """The conditions that it has, which many ask for."""
        return read_history(self.status)

    def was_found(self, condition: str) -> bool:
        """Say whether a condition was found true of this very generation of the spec."""
        past = self.history[condition]
        return past.status == Status.TRUE and past.generation == self.generation

    @property
    def held(self) -> bool:
        """Whether our finalizer keeps it from vanishing."""
        return FINALIZER in self.finalizers

    @property
    def released(self) -> bool:
        """Whether it is going, and we have nothing to do with that any more."""
        return self.deleting and not self.held


def read_subject(body: Mapping[str, Any]) -> Subject:
    """Read what the API server itself wrote, and so surely is there."""
    metadata = body["metadata"]
    finalizers = metadata.get("finalizers") or ()
    crowded = len(finalizers) > MOST_FINALIZERS
    return Subject(
        kind=body["kind"],
        api_version=body["apiVersion"],
        key=Key(metadata.get("namespace") or "", metadata["name"]),
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=metadata.get("generation") or 0,
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        deleting=bool(metadata.get("deletionTimestamp")),
        finalizers=tuple(name for name in finalizers if not crowded or name == FINALIZER),
        annotations=metadata.get("annotations") or {},
        status=body.get("status") or {},
        crowded=crowded,
    )
