"""The broker user of a consumer that uses a BrokerConnection, and the Secret in which its password lies.

The Secret is the truth: what stands in it is what the broker's user gets. So a Secret that was deleted is written with
a new password, a rotation is a new Secret, and whatever was interrupted in between is finished by the next turn.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from redrive.access import Account, Grant, Permission, TopicPermission, User, user_name
from redrive.granting import ensure_access
from redrive.management import Management
from redrive.spec import Consumer
from redrive.topology import Wanted
from redrive_operator.credentials import Access
from redrive_operator.kube import Kube, SecretSeen
from redrive_operator.names import broker_secret_name
from redrive_operator.subject import Key, Subject
from redrive_operator.workload import config_digest, stretch

ROTATE = "redrive.dev/rotate-password"
ROTATED = "redrive.dev/rotated-for"

_PASSWORD_BYTES = 24


@dataclass(frozen=True, slots=True)
class UserSeen:
    """The consumer's user. `repaired` names what it lacked; `digest` changes with its Secret, and tells nothing."""

    name: str
    secret: str
    digest: str
    rotated_for: str = ""
    rotated: bool = False
    repaired: tuple[str, ...] = ()


def ensure_user(
    subject: Subject, consumer: Consumer, access: Access, *, management: Management, kube: Kube, found: Account
) -> UserSeen:
    """Have the Secret, the user and its permissions; raises for what the broker or the API server refuses.

    `found` is what was read of the user, once for all users of the vhost.
    """
    user = user_name(consumer.address, consumer.broker.vhost)
    key = Key(subject.key.namespace, broker_secret_name(subject.key.name))
    secret = kube.read_secret(key)
    asked = subject.annotations.get(ROTATE, "")
    rotated = secret is not None and asked != "" and secret.annotations.get(ROTATED, "") != asked
    data = _contents(user, _password(secret, rotated=rotated), access)
    written = secret is None or not data.items() <= secret.data.items() or secret.annotations.get(ROTATED, "") != asked
    if written:
        kube.write_secret(key, data, owner=subject, annotations={ROTATED: asked} if asked else {})
    granted = ensure_access(
        Wanted.of(consumer),
        vhost=consumer.broker.vhost,
        management=management,
        password=data["password"],
        found=found,
        password_changed=written,
    )
    repaired = tuple(_describe(grant) for grant in granted.repaired) if found.exists else ()
    return UserSeen(user, key.name, _digest(data), asked, rotated, repaired)


def _digest(data: Mapping[str, str]) -> str:
    """A password of ours cannot be guessed from a digest; one that a person put in its place might."""
    if len(data["password"]) >= _PASSWORD_BYTES:
        return config_digest(repr(sorted(data.items())))
    return stretch(data, data["username"])


def _describe(grant: Grant) -> str:
    match grant:
        case User(name):
            return f"user {name!r} was missing"
        case TopicPermission(user, exchange):
            return f"topic permission of user {user!r} on {exchange!r} was not as it should be"
        case Permission(user):
            return f"permissions of user {user!r} were not as they should be"


def _password(found: SecretSeen | None, *, rotated: bool) -> str:
    # A line break at the end, from somebody's editor, is not read by workers either.
    known = "" if found is None or rotated else found.data.get("password", "").rstrip("\r\n")
    return known or secrets.token_urlsafe(_PASSWORD_BYTES)


def _contents(user: str, password: str, access: Access) -> dict[str, str]:
    """What a worker needs, and no more: neither the administrator's name nor his certificate."""
    scheme = "amqps" if access.amqp.secure else "amqp"
    optional = {"ca.crt": access.ca if access.amqp.secure else None, "server_name": access.amqp.server_name}
    return {
        "uri": f"{scheme}://{access.amqp}",
        "username": user,
        "password": password,
        **{name: value for name, value in optional.items() if value},
    }
