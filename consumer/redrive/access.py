r"""What a consumer's own broker user may do: read its queue, and send on its own messages. Nothing else.

Patterns are anchored and escaped, and let no line break follow: `$` matches before one at the end too, so such a key
would pass for the consumer's own, and end among the orphans of the vhost. A topic exchange without a topic permission
is open to all keys, so topic permissions come before the permission to write: `plan_access` lists them in that order,
and it must be kept.
"""

import re
from dataclasses import dataclass
from hashlib import sha256

from redrive.ladder import PLACES, RETRY
from redrive.password_hash import PasswordHash
from redrive.topology import DEAD, Wanted

NOTHING = "^$"

# An AMQP short string has 255 bytes, and an address is ASCII.
_LONGEST_ADDRESS = 255 - len("redrive/") - len("/01234567")

# <namespace>/<name> of an object, as it is written in an address.
_ADDRESS = re.compile(r"[a-z0-9][-a-z0-9]*/[a-z0-9][-a-z0-9_]*")

_END = r"$(?!\n)"
_DIGITS = rf"^([0-9a-f]\.){{{PLACES}}}"


@dataclass(frozen=True, slots=True)
class User:
    """A broker user without tags: it has no way into the management API."""

    name: str


@dataclass(frozen=True, slots=True)
class Permission:
    """What a user may do in a vhost, as patterns over the names of exchanges and queues."""

    user: str
    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class TopicPermission:
    """Which routing keys a user may publish to a topic exchange (`write`), or bind a queue with (`read`)."""

    user: str
    exchange: str
    write: str
    read: str


Grant = User | TopicPermission | Permission


@dataclass(frozen=True, slots=True)
class Account:
    """A user as it was found. No `password` means that the broker does not tell the hash of it."""

    grants: frozenset[Grant] = frozenset()
    password: PasswordHash | None = None
    exists: bool = False


def user_name(address: str, vhost: str) -> str:
    """Name the consumer's user. Users are the whole broker's, so the vhost is in it, as a digest: both may be long."""
    digest = sha256(f"{vhost}\0{address}".encode()).hexdigest()
    return f"redrive/{address[:_LONGEST_ADDRESS]}/{digest[:8]}"


def address_of_user(name: str, vhost: str) -> str | None:
    """Say whose user this is; None for one that is not surely a consumer's of this vhost.

    The digest must be that of the vhost and the address. Of an address that was cut nobody can tell, so that is None.
    """
    address = name.removeprefix("redrive/").rpartition("/")[0]
    is_one = _ADDRESS.fullmatch(address) is not None and name == user_name(address, vhost)
    return address if is_one else None


def plan_access(wanted: Wanted, vhost: str) -> tuple[Grant, ...]:
    """List what the consumer's user is granted, in the order in which it must be given."""
    user = user_name(wanted.address, vhost)
    own = _only(wanted.address)
    return (
        User(user),
        TopicPermission(user, RETRY, write=_DIGITS + own.removeprefix("^"), read=NOTHING),
        TopicPermission(user, DEAD, write=own, read=NOTHING),
        Permission(user, configure=NOTHING, write=rf"^redrive\.(retry|dead){_END}", read=_only(wanted.queue)),
    )


def _only(name: str) -> str:
    """Write a pattern that matches this name and nothing else, whatever comes behind it."""
    return f"^{re.escape(name)}{_END}"
