"""Gives a consumer's broker user exactly what was planned for it, and nothing more.

Topic permissions come before the permission to write, because without them every key is open. Whatever the user had
otherwise is overwritten, and its connections are closed then: an open one keeps what it was once allowed.

Whoever does this may be killed at any moment, and the next one sees only what stands on the broker. So a user that is
to be narrowed may do nothing at first, and gets its permission last, when its connections are closed: as long as that
is missing, everything is done again. For the same reason one that is to go is locked out, then cut off, then deleted.

The password that is given here is the truth, and the broker is brought to it. Connections outlive that: they belong to
workers which are about to be replaced anyway.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_urlsafe

from redrive.access import NOTHING, Account, Grant, Permission, TopicPermission, User, plan_access, user_name
from redrive.management import Management
from redrive.topology import Wanted


@dataclass(frozen=True, slots=True)
class Granted:
    """What was given now, of what was missing or different, and how many connections that closed."""

    user: str
    repaired: tuple[Grant, ...]
    closed_connections: int = 0
    password_changed: bool = False


def ensure_access(
    wanted: Wanted,
    *,
    vhost: str,
    management: Management,
    password: str,
    found: Account | None = None,
    password_changed: bool = False,
) -> Granted:
    """Have the consumer's user exist with its permissions and this password.

    Who has just made another password says so, and it is put in any case: the broker may tell no hash to compare.
    `found` is what was read of the user, once for many (`Management.read_accounts`); an empty Account where it is not.
    """
    user = user_name(wanted.address, vhost)
    found = management.read_account(user) if found is None else found
    planned = plan_access(wanted, vhost)
    [permission] = [grant for grant in planned if isinstance(grant, Permission)]
    lacking = tuple(grant for grant in planned if grant not in found.grants)
    outdated = found.exists and (password_changed or _differs(found, password))
    if outdated or User(user) in lacking:
        management.put_user(user, password)
    closed = _give(lacking, permission, management, exists=found.exists) if lacking else 0
    return Granted(user, lacking, closed, password_changed=outdated)


def _give(lacking: Sequence[Grant], permission: Permission, management: Management, *, exists: bool) -> int:
    """Give what is lacking, the permission last; say how many connections were closed before."""
    if exists:
        management.grant(Permission(permission.user, NOTHING, NOTHING, NOTHING))
    for grant in lacking:
        if isinstance(grant, TopicPermission):
            management.grant(grant)
    closed = management.close_connections(permission.user) if exists else 0
    management.grant(permission)
    return closed


def _differs(found: Account, password: str) -> bool:
    return found.password is not None and not found.password.matches(password)


def revoke_access(address: str, *, vhost: str, management: Management) -> None:
    """Delete the consumer's user and end its connections: with a password that nobody has, none comes meanwhile."""
    user = user_name(address, vhost)
    management.put_user(user, token_urlsafe())
    management.close_connections(user)
    management.delete_user(user)
