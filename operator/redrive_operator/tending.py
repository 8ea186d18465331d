"""Keeps a consumer's objects in the cluster as planned: applied when something differs, and otherwise left alone."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from redrive_operator.errors import KubeConflict, KubeInvalid, KubeRefused, NameTaken
from redrive_operator.holdings import Holdings, owner_of
from redrive_operator.kube import ABSENT, BUDGETS, CONFIG_MAPS, DEPLOYMENTS, Applied, Kind
from redrive_operator.names import budget_name, config_map_name, deployment_key, selector_of
from redrive_operator.observation import Problem, WorkersSeen
from redrive_operator.reasons import WorkersReason
from redrive_operator.subject import Key, Subject
from redrive_operator.workload import Manifests

# Applied again after so long, though nothing seems to have changed: a watch may have missed something.
RENEWAL_SECONDS = 1800.0


class Cluster(Protocol):
    """What is needed of Kubernetes here."""

    def apply(self, manifest: Mapping[str, Any], *, owner: Subject, known: str | None = None) -> Applied: ...

    def get(self, kind: Kind, key: Key) -> dict[str, Any] | None: ...

    def delete(self, kind: Kind, key: Key, *, uid: str | None = None, foreground: bool = False) -> None: ...


@dataclass(frozen=True, slots=True)
class Tended:
    """What came of it: what somebody else had changed, and why it could not be done."""

    repaired: tuple[str, ...] = ()
    problem: Problem | None = None
    put_off: bool = False  # to the next turn, since somebody else was at it


class Tending:
    """Works for all consumers; what was applied is remembered in the holdings."""

    def __init__(self, cluster: Cluster, holdings: Holdings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._holdings = holdings
        self._clock = clock
        self._inputs: dict[Key, tuple[float, object]] = {}

    def forget(self, key: Key) -> None:
        """Forget a consumer that is gone."""
        self._inputs.pop(key, None)
        self._holdings.forget(key)

    def tend(self, subject: Subject, inputs: object, build: Callable[[], Manifests]) -> Tended:
        """Have the objects be as planned. With the same `inputs`, and nobody's hand on them, nothing is even built."""
        written_at, written = self._inputs.get(subject.key, (0.0, None))
        lately = written is not None and self._clock() - written_at < RENEWAL_SECONDS
        if lately and written == inputs and self._holdings.are_as_left(subject.key):
            return Tended()
        manifests = build()
        self._inputs.pop(subject.key, None)  # until all of it is written, it is neither the old nor the new
        repaired: list[str] = []
        try:
            # The config first, so that no pod starts without it.
            for manifest in (manifests.config_map, manifests.deployment, manifests.budget):
                repaired += self._apply(subject, manifest, lately=lately)
        except NameTaken as error:
            return Tended(tuple(repaired), Problem(WorkersReason.NAME_TAKEN, str(error)))
        except (KubeInvalid, KubeRefused) as error:
            return Tended(tuple(repaired), Problem(WorkersReason.REFUSED, str(error)))
        except KubeConflict:
            return Tended(tuple(repaired), put_off=True)  # the next turn sees what came of it
        self._inputs[subject.key] = (self._clock(), inputs)
        return Tended(tuple(repaired))

    def stop(self, subject: Subject) -> bool:
        """End the workers, each of which finishes what it has begun; say whether all are gone.

        The API server is asked: a watch that missed the end of a Deployment would have us wait for ever.
        """
        key = deployment_key(subject.key)
        body = self._cluster.get(DEPLOYMENTS, key)
        self._inputs.pop(subject.key, None)
        self._holdings.forget(subject.key)
        if body is None or owner_of(body) != subject.key:
            return True
        if not body["metadata"].get("deletionTimestamp"):
            self._cluster.delete(DEPLOYMENTS, key, uid=body["metadata"]["uid"], foreground=True)
        return False

    def remove(self, subject: Subject) -> None:
        """Take away what was made for workers that are no longer asked for: first them, then what they read."""
        if not self.stop(subject):
            return
        for kind, name in ((BUDGETS, budget_name), (CONFIG_MAPS, config_map_name)):
            key = Key(subject.key.namespace, name(subject.key.name))
            uid = self._holdings.uid_of(kind.kind, key)
            if uid is not None:
                self._cluster.delete(kind, key, uid=uid)
        self._holdings.forget(subject.key)

    def observe(self, subject: Subject, wanted: int, tended: Tended) -> WorkersSeen:
        """Say how the workers are, by what was last seen of their Deployment."""
        key = deployment_key(subject.key)
        seen = self._holdings.deployment(key)
        if seen is None:
            return WorkersSeen(
                wanted, problem=tended.problem, selector=selector_of(subject.key), repaired=tended.repaired
            )
        return WorkersSeen(
            wanted=wanted,
            exist=seen.exist,
            available=seen.available,
            updated=seen.updated if seen.current else 0,
            problem=tended.problem,
            failure=seen.failure,
            stalled=seen.stalled,
            selector=selector_of(subject.key),
            repaired=tended.repaired,
        )

    def _apply(self, subject: Subject, manifest: Mapping[str, Any], *, lately: bool) -> list[str]:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        digest = _digest(subject, manifest)
        if lately and self._holdings.is_as_applied(subject.key, kind, digest):
            return []  # another of the objects has changed: more workers need no new config
        expected = self._holdings.was_applied(subject.key, kind, digest)
        known = None if expected else self._find_version(subject, kind, name)
        applied = self._cluster.apply(manifest, owner=subject, known=known)
        self._holdings.applied(subject.key, digest, applied.body)
        if not expected or applied.change == "unchanged":
            return []
        return [f"{kind} {name} {'was missing' if applied.change == 'created' else 'had been changed'}"]

    def _find_version(self, subject: Subject, kind: str, name: str) -> str | None:
        """Say which version is to be written over, so that nobody has to look; None where that is not known."""
        known = self._holdings.version_of(kind, Key(subject.key.namespace, name), owner=subject.uid)
        if known is None and self._holdings.deployment(deployment_key(subject.key)) is None:
            return ABSENT  # for a consumer that has no Deployment nothing else was made either
        return known


def _digest(subject: Subject, manifest: Mapping[str, Any]) -> str:
    """Of a manifest as it is written for this very object: one that was made anew owns nothing yet."""
    text = json.dumps([subject.uid, manifest], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
