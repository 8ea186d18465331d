"""Events that people see in `kubectl describe`, deduplicated.

An Event's name is made from what it says, so an operator that was started anew finds and continues what the one before
it has told. An Event is a courtesy: one that cannot be written is a line in the log, never an error.
"""

import hashlib
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Literal, Protocol

from redrive_operator.errors import KubeConflict, KubeError
from redrive_operator.kube.bodies import Body
from redrive_operator.kube.kinds import EVENTS, Kind
from redrive_operator.kube.ledger import LIFETIME, Ledger, Line, is_due
from redrive_operator.kube.refusals import one_line
from redrive_operator.subject import Key, Subject

COMPONENT = "redrive"

# The longest that the newer of the two Event APIs takes.
_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 200

log = logging.getLogger(__name__)


class Board(Protocol):
    """What is needed of Kubernetes here."""

    def get(self, kind: Kind, key: Key) -> Body | None: ...

    def create(self, body: Body) -> Body: ...

    def merge(self, kind: Kind, key: Key, patch: Body) -> Body | None: ...


def _now() -> datetime:
    return datetime.now(UTC)


class Herald:
    """Tells what happened to objects. Any thread may call it; `instance` is the pod that does."""

    def __init__(self, kube: Board, *, instance: str, clock: Callable[[], datetime] = _now) -> None:
        self._kube = kube
        self._instance = instance
        self._clock = clock
        self._ledger = Ledger()
        self._lock = Lock()

    def tell(self, subject: Subject, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:  # noqa: A002
        """Post an Event, or count it if it was told within the last hour."""
        now = self._clock()
        with self._lock:
            line = self._ledger.count(subject.uid, reason, one_line(message, _LONGEST_MESSAGE), now)
            if not is_due(line, now):
                return
            is_new = line.written is None
            line.written = now  # others count meanwhile
            body = self._event(subject, type, reason, line)
        try:
            self._begin(body, line, now) if is_new else self._continue(body)
        except KubeError as error:
            with self._lock:
                line.written = None
            log.debug("event %s of %s %s was not written: %s", reason, subject.kind, subject.key, error)

    def _begin(self, event: Body, line: Line, now: datetime) -> None:
        try:
            self._kube.create(event)
        except KubeConflict:
            found = self._kube.get(EVENTS, _key(event))
            last = None if found is None else _read_time(found.get("lastTimestamp"))
            if found is None or last is None or now - last >= LIFETIME:
                self._continue(event)  # what stands there is an old story
                return
            with self._lock:
                line.first = _read_time(found.get("firstTimestamp")) or line.first
                line.count += found.get("count") or 0
                line.written = last
                if not is_due(line, now):
                    return
                line.written = now
                event = {**event, **_figures(line)}
            self._continue(event)

    def _continue(self, event: Body) -> None:
        patch = {name: event[name] for name in ("count", "firstTimestamp", "lastTimestamp", "type")}
        if self._kube.merge(EVENTS, _key(event), patch) is None:
            self._kube.create(event)

    def _event(self, subject: Subject, type_: str, reason: str, line: Line) -> Body:
        involved = {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "name": subject.key.name,
            "namespace": subject.key.namespace,
            "uid": subject.uid,
            "resourceVersion": subject.resource_version,
        }
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": name_event(subject, reason, line.message),
                # Events are namespaced; of what is not, they are told where Kubernetes itself tells them.
                "namespace": subject.key.namespace or "default",
            },
            "involvedObject": {name: value for name, value in involved.items() if value},
            "type": type_,
            "reason": reason,
            "message": line.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            **_figures(line),
        }


def name_event(subject: Subject, reason: str, message: str) -> str:
    digest = hashlib.sha256("\0".join((subject.uid, reason, message)).encode()).hexdigest()[:16]
    return f"{subject.key.name[:_LONGEST_NAME].rstrip('-.')}.{digest}"


def _figures(line: Line) -> Body:
    return {"count": line.count, "firstTimestamp": _write_time(line.first), "lastTimestamp": _write_time(line.last)}


def _key(event: Body) -> Key:
    return Key(event["metadata"]["namespace"], event["metadata"]["name"])


def _write_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_time(text: Any) -> datetime | None:  # noqa: ANN401 - anybody may write an Event
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
