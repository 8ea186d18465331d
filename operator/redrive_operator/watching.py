"""Looks after the watches: lists the versions of all objects now and then, and sees what no watch has told.

A change that is listed, and that no watch has shown some seconds later, was missed. It is taken from the list, so
nothing is lost by it; but when that happens again and again, the watch is dead, and liveness must fail.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redrive_operator.errors import KubeError
from redrive_operator.kube import Kind, Kube
from redrive_operator.subject import Key, Subject

LOGGER = logging.getLogger(__name__)

LIST_SECONDS = 60.0

# A watch that lives has shown a change long before.
PATIENCE_SECONDS = 10.0

# Missed in so long a time without a single good look between: it does not come back by itself.
STALE_SECONDS = 240.0

Take = Callable[[Key, str | None, Mapping[str, Any] | None], None]


@dataclass(frozen=True, slots=True)
class Watched:
    """One kind that is watched: whom we know of it, and who takes what a list showed and the watch did not."""

    kind: Kind
    known: Callable[[], Sequence[Subject]]
    found: Take


class Watching:
    """Works in a thread of its own."""

    def __init__(
        self,
        kube: Kube,
        watched: Sequence[Watched],
        namespaces: Sequence[str | None],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._kube = kube
        self._watched = watched
        self._namespaces = namespaces
        self._clock = clock
        self._right_at = clock()
        self._answered_at = clock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watching", daemon=True)

    def start(self) -> None:
        self._right_at = self._answered_at = self._clock()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE_SECONDS)

    def age(self) -> float:
        """Say how long ago the watch was last seen to be right, as far as the API server let us look."""
        return max(0.0, self._answered_at - self._right_at)

    def is_stale(self) -> bool:
        return self.age() > STALE_SECONDS

    def look(self) -> int:
        """Compare once; say how many changes the watches had missed."""
        missed = 0
        for watched in self._watched:
            suspects = self._find_missed(watched)
            if suspects is None:
                return missed
            known = {subject.key: subject.uid for subject in watched.known()}
            for key in suspects:
                LOGGER.warning("the watch has missed a change of %s %s: it is taken from a list", watched.kind, key)
                watched.found(key, known.get(key), self._kube.get(watched.kind, key))
            missed += len(suspects)
        self._answered_at = self._clock()
        if not missed:
            self._right_at = self._answered_at
        return missed

    def _find_missed(self, watched: Watched) -> set[Key] | None:
        """Find what a list shows, and no watch; None where we are to stop."""
        listed, known = self._list(watched.kind), _versions(watched.known())
        suspects = _differing(listed, known)
        if suspects:
            if self._stopping.wait(PATIENCE_SECONDS):
                return None
            listed, now = self._list(watched.kind), _versions(watched.known())
            # What has moved on here in the meantime is only changing faster than both can be compared.
            suspects = {key for key in suspects & _differing(listed, now) if known.get(key) == now.get(key)}
        return suspects

    def _run(self) -> None:
        while not self._stopping.wait(LIST_SECONDS):
            try:
                self.look()
            except KubeError as error:
                LOGGER.warning("the objects could not be listed: %s", error)
            except Exception:
                LOGGER.exception("the objects could not be compared: this is a defect of the operator")

    def _list(self, kind: Kind) -> dict[Key, str]:
        listed: dict[Key, str] = {}
        for namespace in self._namespaces:
            listed |= self._kube.list_versions(kind, namespace=namespace)
        return listed


def _versions(subjects: Sequence[Subject]) -> dict[Key, str]:
    return {subject.key: subject.resource_version for subject in subjects}


def _differing(listed: Mapping[Key, str], known: Mapping[Key, str]) -> set[Key]:
    return {key for key in listed.keys() | known.keys() if listed.get(key) != known.get(key)}
