"""Sees to a BrokerConnection itself: whether its broker answers, and whether its credentials suffice to lend it out."""

from redrive.errors import BrokerError
from redrive.spec import BrokerConnection
from redrive_operator.admission import shuts_out
from redrive_operator.credentials import Credentials, CredentialsError
from redrive_operator.explaining import explain_broker
from redrive_operator.judge import judge_connection, judge_invalid
from redrive_operator.kube import CONNECTIONS
from redrive_operator.observation import ConnectionSeen, Problem
from redrive_operator.reasons import BrokerReason, PermissionsReason
from redrive_operator.registry import ConnectionEntry, DeskKey, Entry, read_connection_entry
from redrive_operator.subject import Key
from redrive_operator.sweep import Sweep
from redrive_operator.telling import tell_verdict
from redrive_operator.tools import Tools
from redrive_operator.turns import Turn

ADMINISTRATOR = "administrator"


def connection_key(name: str) -> DeskKey:
    """No vhost has an empty name, so this is the desk of the connection itself."""
    return DeskKey("Connection", "", name, "")


class ConnectionDesk:
    """Works in one thread at a time."""

    def __init__(self, key: DeskKey, tools: Tools) -> None:
        self.key = key
        self._tools = tools
        self._credentials = Credentials(key, tools.kube, tools.registry, own_namespace=tools.settings.namespace)
        self._sweep = Sweep(tools)

    def turn(self, _: frozenset[Key] | None) -> Turn:
        entry = self._tools.registry.connection(self.key.name)
        if entry is None:
            return Turn(reached=True)
        entry = self._hold(entry)
        if entry is None:
            return Turn(reached=True)
        now = self._tools.now()
        if entry.error is not None:
            self._tools.clusters.pop(self.key.name, None)
            verdict = judge_invalid(entry.subject, entry.error, now=now)
            reached = True
        else:
            seen = self._look()
            verdict = judge_connection(entry.subject, seen, now=now)
            reached = seen.problem is None
        tell_verdict(
            self._tools,
            CONNECTIONS,
            entry.subject,
            verdict,
            take=lambda body: self._tools.connection_written(read_connection_entry(body)),
        )
        return Turn(reached=reached)

    def _hold(self, entry: ConnectionEntry) -> ConnectionEntry | None:
        """Keep a connection that is being deleted until nobody uses it: its consumers' queues are cleared by it."""
        wanted = not entry.subject.deleting or self._count_consumers() > 0 or self._clears()
        if entry.subject.held == wanted or (entry.subject.deleting and not entry.subject.held):
            return entry if wanted else None
        body = self._tools.kube.set_finalizer(entry.subject, wanted)
        if body is None or not wanted:
            return None
        held = read_connection_entry(body)
        self._tools.connection_written(held)
        return held

    def _clears(self) -> bool:
        """Say whether users are there that nobody has any more, and that nobody could delete without the connection."""
        self._sweep.hurry()
        self._look()
        return self._sweep.waits

    def _count_consumers(self) -> int:
        """Count whom it serves: whoever it is not open to has nothing here, and cannot keep it."""
        entry = self._tools.registry.connection(self.key.name)
        connection = None if entry is None else entry.connection
        users = [user for user in self._tools.registry.users_of(self.key.name) if not user.subject.released]
        return sum(connection is None or not _is_shut_out(user, connection) for user in users)

    def _look(self) -> ConnectionSeen:
        seen = self._ask()
        if not seen.management:
            self._tools.clusters.pop(self.key.name, None)
            self._sweep.forget()
        return seen

    def _ask(self) -> ConnectionSeen:
        consumers = self._count_consumers()
        try:
            access = self._credentials.resolve()
            management = access.manage()
            if management is None:
                sentence = (
                    "users are made by the management API: set spec.managementURL, or management_uri in the Secret"
                )
                return ConnectionSeen(Problem(BrokerReason.MANAGEMENT_REQUIRED, sentence), consumers=consumers)
            me = management.read_identity()
        except CredentialsError as error:
            return ConnectionSeen(error.problem, consumers=consumers)
        except BrokerError as error:
            return ConnectionSeen(explain_broker(error), consumers=consumers)
        lacking = None
        self._tools.clusters[self.key.name] = me.cluster_name
        if ADMINISTRATOR not in me.tags:
            sentence = "only an administrator can make users: give this one the tag administrator"
            lacking = Problem(PermissionsReason.INSUFFICIENT, sentence)
            self._sweep.forget()
        else:
            self._sweep.sweep(access, management, me.cluster_name)
        return ConnectionSeen(
            permissions=lacking,
            version=me.version,
            cluster_name=me.cluster_name,
            management=True,
            consumers=consumers,
        )


def _is_shut_out(user: Entry, connection: BrokerConnection) -> bool:
    vhost = "" if user.desk is None else user.desk.vhost
    return shuts_out(connection, user.key.namespace, vhost)
