"""Reads the answers of RabbitMQ's management API: total, because what answers may be anything that speaks HTTP.

Whatever is not as it should be is a BadAnswer that names the place; past this nobody asks whether a field is there.
Statistics may be missing for some seconds in a young queue, so counts may be None.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from redrive.access import Permission, TopicPermission
from redrive.elements import ApplyTo, Arguments, ArgumentValue, Binding, Policy, freeze
from redrive.errors import BadAnswer
from redrive.password_hash import PasswordHash
from redrive.reading import FoundExchange, FoundQueue

T = TypeVar("T")

QUEUE_COLUMNS = (
    "name",
    "type",
    "durable",
    "exclusive",
    "auto_delete",
    "arguments",
    "effective_policy_definition",
    "messages_ready",
    "messages_unacknowledged",
    "consumers",
    "message_stats.publish",
    "message_stats.deliver_get",
    "message_stats.ack",
    "leader",
    "members",
    "online",
)
BINDING_COLUMNS = ("source", "destination", "destination_type", "routing_key", "arguments")
EXCHANGE_COLUMNS = ("name", "type", "durable", "auto_delete", "internal", "arguments")

_APPLY_TO: Mapping[str, ApplyTo] = {
    "queues": "queues",
    "exchanges": "exchanges",
    "all": "all",
    "classic_queues": "classic_queues",
    "quorum_queues": "quorum_queues",
    "streams": "streams",
}


class Fields:
    """One object of an answer; `what` names it in errors."""

    def __init__(self, raw: object, what: str) -> None:
        if not isinstance(raw, dict):
            raise BadAnswer(f"the management API gave no object for {what}")
        self._raw: Mapping[str, object] = raw
        self._what = what

    def text(self, name: str) -> str:
        value = self._raw.get(name)
        if not isinstance(value, str):
            raise BadAnswer(f"the management API gave a {self._what} without {name}")
        return value

    def told(self, name: str) -> str | None:
        value = self._raw.get(name)
        return value if isinstance(value, str) else None

    def words(self, name: str) -> tuple[str, ...]:
        """Read a list of words, which some versions write as one text with commas."""
        value = self._raw.get(name)
        items = value.split(",") if isinstance(value, str) else value
        return tuple(item.strip() for item in items if isinstance(item, str)) if isinstance(items, list) else ()

    def flag(self, name: str) -> bool:
        """None is no: quorum queues are neither exclusive nor not."""
        return self._raw.get(name) is True

    def has(self, name: str) -> bool:
        """Whether there is anything in it: an empty text or list is nothing."""
        return bool(self._raw.get(name))

    def number(self, name: str) -> int | None:
        value = self._raw.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def is_null(self, name: str) -> bool:
        """Whether it is said that there is none, which is more than to say nothing."""
        return name in self._raw and self._raw[name] is None

    def length(self, name: str) -> int | None:
        """Count what is in a list; None where there is none."""
        value = self._raw.get(name)
        return len(value) if isinstance(value, list) else None

    def inner(self, name: str) -> "Fields":
        """Read an object within, which may be missing: an empty one is a list in some versions."""
        value = self._raw.get(name)
        return Fields(value if isinstance(value, dict) else {}, f"{self._what}'s {name}")

    def arguments(self, name: str) -> Arguments:
        value = self._raw.get(name)
        if value in (None, [], ""):  # an empty table is an empty list in some versions
            return ()
        if not isinstance(value, dict):
            raise BadAnswer(f"the management API gave a {self._what} whose {name} are no object")
        # Thousands of queues have arguments of the same names.
        return freeze({sys.intern(str(key)): _scalar(item) for key, item in value.items()})


def read_list(items: Iterable[object], what: str, read: Callable[[Fields], T]) -> Iterator[T]:
    return (read(Fields(item, what)) for item in items)


def read_queue(fields: Fields) -> FoundQueue:
    counted = fields.inner("message_stats")
    return FoundQueue(
        name=fields.text("name"),
        type=fields.text("type"),
        durable=fields.flag("durable"),
        exclusive=fields.flag("exclusive"),
        auto_delete=fields.flag("auto_delete"),
        arguments=fields.arguments("arguments"),
        reported=fields.arguments("effective_policy_definition"),
        ready=fields.number("messages_ready"),
        unacked=fields.number("messages_unacknowledged"),
        consumers=fields.number("consumers"),
        published=counted.number("publish"),
        delivered=counted.number("deliver_get"),
        acked=counted.number("ack"),
        members=fields.length("members"),
        online=fields.length("online"),
        leaderless=fields.is_null("leader"),
    )


def read_exchange(fields: Fields) -> FoundExchange:
    return FoundExchange(
        name=fields.text("name"),
        type=fields.text("type"),
        durable=fields.flag("durable"),
        auto_delete=fields.flag("auto_delete"),
        internal=fields.flag("internal"),
        arguments=fields.arguments("arguments"),
    )


def read_binding(fields: Fields) -> Binding:
    return Binding(
        source=fields.text("source"),
        destination=fields.text("destination"),
        destination_kind="queue" if fields.text("destination_type") == "queue" else "exchange",
        routing_key=fields.text("routing_key"),
        arguments=fields.arguments("arguments"),
    )


def read_policy(fields: Fields) -> Policy:
    return Policy(
        name=fields.text("name"),
        pattern=fields.text("pattern"),
        definition=fields.arguments("definition"),
        priority=fields.number("priority") or 0,
        apply_to=_APPLY_TO.get(fields.text("apply-to"), "all"),
    )


def read_permission(fields: Fields) -> Permission:
    return Permission(
        user=fields.text("user"),
        configure=fields.text("configure"),
        write=fields.text("write"),
        read=fields.text("read"),
    )


def read_topic_permission(fields: Fields) -> TopicPermission:
    return TopicPermission(
        user=fields.text("user"),
        exchange=fields.text("exchange"),
        write=fields.text("write"),
        read=fields.text("read"),
    )


def read_user(fields: Fields) -> tuple[str, bool]:
    """Read a user's name, and whether it has any tags: a list, or in older versions a text."""
    return fields.text("name"), fields.has("tags")


def read_password(fields: Fields) -> PasswordHash | None:
    """Read the hash of a user's password; None where it is not told. One without a password has an empty hash."""
    encoded = fields.told("password_hash")
    return None if encoded is None else PasswordHash(fields.told("hashing_algorithm") or "", encoded)


def _scalar(value: object) -> ArgumentValue:
    """Arguments may be tables and arrays; nobody of ours has such, so it is enough that they differ."""
    return value if isinstance(value, str | int | float) else json.dumps(value, sort_keys=True)
