"""The door to RabbitMQ's management API: nobody else speaks HTTP to a broker.

Every name in a path is quoted, whatever characters it has; every call ends by a deadline; every answer is distrusted
(`answers`). Errors are ours: they name the call by its path and never hold the credentials.
"""

import ssl
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from secrets import token_bytes
from typing import TypeVar

from redrive.access import Account, Grant, Permission, TopicPermission, User
from redrive.answers import (
    BINDING_COLUMNS,
    EXCHANGE_COLUMNS,
    QUEUE_COLUMNS,
    Fields,
    read_binding,
    read_exchange,
    read_list,
    read_password,
    read_permission,
    read_policy,
    read_queue,
    read_topic_permission,
    read_user,
)
from redrive.elements import Policy
from redrive.endpoints import Endpoint
from redrive.errors import AccessRefused, BadAnswer, NotFound, Unreachable
from redrive.long_list import Allowance, read_items
from redrive.management_call import TIMEOUT_SECONDS, Api
from redrive.password_hash import SALT_BYTES, PasswordHash, hash_password
from redrive.reading import FoundExchange, FoundQueue, Reading
from redrive.timed_http import Deadline

# For a call, and for all calls of a reading together; of a broker that has ten thousand queues to count.
DEADLINE_SECONDS = 60

