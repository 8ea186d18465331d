"""What the operator knows of the cluster: every object of ours as last seen, by whatever way it was seen.

Watches, lists and the answers to our own writes come in no particular order. So an object is replaced only by a newer
version of itself: an old event must not undo what a write has just told us. Of other objects only what is needed is
kept, so that memory does not grow with what else they hold. All methods may be called from any thread.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from redrive.errors import SpecError
from redrive.spec import BrokerConnection, Consumer, SecretRef, parse_connection, parse_consumer
from redrive_operator.departed import Departed
from redrive_operator.resource_versions import is_newer
from redrive_operator.subject import Key, Subject, read_subject

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class DeskKey:
    """One vhost by one way: what is read and worked on at one time. A connection has no namespace."""

    mode: Literal["Secret", "Connection"]
    namespace: str
    name: str
    vhost: str

    def __str__(self) -> str:
        return f"{self.mode} {Key(self.namespace, self.name)}, vhost {self.vhost}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One RetryingConsumer: what it asks for, or why that cannot be read."""

    subject: Subject
    consumer: Consumer | None
    error: SpecError | None = None
    desk: DeskKey | None = None  # where it is worked on, unless it cannot be read

    @property
    def key(self) -> Key:
        return self.subject.key

    def is_as_asked(self, other: "Entry") -> bool:
        """Say whether another sight of it asks for the same: status and annotations apart."""
        mine, its = self.subject, other.subject
        return (mine.uid, mine.generation, self.desk) == (its.uid, its.generation, other.desk)

    @property
    def claim(self) -> tuple[str, str] | None:
        """The vhost and the queue that it asks for. One that is being deleted still has it, and may destroy it."""
        return None if self.consumer is None else (self.consumer.broker.vhost, self.consumer.queue.name)


@dataclass(frozen=True, slots=True)
class ConnectionEntry:
    """One BrokerConnection: what it lends out, or why that cannot be read."""

    subject: Subject
    connection: BrokerConnection | None
    error: SpecError | None = None


def desk_of(consumer: Consumer) -> DeskKey:
    reference, vhost = consumer.broker.reference, consumer.broker.vhost
    if isinstance(reference, SecretRef):
        return DeskKey("Secret", consumer.namespace, reference.name, vhost)
    return DeskKey("Connection", "", reference.name, vhost)


def read_entry(body: Mapping[str, Any]) -> Entry:
    subject = read_subject(body)
    try:
        consumer = parse_consumer(body)
    except SpecError as error:
        return Entry(subject, None, sentence_of(error))
    return Entry(subject, consumer, desk=desk_of(consumer))


def read_connection_entry(body: Mapping[str, Any]) -> ConnectionEntry:
    subject = read_subject(body)
    try:
        return ConnectionEntry(subject, parse_connection(body))
    except SpecError as error:
        return ConnectionEntry(subject, None, sentence_of(error))


def sentence_of(error: SpecError) -> SpecError:
    """Keep what an error says, and not the frames that it passed, which hold the whole object for as long as it is."""
    return SpecError(error.path, error.message)


class Registry:
    """All of it, behind one lock that is never held for long. Whoever asks by desk or by queue need not look at all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._consumers: dict[Key, Entry] = {}
        self._by_desk: dict[DeskKey | None, dict[Key, Entry]] = {}
        self._by_claim: dict[tuple[str, str], dict[Key, Entry]] = {}
        self._connections: dict[str, ConnectionEntry] = {}
        self._gone = Departed()

    def put(self, entry: Entry) -> bool:
        """Take a consumer as it was seen now; say whether that was news."""
        with self._lock:
            known = self._consumers.get(entry.key)
            if entry.subject.uid in self._gone or (known and not is_later_sight(entry.subject, known.subject)):
                return False
            self._take_out(entry.key)
            self._consumers[entry.key] = entry
            self._by_desk.setdefault(entry.desk, {})[entry.key] = entry
            if entry.claim is not None:
                self._by_claim.setdefault(entry.claim, {})[entry.key] = entry
            return True

    def drop(self, key: Key, *, uid: str | None = None) -> Entry | None:
        """Forget a consumer; with `uid`, only that very one: another of its name may have been seen before its end."""
        with self._lock:
            known = self._consumers.get(key)
            self._gone.add(uid or (known.subject.uid if known else ""))
            return None if known is None or uid not in (None, known.subject.uid) else self._take_out(key)

    def get(self, key: Key) -> Entry | None:
        with self._lock:
            return self._consumers.get(key)

    def consumers(self) -> list[Entry]:
        with self._lock:
            return list(self._consumers.values())

    def at(self, desk: DeskKey | None) -> list[Entry]:
        """List who is worked on there; None stands for those that cannot be read."""
        with self._lock:
            return list(self._by_desk.get(desk, {}).values())

    def claiming(self, claim: tuple[str, str]) -> list[Entry]:
        """List who asks for this queue in a vhost of this name, on whatever broker."""
        with self._lock:
            return list(self._by_claim.get(claim, {}).values())

    def _take_out(self, key: Key) -> Entry | None:
        entry = self._consumers.pop(key, None)
        if entry is not None:
            _remove(self._by_desk, entry.desk, key)
            if entry.claim is not None:
                _remove(self._by_claim, entry.claim, key)
        return entry

    def put_connection(self, entry: ConnectionEntry) -> bool:
        with self._lock:
            known = self._connections.get(entry.subject.key.name)
            if known is not None and not is_later_sight(entry.subject, known.subject):
                return False
            self._connections[entry.subject.key.name] = entry
            return True

    def drop_connection(self, name: str, *, uid: str | None = None) -> None:
        with self._lock:
            known = self._connections.get(name)
            if known is not None and uid in (None, known.subject.uid):
                del self._connections[name]

    def connection(self, name: str) -> ConnectionEntry | None:
        with self._lock:
            return self._connections.get(name)

    def connections(self) -> list[ConnectionEntry]:
        with self._lock:
            return list(self._connections.values())

    def users_of(self, connection: str) -> list[Entry]:
        """List the consumers that refer to a BrokerConnection."""
        lent = ("Connection", connection)
        return [entry for entry in self.consumers() if entry.desk and (entry.desk.mode, entry.desk.name) == lent]


def _remove(index: dict[T, dict[Key, Entry]], group: T, key: Key) -> None:
    members = index.get(group, {})
    members.pop(key, None)
    if not members:
        index.pop(group, None)


def is_later_sight(seen: Subject, known: Subject) -> bool:
    """Say whether it is a later sight of an object; one that was made anew is another, and later."""
    if seen.uid != known.uid and seen.created != known.created:
        return seen.created > known.created
    return is_newer(seen.resource_version, known.resource_version)
