"""The door to RabbitMQ's management API: nobody else speaks HTTP to a broker.

Every name in a path is quoted, whatever characters it has; every call ends by a deadline; every answer is distrusted
(`answers`). Errors are ours: they name the call by its path and never hold the credentials.
"""

import json
import ssl
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from itertools import chain
from secrets import token_bytes
from urllib.parse import quote

from redrive.access import Account, Grant, Permission, TopicPermission, User
from redrive.answers import (
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
from redrive.endpoints import Endpoint, tls_context
from redrive.errors import AccessRefused, BadAnswer, BrokerError, NotFound, Unreachable
from redrive.password_hash import SALT_BYTES, PasswordHash, hash_password
from redrive.reading import FoundExchange, FoundQueue, Reading
from redrive.timed_http import Deadline, TimedConnection

# The longest silence of a broker that answers; and the longest answer, of one that has ten thousand queues to count.
TIMEOUT_SECONDS = 20
DEADLINE_SECONDS = 60

# A vhost of ten thousand queues answers with some megabytes; what is longer than this is not a list of queues.
LONGEST_ANSWER = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Identity:
    """A broker, and the tags of the user who asked."""

    version: str
    cluster_name: str
    tags: frozenset[str]


class Management:
    """One vhost, by the management API of its broker. Every call is a connection of its own: nothing to keep alive."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        vhost: str,
        tls: ssl.SSLContext | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._endpoint = endpoint
        self._deadline_seconds = deadline_seconds
        self._vhost = vhost
        self._tls = (tls or tls_context()) if endpoint.secure else None
        credentials = b64encode(f"{endpoint.user}:{endpoint.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}

    def read(self) -> Reading:
        """Read the whole vhost, in one call for each kind of thing."""
        overview = Fields(self._get("overview", columns=("rabbitmq_version", "cluster_name")), "overview")
        exchanges = self._get("exchanges", self._vhost, columns=EXCHANGE_COLUMNS)
        return Reading(
            version=overview.text("rabbitmq_version"),
            cluster_name=overview.text("cluster_name"),
            exchanges={exchange.name: exchange for exchange in read_list(exchanges, "exchange", read_exchange)},
            queues=self.read_queues(),
            bindings=frozenset(read_list(self._get("bindings", self._vhost), "binding", read_binding)),
            policies=frozenset(read_list(self._get("policies", self._vhost), "policy", read_policy)),
            operator_policies=frozenset(
                read_list(self._get("operator-policies", self._vhost), "operator policy", read_policy)
            ),
        )

    def read_identity(self) -> Identity:
        """Read which broker answers, and as whom it takes us."""
        overview = Fields(self._get("overview", columns=("rabbitmq_version", "cluster_name")), "overview")
        me = Fields(self._get("whoami"), "user")
        return Identity(overview.text("rabbitmq_version"), overview.text("cluster_name"), frozenset(me.words("tags")))

    def read_exchange(self, name: str) -> FoundExchange | None:
        """Read one exchange; None where there is none, nor perhaps the vhost."""
        found = self._get_or_none("exchanges", self._vhost, name)
        return None if found is None else read_exchange(Fields(found, "exchange"))

    def read_queues(self) -> dict[str, FoundQueue]:
        queues = self._get("queues", self._vhost, columns=QUEUE_COLUMNS)
        return {queue.name: queue for queue in read_list(queues, "queue", read_queue)}

    def put_policy(self, policy: Policy) -> None:
        body = {
            "pattern": policy.pattern,
            "definition": dict(policy.definition),
            "priority": policy.priority,
            "apply-to": policy.apply_to,
        }
        self._call("PUT", "policies", self._vhost, policy.name, body=body)

    def delete_policy(self, name: str) -> None:
        self._delete("policies", self._vhost, name)

    def put_user(self, name: str, password: str) -> None:
        """Make a user without tags, or give one another password, as a hash that can be compared with it later."""
        hashed = hash_password(password, salt=token_bytes(SALT_BYTES))
        body = {"password_hash": hashed.encoded, "hashing_algorithm": hashed.algorithm, "tags": ""}
        self._call("PUT", "users", name, body=body)

    def delete_user(self, name: str) -> None:
        """Delete a user with all its permissions. Its connections stay open: close them too."""
        self._delete("users", name)

    def grant(self, grant: Permission | TopicPermission) -> None:
        match grant:
            case Permission(user, configure, write, read):
                body = {"configure": configure, "write": write, "read": read}
                self._call("PUT", "permissions", self._vhost, user, body=body)
            case TopicPermission(user, exchange, write, read):
                # One call sets one exchange's patterns and leaves the others'.
                body = {"exchange": exchange, "write": write, "read": read}
                self._call("PUT", "topic-permissions", self._vhost, user, body=body)

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
        permissions = self._get_or_none("permissions", self._vhost, user)
        topics = self._get_or_none("topic-permissions", self._vhost, user)
        return _account_of(
            Fields(found, "user"),
            [] if permissions is None else [read_permission(Fields(permissions, "permission"))],
            [] if topics is None else read_list(topics, "topic permission", read_topic_permission),
        )

    def read_accounts(self) -> dict[str, Account]:
        """Read what is known of every user, in three calls however many there are."""
        grants: defaultdict[str, list[Grant]] = defaultdict(list)
        permissions = self._get("vhosts", self._vhost, "permissions")
        for permission in read_list(permissions, "permission", read_permission):
            grants[permission.user].append(permission)
        topics = self._get("vhosts", self._vhost, "topic-permissions")
        for topic in read_list(topics, "topic permission", read_topic_permission):
            grants[topic.user].append(topic)
        users = read_list(self._get("users"), "user", lambda fields: (fields.text("name"), fields))
        return {name: _account_of(fields, grants[name]) for name, fields in users}

    def read_permitted(self) -> list[tuple[str, str]]:
        """List who may do something where: a user and a vhost, of every vhost of the broker."""
        permissions = self._get("permissions")
        return [*read_list(permissions, "permission", lambda fields: (fields.text("user"), fields.text("vhost")))]

    def close_connections(self, user: str) -> int:
        """Close every connection of a user, so that a narrower permission counts from now on; say how many."""
        connections = self._get("connections", columns=("name", "user"))
        names = read_list(connections, "connection", lambda fields: (fields.text("name"), fields.text("user")))
        theirs = [name for name, owner in names if owner == user]
        for name in theirs:
            self._delete("connections", name)
        return len(theirs)

    def _get(self, *path: str, columns: tuple[str, ...] = ()) -> object:
        return self._call("GET", *path, query=f"?columns={','.join(columns)}" if columns else "")

    def _get_or_none(self, *path: str) -> object:
        try:
            return self._get(*path)
        except NotFound:
            return None

    def _delete(self, *path: str) -> None:
        """Delete something; what is not there counts as deleted."""
        with suppress(NotFound):
            self._call("DELETE", *path)

    def _call(self, method: str, *path: str, body: object = None, query: str = "") -> object:
        _refuse_dots(path)
        where = "/".join(quote(part, safe="") for part in path)
        what = f"{method} {where} of the management API at {self._endpoint}"
        status, answer = self._exchange(what, method, f"{self._endpoint.path}/api/{where}{query}", body)
        if status in (200, 201, 204):
            return _parse(answer, what)
        raise _refusal(status, answer, what)

    def _exchange(self, what: str, method: str, path: str, body: object) -> tuple[int, bytes]:
        deadline = Deadline(self._deadline_seconds, silence=TIMEOUT_SECONDS)
        connection = TimedConnection(self._endpoint, self._tls, deadline)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            response = connection.getresponse()
            return response.status, response.read(LONGEST_ANSWER)
        except TimeoutError as error:
            raise Unreachable(
                f"{what}: no whole answer in time, the broker is too slow or something holds it up"
            ) from error
        except OSError as error:
            raise Unreachable(f"{what}: {error.strerror or type(error).__name__}") from error
        except UnicodeError as error:
            raise Unreachable(f"{what}: its host name cannot be one ({type(error).__name__})") from error
        except HTTPException as error:
            raise BadAnswer(f"{what} answered, but not in HTTP: {type(error).__name__}") from error
        finally:
            connection.close()


def _refuse_dots(path: Sequence[str]) -> None:
    """Refuse names by which the API would be asked for something else, even when they are quoted.

    To RabbitMQ `queues/.` is `queues`, those of every vhost, and `vhosts/../permissions` is everybody's permissions.
    """
    if not {".", ".."}.isdisjoint(path):
        raise BrokerError('the management API cannot be asked for what is called "." or "..": choose another name')


def _account_of(user: Fields, *grants: Iterable[Grant]) -> Account:
    """A user with tags is not the one that was planned: it would be let into the management API."""
    name, tagged = read_user(user)
    itself = () if tagged else (User(name),)
    return Account(frozenset((*itself, *chain(*grants))), read_password(user), exists=True)


def _parse(answer: bytes, what: str) -> object:
    if not answer.strip():
        return None
    try:
        parsed: object = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"{what} did not answer in JSON: is this really its address?") from error
    return parsed


def _refusal(status: int, answer: bytes, what: str) -> BrokerError:
    reason = _reason(answer)
    match status:
        case 401 | 403:
            return AccessRefused(f"{what} was refused ({reason}): check the user's password, tags and permissions")
        case 404:
            return NotFound(f"{what}: there is no such thing")
        case 502 | 503 | 504:
            return Unreachable(f"{what}: {status} {reason}")
        case _:
            return BrokerError(f"{what} was answered with {status}: {reason}")


def _reason(answer: bytes) -> str:
    """Tell what RabbitMQ says of a refusal, and of anybody else's answer nothing: it may echo what was sent."""
    try:
        parsed = json.loads(answer)
    except (ValueError, RecursionError):
        return "no reason given"
    reason = parsed.get("reason") if isinstance(parsed, dict) else None
    return " ".join(reason.split())[:300] if isinstance(reason, str) else "no reason given"