_SINGULAR = {
    "bindings": "binding",
    "exchanges": "exchange",
    "operator-policies": "operator policy",
    "policies": "policy",
    "queues": "queue",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identity:
    """A broker, and the tags of the user who asked."""

    version: str
    cluster_name: str
    tags: frozenset[str]


class Management:
    """One vhost, by the management API of its broker."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        vhost: str,
        tls: ssl.SSLContext | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._api = Api(endpoint, tls)
        self._deadline_seconds = deadline_seconds
        self._vhost = vhost

    def read(self) -> Reading:
        """Read the whole vhost, in one call for each kind of thing, and all of them by one deadline."""
        until, within = self._deadline(), Allowance()
        overview = self._read_overview(until)
        try:
            exchanges = self._list("exchanges", read_exchange, until, within, columns=EXCHANGE_COLUMNS)
            queues = self._list("queues", read_queue, until, within, columns=QUEUE_COLUMNS)
            bindings = self._list("bindings", read_binding, until, within, columns=BINDING_COLUMNS)
            policies = self._list("policies", read_policy, until, within)
            operator_policies = self._list("operator-policies", read_policy, until, within)
        except NotFound:
            self._doubt_that_it_is_gone(until)
            raise
        return Reading(
            version=overview.text("rabbitmq_version"),
            cluster_name=overview.text("cluster_name"),
            exchanges={exchange.name: exchange for exchange in exchanges},
            queues={queue.name: queue for queue in queues},
            bindings=frozenset(bindings),
            policies=frozenset(policies),
            operator_policies=frozenset(operator_policies),
        )

    def read_identity(self) -> Identity:
        """Read which broker answers, and as whom it takes us."""
        until = self._deadline()
        overview, me = self._read_overview(until), Fields(self._get("whoami", until=until), "user")
        return Identity(overview.text("rabbitmq_version"), overview.text("cluster_name"), frozenset(me.words("tags")))

    def read_exchange(self, name: str) -> FoundExchange | None:
        """Read one exchange; None where there is none, nor perhaps the vhost."""
        found = self._get_or_none("exchanges", self._vhost, name)
        return None if found is None else read_exchange(Fields(found, "exchange"))

    def read_queues(self) -> dict[str, FoundQueue]:
        queues = self._list("queues", read_queue, self._deadline(), Allowance(), columns=QUEUE_COLUMNS)
        return {queue.name: queue for queue in queues}

    def put_policy(self, policy: Policy) -> None:
        body = {
            "pattern": policy.pattern,
            "definition": dict(policy.definition),
            "priority": policy.priority,
            "apply-to": policy.apply_to,
        }
        self._put("policies", self._vhost, policy.name, body=body)

    def delete_policy(self, name: str) -> None:
        self._delete("policies", self._vhost, name)

    def put_user(self, name: str, password: str) -> None:
        """Make a user without tags, or give one another password, as a hash that can be compared with it later."""
        hashed = hash_password(password, salt=token_bytes(SALT_BYTES))
        body = {"password_hash": hashed.encoded, "hashing_algorithm": hashed.algorithm, "tags": ""}
        self._put("users", name, body=body)

    def delete_user(self, name: str) -> None:
        """Delete a user with all its permissions. Its connections stay open: close them too."""
        self._delete("users", name)

    def grant(self, grant: Permission | TopicPermission) -> None:
        match grant:
            case Permission(user, configure, write, read):
                body = {"configure": configure, "write": write, "read": read}
                self._put("permissions", self._vhost, user, body=body)
            case TopicPermission(user, exchange, write, read):
                # One call sets one exchange's patterns and leaves the others'.
                body = {"exchange": exchange, "write": write, "read": read}
                self._put("topic-permissions", self._vhost, user, body=body)

    def read_grants(self, user: str) -> frozenset[Grant]:
        """Read what a user may do in this vhost, itself included if it exists."""
        return self.read_account(user).grants

    def read_password(self, user: str) -> PasswordHash | None:
        """Read the hash of a user's password; None where there is no such user, or the broker does not tell."""
        found = self._get_or_none("users", user)
        return None if found is None else read_password(Fields(found, "user"))

    def read_account(self, user: str) -> Account:
        """Read what is known of one user. One that does not exist has nothing."""
        found = self._get_or_none("users", user)
        if found is None:
            return Account()
        permission = self._get_or_none("permissions", self._vhost, user)
        topics: list[TopicPermission] = []
        with suppress(NotFound):
            topics = self._list_at(("topic-permissions", self._vhost, user), "topic permission", read_topic_permission)
        return _account_of(
            Fields(found, "user"),
            [] if permission is None else [read_permission(Fields(permission, "permission"))],
            topics,
        )

    def read_accounts(self) -> dict[str, Account]:
        """Read what is known of every user, in three calls however many there are."""
        grants: defaultdict[str, list[Grant]] = defaultdict(list)
        until, within = self._deadline(), Allowance()
        here = ("vhosts", self._vhost)
        for permission in self._list_at((*here, "permissions"), "permission", read_permission, until, within):
            grants[permission.user].append(permission)
        topics = (*here, "topic-permissions")
        for topic in self._list_at(topics, "topic permission", read_topic_permission, until, within):
            grants[topic.user].append(topic)
        users = self._list_at(("users",), "user", lambda fields: (fields.text("name"), fields), until, within)
        return {name: _account_of(fields, grants[name]) for name, fields in users}

    def read_permitted(self) -> list[tuple[str, str]]:
        """List who may do something where: a user and a vhost, of every vhost of the broker."""
        return self._list_at(("permissions",), "permission", lambda fields: (fields.text("user"), fields.text("vhost")))

    def close_connections(self, user: str) -> int:
        """Close every connection of a user, so that a narrower permission counts from now on; say how many."""
        names = self._list_at(
            ("connections",),
            "connection",
            lambda fields: (fields.text("name"), fields.text("user")),
            columns=("name", "user"),
        )
        theirs = [name for name, owner in names if owner == user]
        for name in theirs:
            self._delete("connections", name)
        return len(theirs)

    def _deadline(self) -> Deadline:
        return Deadline(self._deadline_seconds, silence=TIMEOUT_SECONDS)

    def _read_overview(self, until: Deadline) -> Fields:
        columns = ("rabbitmq_version", "cluster_name")
        try:
            return Fields(self._get("overview", until=until, columns=columns), "overview")
        except NotFound as error:
            raise BadAnswer(f"{error}, which every RabbitMQ has: is this really its address?") from error

    def _doubt_that_it_is_gone(self, until: Deadline) -> None:
        """Raise where the vhost is there after all: with it go all its queues, so it is asked for by its name too."""
        with suppress(NotFound, AccessRefused):  # who may not ask has heard it once
            self._get("vhosts", self._vhost, until=until)
            raise Unreachable(f"the broker has the vhost {self._vhost!r}, and does not list what is in it")

    def _list(
        self,
        kind: str,
        read: Callable[[Fields], T],
        until: Deadline,
        within: Allowance,
        *,
        columns: tuple[str, ...] = (),
    ) -> list[T]:
        """List all of one kind in this vhost."""
        return self._list_at((kind, self._vhost), _SINGULAR[kind], read, until, within, columns=columns)

    def _list_at(
        self,
        path: tuple[str, ...],
        what: str,
        read: Callable[[Fields], T],
        until: Deadline | None = None,
        within: Allowance | None = None,
        *,
        columns: tuple[str, ...] = (),
    ) -> list[T]:
        with self._api.ask("GET", path, until or self._deadline(), query=_only(columns)) as answer:
            return list(read_list(read_items(answer.read, within or Allowance()), what, read))

    def _get(self, *path: str, until: Deadline | None = None, columns: tuple[str, ...] = ()) -> object:
        return self._api.call("GET", path, until or self._deadline(), query=_only(columns))

    def _get_or_none(self, *path: str) -> object:
        try:
            return self._get(*path)
        except NotFound:
            return None

    def _put(self, *path: str, body: object) -> None:
        self._api.call("PUT", path, self._deadline(), body=body)

    def _delete(self, *path: str) -> None:
        """Delete something; what is not there counts as deleted."""
        with suppress(NotFound):
            self._api.call("DELETE", path, self._deadline())


def _only(columns: tuple[str, ...]) -> str:
    return f"?columns={','.join(columns)}" if columns else ""


def _account_of(user: Fields, *grants: Iterable[Grant]) -> Account:
    """A user with tags is not the one that was planned: it would be let into the management API."""
    name, tagged = read_user(user)
    itself = () if tagged else (User(name),)
    return Account(frozenset((*itself, *chain(*grants))), read_password(user), exists=True)
