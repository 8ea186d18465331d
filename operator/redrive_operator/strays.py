"""Which broker users no consumer has any more: pure.

The rule the code does not show: a user that a living consumer may have is none of these, and where that cannot be told
it may. Two BrokerConnections can lead to the same broker, so whoever uses another one counts as well, unless that is
known to lead elsewhere. Of an object whose spec cannot be read only the name is known: it may have a user wherever a
connection admits it. So may one that names a connection which is gone, for that may have another name now.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from redrive.access import address_of_user
from redrive.ladder import address_of, object_of
from redrive_operator.admission import shuts_out
from redrive_operator.reasons import ConditionType
from redrive_operator.registry import ConnectionEntry, Entry
from redrive_operator.subject import Key


@dataclass(frozen=True, slots=True)
class Stray:
    """A user that a consumer of this address once had in this vhost."""

    address: str
    vhost: str

    @property
    def key(self) -> Key:
        """Whose it was."""
        return Key(*object_of(self.address))


@dataclass(frozen=True, slots=True)
class Ways:
    """The connections that may lead to one broker, and the names of those that are known to lead to another."""

    here: tuple[ConnectionEntry, ...]
    elsewhere: frozenset[str] = frozenset()

    def admitting(self, namespace: str, vhost: str) -> frozenset[str]:
        """Name those that are open; of one that cannot be read nobody knows, so it may be."""
        open_ones = (
            one for one in self.here if one.connection is None or not shuts_out(one.connection, namespace, vhost)
        )
        return frozenset(one.subject.key.name for one in open_ones)

    def know(self, name: str) -> bool:
        return name in self.elsewhere or any(one.subject.key.name == name for one in self.here)


def find_ways(cluster: str, connections: Iterable[ConnectionEntry], clusters: Mapping[str, str]) -> Ways:
    """Sort connections by whether they may lead to this cluster of brokers, by what each was last found to lead to."""
    known = {one.subject.key.name: one for one in connections}
    elsewhere = frozenset(name for name in known if clusters.get(name, cluster) != cluster)
    return Ways(tuple(one for name, one in known.items() if name not in elsewhere), elsewhere)


def find_strays(permitted: Iterable[tuple[str, str]], consumers: Iterable[Entry], ways: Ways) -> list[Stray]:
    """Find those that nobody has, of the users who may do something in a vhost of the broker."""
    living = _by_address(consumers)
    ours = _read_users(permitted)
    return [user for user in ours if not may_have_user(living.get(user.address), user.vhost, ways)]


def has_unread_users(permitted: Iterable[tuple[str, str]], consumers: Iterable[Entry], ways: Ways) -> bool:
    """Say whether somebody has a user here of whom nobody can read which connection it uses: this one, perhaps."""
    unread = _by_address(entry for entry in consumers if entry.desk is None)
    users = (user for user in _read_users(permitted) if user.address in unread)
    return any(may_have_user(unread[user.address], user.vhost, ways) for user in users)


def _by_address(consumers: Iterable[Entry]) -> dict[str, Entry]:
    return {address_of(entry.key.namespace, entry.key.name): entry for entry in consumers}


def _read_users(permitted: Iterable[tuple[str, str]]) -> list[Stray]:
    named = ((address_of_user(user, vhost), vhost) for user, vhost in permitted)
    return [Stray(address, vhost) for address, vhost in named if address is not None]


def may_have_user(consumer: Entry | None, vhost: str, ways: Ways) -> bool:
    """Say whether this consumer, if there is one, may have a user in a vhost of the broker."""
    if consumer is None or consumer.subject.released:
        return False
    admitting = ways.admitting(consumer.key.namespace, vhost)
    desk = consumer.desk
    if desk is None:
        return bool(admitting)
    if desk.mode == "Connection" and desk.vhost == vhost and desk.name not in ways.elsewhere:
        return desk.name in admitting if ways.know(desk.name) else bool(admitting)
    # It has moved. Until it was seen to arrive, its workers are those of before.
    return bool(admitting) and not consumer.subject.was_found(ConditionType.TOPOLOGY_READY)
