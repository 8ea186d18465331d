"""The broker users of a vhost's consumers: all are read at once, and each is mended by itself.

It is done in the desk's own thread, before the consumers are seen to: a broker that hangs holds up its own desk alone.
"""

import logging
from collections.abc import Iterable, Mapping

from redrive.access import Account, user_name
from redrive.errors import AccessRefused, BrokerError, Unreachable
from redrive.granting import revoke_access
from redrive.management import Management
from redrive.ownership import Whose, whose
from redrive.spec import Consumer
from redrive.topology import OWNER, Owner
from redrive_operator.credentials import Access
from redrive_operator.errors import KubeError, KubeInvalid, KubeRefused, NameTaken
from redrive_operator.explaining import explain_topology
from redrive_operator.observation import Problem
from redrive_operator.reasons import TopologyReason, WorkersReason
from redrive_operator.registry import Entry
from redrive_operator.subject import Key
from redrive_operator.tools import Tools
from redrive_operator.users import ROTATE, UserSeen, ensure_user

LOGGER = logging.getLogger(__name__)

# Each user's Secret is read by its name, so not at every turn.
SECONDS = 40.0

User = UserSeen | Problem | KubeError


class UserDesk:
    """Remembers who was seen to when."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._known: dict[Key, tuple[float, str, UserSeen]] = {}
        self._revoked: set[str] = set()  # uids

    def see_to(self, consumers: Iterable[tuple[Entry, Consumer]], access: Access) -> Mapping[Key, User]:
        """Have every consumer's user; raises Unreachable where the broker went away meanwhile."""
        users: dict[Key, User] = {}
        todo: list[tuple[Entry, Consumer]] = []
        for entry, consumer in consumers:
            at, uid, known = self._known.get(entry.key, (0.0, "", None))
            fresh = self._tools.clock() - at < SECONDS and uid == entry.subject.uid
            if known is not None and fresh and known.rotated_for == entry.subject.annotations.get(ROTATE, ""):
                users[entry.key] = known
            else:
                todo.append((entry, consumer))
        management = access.manage()
        if todo and management is not None:
            users |= self._mend(todo, access, management)
        return users

    def revoke(self, refused: Iterable[tuple[Entry, Consumer]], access: Access) -> None:
        """Take the users from consumers that may have none, once; their workers are cut off.

        Who may not, or whose vhost is another cluster's, is left alone, and looked at again in the next turn.
        """
        management = access.manage()
        todo = [(entry, consumer) for entry, consumer in refused if entry.subject.uid not in self._revoked]
        if not todo or management is None:
            return
        try:
            if is_anothers(management, self._tools.owner):
                return
            accounts = management.read_accounts()
        except AccessRefused as error:
            LOGGER.warning("users that nobody may have any more cannot be looked for: %s", error)
            return
        for entry, consumer in todo:
            user = user_name(consumer.address, consumer.broker.vhost)
            if user not in accounts or self._take_from(consumer, management):
                self._revoked.add(entry.subject.uid)
                self._known.pop(entry.key, None)

    def _take_from(self, consumer: Consumer, management: Management) -> bool:
        """Delete one consumer's user, and say whether that could be done: if not, others' are deleted all the same."""
        try:
            revoke_access(consumer.address, vhost=consumer.broker.vhost, management=management)
        except Unreachable:
            raise
        except BrokerError as error:
            LOGGER.warning("the user of %s, which may have none, cannot be deleted: %s", consumer.address, error)
            return False
        return True

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)

    def _mend(self, todo: list[tuple[Entry, Consumer]], access: Access, management: Management) -> Mapping[Key, User]:
        try:
            accounts = management.read_accounts()
        except AccessRefused as error:
            sentence = f"users can be made by an administrator alone: {error}"
            return {entry.key: Problem(TopologyReason.ACCESS_REFUSED, sentence) for entry, _ in todo}
        return {entry.key: self._ensure(entry, consumer, access, management, accounts) for entry, consumer in todo}

    def _ensure(
        self,
        entry: Entry,
        consumer: Consumer,
        access: Access,
        management: Management,
        accounts: Mapping[str, Account],
    ) -> User:
        found = accounts.get(user_name(consumer.address, consumer.broker.vhost), Account())
        try:
            user = ensure_user(
                entry.subject, consumer, access, management=management, kube=self._tools.kube, found=found
            )
        except Unreachable:
            raise
        except BrokerError as error:
            return explain_topology(error)
        except NameTaken as error:
            return Problem(WorkersReason.NAME_TAKEN, str(error))
        except (KubeInvalid, KubeRefused) as error:
            return Problem(WorkersReason.REFUSED, f"the Secret with its password cannot be written: {error}")
        except KubeError as error:
            return error
        self._revoked.discard(entry.subject.uid)
        remembered = UserSeen(user.name, user.secret, user.digest, user.rotated_for)
        self._known[entry.key] = (self._tools.clock(), entry.subject.uid, remembered)
        return user


def is_anothers(management: Management, owner: Owner) -> bool:
    """Say whether another cluster manages the vhost: its users may have the names of ours."""
    return whose(management.read_exchange(OWNER), owner) is Whose.ANOTHERS
