"""The objects that we made for consumers, as last seen, and what we last gave to the API server for each.

Together they say whether there is anything to apply: nothing, while an object is as we left it. `mark` is what changes
when somebody changes what an object asks for: its generation, which the progress of a Deployment does not move, or the
version of a kind that has no generation. Watches and the answers to our own writes come in no particular order: an
older version of an object, or the end of an earlier one of its name, tells nothing.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from redrive_operator.departed import Departed
from redrive_operator.history import read_time
from redrive_operator.resource_versions import is_newer
from redrive_operator.subject import Key

OWNER_KIND = "RetryingConsumer"


@dataclass(frozen=True, slots=True)
class _Seen:
    """Which version of an object was seen, and whose it was: the consumer's uid."""

    uid: str
    version: str
    mark: str
    owner: str


@dataclass(frozen=True, slots=True)
class DeploymentSeen:
    """What a Deployment says of its pods. `current` says that it speaks of what was asked last."""

    uid: str
    current: bool
    wanted: int
    exist: int
    available: int
    updated: int
    failure: str
    failing_since: datetime | None
    stalled: str
    deleting: bool


def owner_of(body: Mapping[str, Any]) -> Key | None:
    """Name the consumer that controls an object; None where none does."""
    owner = _controller(body)
    return None if owner is None else Key(body["metadata"].get("namespace") or "", owner["name"])


def _owner_uid(body: Mapping[str, Any]) -> str:
    owner = _controller(body)
    return "" if owner is None else owner["uid"]


def _controller(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    owners = body["metadata"].get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller") and one.get("kind") == OWNER_KIND), None)


def mark_of(body: Mapping[str, Any]) -> str:
    metadata = body["metadata"]
    return f"{metadata['uid']}/{metadata.get('generation') or metadata['resourceVersion']}"


def read_deployment(body: Mapping[str, Any]) -> DeploymentSeen:
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    failure, progress = conditions.get("ReplicaFailure", {}), conditions.get("Progressing", {})
    return DeploymentSeen(
        uid=metadata["uid"],
        current=(status.get("observedGeneration") or 0) >= (metadata.get("generation") or 0),
        wanted=spec.get("replicas", 1),
        exist=status.get("replicas") or 0,
        available=status.get("availableReplicas") or 0,
        updated=status.get("updatedReplicas") or 0,
        failure=failure.get("message", "") if failure.get("status") == "True" else "",
        failing_since=read_time(failure.get("lastTransitionTime")),
        stalled=progress.get("message", "") if progress.get("reason") == "ProgressDeadlineExceeded" else "",
        deleting=bool(metadata.get("deletionTimestamp")),
    )


class Holdings:
    """All owned objects, by kind and key. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, Key], _Seen] = {}
        self._applied: dict[Key, dict[tuple[str, Key], tuple[str, str]]] = {}
        self._deployments: dict[Key, DeploymentSeen] = {}
        self._gone = Departed()

    def note(self, body: Mapping[str, Any], *, gone: bool = False) -> bool:
        """Take an object as it was seen now, and say whether its consumer must be looked at: not for our own echo.

        One that no consumer controls is none of ours, and as if it were gone.
        """
        kind, key = _where(body)
        metadata = body["metadata"]
        seen = _Seen(metadata["uid"], metadata["resourceVersion"], mark_of(body), _owner_uid(body))
        with self._lock:
            known = self._seen.get((kind, key))
            if seen.uid in self._gone or (known is not None and not _is_news(seen, known, gone=gone)):
                return False
            if gone:
                self._gone.add(seen.uid)
            owner = owner_of(body)
            if gone or owner is None:
                self._seen.pop((kind, key), None)
                if kind == "Deployment":
                    self._deployments.pop(key, None)
                return True
            self._seen[kind, key] = seen
            _, left = self._applied.get(owner, {}).get((kind, key), ("", ""))
            return self._has_moved(kind, key, body) or left != seen.mark

    def _has_moved(self, kind: str, key: Key, body: Mapping[str, Any]) -> bool:
        """Note what a Deployment says of its pods, and say whether that is something new."""
        if kind != "Deployment":
            return False
        before, now = self._deployments.get(key), read_deployment(body)
        self._deployments[key] = now
        return before != now

    def deployment(self, key: Key) -> DeploymentSeen | None:
        with self._lock:
            return self._deployments.get(key)

    def version_of(self, kind: str, key: Key, *, owner: str) -> str | None:
        """Tell in which version an object is known that this very consumer controls; None where there is none."""
        with self._lock:
            seen = self._seen.get((kind, key))
            return seen.version if seen is not None and seen.owner == owner else None

    def uid_of(self, kind: str, key: Key) -> str | None:
        """Tell which very object of ours has this name; None where none does."""
        with self._lock:
            seen = self._seen.get((kind, key))
            return None if seen is None else seen.uid

    def are_as_left(self, consumer: Key) -> bool:
        """Say whether all that was applied for a consumer is there, and as we applied it."""
        with self._lock:
            applied = self._applied.get(consumer, {})
            return all(where in self._seen and self._seen[where].mark == mark for where, (_, mark) in applied.items())

    def was_applied(self, consumer: Key, kind: str, digest: str) -> bool:
        """Say whether we had applied exactly this: if it is different now, that was somebody else."""
        with self._lock:
            applied = self._applied.get(consumer, {}).items()
            return any(where[0] == kind and was == digest for where, (was, _) in applied)

    def is_as_applied(self, consumer: Key, kind: str, digest: str) -> bool:
        """Say whether we had applied exactly this, and nobody has changed it since."""
        with self._lock:
            applied = self._applied.get(consumer, {}).items()
            return any(
                where[0] == kind and was == digest and where in self._seen and self._seen[where].mark == mark
                for where, (was, mark) in applied
            )

    def applied(self, consumer: Key, digest: str, body: Mapping[str, Any]) -> None:
        self.note(body)
        with self._lock:
            self._applied.setdefault(consumer, {})[_where(body)] = (digest, mark_of(body))

    def applied_for(self, body: Mapping[str, Any]) -> Key | None:
        """Name the consumer for whom an object of this name was applied, whoever says now that it is his."""
        where = _where(body)
        with self._lock:
            return next((consumer for consumer, applied in self._applied.items() if where in applied), None)

    def forget(self, consumer: Key) -> None:
        """Forget what was applied for a consumer that is gone."""
        with self._lock:
            self._applied.pop(consumer, None)


def _is_news(seen: _Seen, known: _Seen, *, gone: bool) -> bool:
    """Versions are numbers that grow, from one object to the next of its name too."""
    if gone:
        return seen.uid == known.uid
    return seen.version == known.version or is_newer(seen.version, known.version)


def _where(body: Mapping[str, Any]) -> tuple[str, Key]:
    metadata = body["metadata"]
    return body["kind"], Key(metadata.get("namespace") or "", metadata["name"])
