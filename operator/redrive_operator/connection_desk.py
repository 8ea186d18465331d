"""Sees to a BrokerConnection itself: whether its broker answers, and whether its credentials suffice to lend it out."""

from redrive.errors import BrokerError
from redrive_operator.credentials import Credentials, CredentialsError
from redrive_operator.explaining import explain_broker
from redrive_operator.judge import judge_connection, judge_invalid
from redrive_operator.kube import CONNECTIONS
from redrive_operator.observation import ConnectionSeen, Problem
from redrive_operator.reasons import BrokerReason, PermissionsReason
from redrive_operator.registry import ConnectionEntry, DeskKey, read_connection_entry
from redrive_operator.subject import Key
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

    def turn(self, _: frozenset[Key] | None) -> Turn:
        entry = self._tools.registry.connection(self.key.name)
        if entry is None:
            return Turn(reached=True)
        entry = self._hold(entry)
        if entry is None:
            return Turn(reached=True)
        now = self._tools.now()
        if entry.error is not None:
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
        wanted = not entry.subject.deleting or self._count_consumers() > 0
        if entry.subject.held == wanted or (entry.subject.deleting and not entry.subject.held):
            return entry if wanted else None
        body = self._tools.kube.set_finalizer(entry.subject, wanted)
        if body is None or not wanted:
            return None
        held = read_connection_entry(body)
        self._tools.connection_written(held)
        return held

    def _count_consumers(self) -> int:
        return len(self._tools.registry.users_of(self.key.name))

    def _look(self) -> ConnectionSeen:
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
        if ADMINISTRATOR not in me.tags:
            sentence = "only an administrator can make users: give this one the tag administrator"
            lacking = Problem(PermissionsReason.INSUFFICIENT, sentence)
        return ConnectionSeen(
            permissions=lacking,
            version=me.version,
            cluster_name=me.cluster_name,
            management=True,
            consumers=consumers,
        )
