"""The worker pods of every consumer, as last seen: a few words of each, since there may be thousands.

Watches and lists come in no particular order: an older version of a pod tells nothing. A watch that was away does not
tell of pods that have gone meanwhile, so whoever finds trouble with a pod has the list read before he tells of it.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redrive_operator.departed import Departed
from redrive_operator.pods import PodSeen, read_pod
from redrive_operator.resource_versions import is_newer
from redrive_operator.subject import Key

# By this a Deployment chooses, when it has to take pods away: the cheapest first. A pod without it costs 0, and we mark
# those that are to go.
COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
CHEAP = "-100"


@dataclass(frozen=True, slots=True)
class Member:
    """One pod. `marked` says that it was chosen to be taken away before others."""

    version: str
    pod: PodSeen
    marked: bool


class Crews:
    """All worker pods, by consumer. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._crews: dict[Key, dict[str, Member]] = {}
        self._gone = Departed()

    def note(self, body: Mapping[str, Any], *, gone: bool = False) -> Key | None:
        """Take a pod as it was seen now; name its consumer if that is news for it."""
        pod = read_pod(body)
        if pod is None:
            return None
        member = _member(pod, body)
        with self._lock:
            crew = self._crews.setdefault(pod.consumer, {})
            known = crew.get(pod.uid)
            if gone:
                self._gone.add(pod.uid)
                news = crew.pop(pod.uid, None) is not None
            elif pod.uid in self._gone or (known is not None and not is_newer(member.version, known.version)):
                news = False
            else:
                crew[pod.uid] = member
                news = known is None or known.pod != pod
            if not crew:
                del self._crews[pod.consumer]
            return pod.consumer if news else None

    def replace(self, consumer: Key, bodies: Iterable[Mapping[str, Any]]) -> None:
        """Take the whole crew from a list, which knows who is gone; but a watch may be ahead of it."""
        listed: dict[str, Member] = {}
        for body in bodies:
            pod = read_pod(body)
            if pod is not None and pod.consumer == consumer:
                listed[pod.uid] = _member(pod, body)
        newest = max((_number(member.version) for member in listed.values()), default=0)
        with self._lock:
            known = self._crews.pop(consumer, {})
            crew = {uid: _newer(member, known.get(uid)) for uid, member in listed.items() if uid not in self._gone}
            if listed:  # who was made later than all that was listed was not there yet
                crew |= {uid: one for uid, one in known.items() if uid not in crew and _number(one.version) > newest}
            if crew:
                self._crews[consumer] = crew

    def of(self, consumer: Key) -> tuple[Member, ...]:
        with self._lock:
            return tuple(self._crews.get(consumer, {}).values())

    def forget(self, consumer: Key) -> None:
        with self._lock:
            self._crews.pop(consumer, None)


def _member(pod: PodSeen, body: Mapping[str, Any]) -> Member:
    metadata = body["metadata"]
    marked = (metadata.get("annotations") or {}).get(COST_ANNOTATION) == CHEAP
    return Member(metadata["resourceVersion"], pod, marked)


def _newer(listed: Member, known: Member | None) -> Member:
    return known if known is not None and is_newer(known.version, listed.version) else listed


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
