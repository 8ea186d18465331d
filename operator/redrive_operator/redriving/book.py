"""Which Redrives there are, as last seen, by the consumer whose dead letters they are about.

Of one that has ended only that is kept: a CronJob may have made thousands, each with its groups and ids.

As in the registry, watches, lists and the answers to our own writes come in no particular order: an object is replaced
only by a later sight of itself. Every method may be called from any thread.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from redrive.errors import SpecError
from redrive.letters.choosing import EVERYTHING
from redrive.spec import Redrive, parse_redrive
from redrive_operator.departed import Departed
from redrive_operator.redriving.judging import is_over
from redrive_operator.registry import is_later_sight, sentence_of
from redrive_operator.subject import Key, Subject, read_subject


@dataclass(frozen=True, slots=True)
class RedriveEntry:
    """One Redrive: what it asks for, or why that cannot be read."""

    subject: Subject
    redrive: Redrive | None
    error: SpecError | None = None

    @property
    def key(self) -> Key:
        return self.subject.key

    @property
    def consumer(self) -> Key:
        """Whose turn it is in. One that cannot be read has a turn of its own, which no consumer's name is like."""
        namespace = self.key.namespace
        return Key(namespace, f"/{self.key.name}" if self.redrive is None else self.redrive.consumer)


def read_redrive_entry(body: Mapping[str, Any]) -> RedriveEntry:
    subject = read_subject(body)
    try:
        return RedriveEntry(subject, parse_redrive(body))
    except SpecError as error:
        return RedriveEntry(subject, None, sentence_of(error))


class Book:
    """All Redrives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Key, RedriveEntry] = {}
        self._gone = Departed()

    def put(self, entry: RedriveEntry) -> bool:
        """Take a Redrive as it was seen now; say whether that was news."""
        with self._lock:
            known = self._entries.get(entry.key)
            if entry.subject.uid in self._gone or (known and not is_later_sight(entry.subject, known.subject)):
                return False
            self._entries[entry.key] = _shorten(entry) if is_over(entry.subject) else entry
            return True

    def drop(self, key: Key, *, uid: str | None = None) -> RedriveEntry | None:
        """Forget a Redrive; with `uid`, only that very one: another of its name may have been seen before its end."""
        with self._lock:
            known = self._entries.get(key)
            self._gone.add(uid or (known.subject.uid if known else ""))
            if known is None or uid not in (None, known.subject.uid):
                return None
            return self._entries.pop(key)

    def get(self, key: Key) -> RedriveEntry | None:
        with self._lock:
            return self._entries.get(key)

    def all(self) -> list[RedriveEntry]:
        with self._lock:
            return list(self._entries.values())

    def of(self, consumer: Key) -> list[RedriveEntry]:
        """List the Redrives of a consumer, the oldest first."""
        found = [entry for entry in self.all() if entry.consumer == consumer]
        return sorted(found, key=lambda entry: (entry.subject.created, entry.key))

    def versions(self, consumer: Key) -> frozenset[tuple[str, str]]:
        """Say which versions of which Redrives of a consumer are known."""
        return frozenset((entry.subject.uid, entry.subject.resource_version) for entry in self.of(consumer))


def _shorten(entry: RedriveEntry) -> RedriveEntry:
    conditions = [one for one in entry.subject.status.get("conditions") or () if one.get("type") == "Complete"]
    status = {"finishedTime": entry.subject.status.get("finishedTime"), "conditions": conditions}
    subject = replace(entry.subject, status=status, annotations={})
    redrive = None if entry.redrive is None else replace(entry.redrive, select=EVERYTHING)
    return RedriveEntry(subject, redrive, entry.error)
