"""Looks after the watches: lists the versions of all consumers now and then, and sees what no watch has told.

A change that is listed, and that no watch has shown some seconds later, was missed. It is taken from the list, so
nothing is lost by it; but when that happens again and again, the watch is dead, and liveness must fail.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from redrive_operator.errors import KubeError
from redrive_operator.kube import CONSUMERS, Kube
from redrive_operator.registry import Registry
from redrive_operator.subject import Key

LOGGER = logging.getLogger(__name__)

LIST_SECONDS = 60.0

# A watch that lives has shown a change long before.
PATIENCE_SECONDS = 10.0

# Missed in so long a time without a single good look between: it does not come back by itself.
STALE_SECONDS = 240.0

Take = Callable[[Key, str | None, Mapping[str, Any] | None], None]


class Watching:
    """Works in a thread of its own."""

    def __init__(
        self,
        kube: Kube,
        registry: Registry,
        namespaces: Sequence[str | None],
        *,
        found: Take,
        clock: Callable[[], float],
    ) -> None:
        self._kube = kube
        self._registry = registry
        self._namespaces = namespaces
        self._found = found
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
        """Compare once; say how many changes the watch had missed."""
        listed, known = self._list(), self._known()
        suspects = _differing(listed, known)
        if suspects:
            if self._stopping.wait(PATIENCE_SECONDS):
                return 0
            listed, now = self._list(), self._known()
            # What has moved on here in the meantime is only changing faster than both can be compared.
            suspects = {key for key in suspects & _differing(listed, now) if known.get(key) == now.get(key)}
        self._answered_at = self._clock()
        if not suspects:
            self._right_at = self._answered_at
        for key in suspects:
            LOGGER.warning("the watch has missed a change of %s, which is taken from a list", key)
            known_one = self._registry.get(key)
            uid = None if known_one is None else known_one.subject.uid
            self._found(key, uid, self._kube.get(CONSUMERS, key))
        return len(suspects)

    def _run(self) -> None:
        while not self._stopping.wait(LIST_SECONDS):
            try:
                self.look()
            except KubeError as error:
                LOGGER.warning("the consumers could not be listed: %s", error)
            except Exception:
                LOGGER.exception("the consumers could not be compared: this is a defect of the operator")

    def _list(self) -> dict[Key, str]:
        listed: dict[Key, str] = {}
        for namespace in self._namespaces:
            listed |= self._kube.list_versions(CONSUMERS, namespace=namespace)
        return listed

    def _known(self) -> dict[Key, str]:
        return {entry.key: entry.subject.resource_version for entry in self._registry.consumers()}


def _differing(listed: Mapping[Key, str], known: Mapping[Key, str]) -> set[Key]:
    return {key for key in listed.keys() | known.keys() if listed.get(key) != known.get(key)}
