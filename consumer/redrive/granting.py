"""Gives a consumer's broker user exactly what was planned for it, and nothing more.

Topic permissions come before the permission to write, because without them every key is open. Whatever the user had
otherwise is overwritten, and its connections are closed then: an open one keeps what it was once allowed.
"""

from dataclasses import dataclass

from redrive.access import Grant, User, plan_access, user_name
from redrive.management import Management
from redrive.topology import Wanted


@dataclass(frozen=True, slots=True)
class Granted:
    """What was given now, of what was missing or different, and how many connections that closed."""

    user: str
    repaired: tuple[Grant, ...]
    closed_connections: int = 0


def ensure_access(wanted: Wanted, *, vhost: str, management: Management, password: str) -> Granted:
    """Have the consumer's user exist with its permissions. An existing user keeps its password."""
    user = user_name(wanted.address, vhost)
    found = management.read_grants(user)
    lacking = tuple(grant for grant in plan_access(wanted, vhost) if grant not in found)
    for grant in lacking:
        if isinstance(grant, User):
            management.put_user(grant.name, password)
        else:
            management.grant(grant)
    closed = management.close_connections(user) if lacking and found else 0
    return Granted(user, lacking, closed)


def revoke_access(address: str, *, vhost: str, management: Management) -> None:
    """Delete the consumer's user and end its connections."""
    user = user_name(address, vhost)
    management.delete_user(user)
    management.close_connections(user)
