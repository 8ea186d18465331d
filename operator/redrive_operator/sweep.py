"""Deletes the broker users that no consumer has any more, whatever has become of it: the last resort of revoking.

A user is deleted only after it has had no consumer for a while, in a vhost that is ours by its own record, and when the
API server itself says that there is no such consumer: what the operator knows may be old. It is not done at all where
other objects may have users of such names that this operator cannot see: when it serves some namespaces only, or bears
an identity that was given to it, which another cluster may have been given too. Before the operator has listed all
objects, no desk has a turn.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from redrive.errors import AccessRefused, BrokerError
from redrive.granting import revoke_access
from redrive.management import Management
from redrive.ownership import Whose, whose
from redrive.topology import OWNER
from redrive_operator.credentials import Access
from redrive_operator.kube import CONSUMERS
from redrive_operator.registry import read_entry
from redrive_operator.strays import Stray, Ways, find_strays, find_ways, has_unread_users, may_have_user
from redrive_operator.tools import Tools
from redrive_operator.worker_pod import grace_seconds

LOGGER = logging.getLogger(__name__)

# Every permission of the broker is listed for this.
LOOK_SECONDS = 30.0

# A vhost that is not ours is not asked again for so long, nor one where we may not delete anybody.
SPARE_SECONDS = 300.0

# Deleted at once; the connections of the whole broker are listed for each.
MOST = 100

# Longer than it takes until every connection was asked again which broker it leads to.
PATIENCE_SECONDS = 90.0


class Sweep:
    """Sweeps the broker of one BrokerConnection; remembers since when each user has had no consumer."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._since: dict[Stray, float] = {}
        self._unread = False
        self._spared: dict[str, float] = {}  # vhosts, until when
        self._looked_at = float("-inf")

    @property
    def waits(self) -> bool:
        """Whether there are users that may have to be deleted later: nobody's, or of who cannot be read."""
        return bool(self._since) or self._unread

    def hurry(self) -> None:
        """Look the next time in any case."""
        self._looked_at = float("-inf")

    def forget(self) -> None:
        """Begin anew, after the broker could not be asked."""
        self._since.clear()
        self._unread = False
        self.hurry()

    def sweep(self, access: Access, management: Management, cluster: str) -> None:
        """Look, if it is time for that, and delete whom nobody has had for long; what fails is tried again."""
        now = self._tools.clock()
        if not self._sees_everything() or now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            permitted = management.read_permitted()
        except BrokerError as error:
            LOGGER.warning("users that nobody has any more cannot be looked for: %s", error)
            self._since.clear()
            self._unread = False
            return
        # Afterwards: whoever got a user before it was listed is known by now.
        ways = find_ways(cluster, self._tools.registry.connections(), self._tools.clusters)
        consumers = self._tools.registry.consumers()
        self._note(find_strays(permitted, consumers, ways), now)
        self._unread = has_unread_users(permitted, consumers, ways)
        ripe = [stray for stray, since in self._since.items() if now - since >= self._patience(stray)][:MOST]
        for vhost in sorted({stray.vhost for stray in ripe}):
            self._clear(vhost, [stray for stray in ripe if stray.vhost == vhost], access, ways)

    def _note(self, strays: Iterable[Stray], now: float) -> None:
        self._spared = {vhost: until for vhost, until in self._spared.items() if until > now}
        self._since = {stray: self._since.get(stray, now) for stray in strays if stray.vhost not in self._spared}

    def _sees_everything(self) -> bool:
        """Say whether every object is seen that may have a user of such a name."""
        return not self._tools.settings.watch_namespaces and self._tools.settings.identity is None

    def _patience(self, stray: Stray) -> float:
        """Say how long a user may have no consumer: pods of one that has moved may need theirs to finish."""
        entry = self._tools.registry.get(stray.key)
        consumer = entry.consumer if entry is not None else None
        worker = consumer.worker if consumer is not None else None
        return PATIENCE_SECONDS + (grace_seconds(consumer, worker) if consumer and worker else 0)

    def _clear(self, vhost: str, ripe: Sequence[Stray], access: Access, ways: Ways) -> None:
        """Delete these users of a vhost, if it is ours; what fails is tried again, unless we may not."""
        management = replace(access, amqp=replace(access.amqp, vhost=vhost)).manage()
        try:
            if management is None or whose(management.read_exchange(OWNER), self._tools.owner) is not Whose.OURS:
                self._spare(vhost)
                return
            for stray in ripe:
                if not self._lives(stray, ways):
                    revoke_access(stray.address, vhost=vhost, management=management)
                    LOGGER.warning("the broker user of %s in vhost %s had no consumer: deleted", stray.key, vhost)
                del self._since[stray]
        except BrokerError as error:
            LOGGER.warning("users of vhost %s that nobody has any more cannot be deleted: %s", vhost, error)
            if isinstance(error, AccessRefused):
                self._spare(vhost)

    def _spare(self, vhost: str) -> None:
        self._spared[vhost] = self._tools.clock() + SPARE_SECONDS
        self._since = {stray: since for stray, since in self._since.items() if stray.vhost != vhost}

    def _lives(self, stray: Stray, ways: Ways) -> bool:
        """Ask the API server, and not what is remembered, whether there is a consumer that may have this user."""
        body = self._tools.kube.get(CONSUMERS, stray.key)
        return body is not None and may_have_user(read_entry(body), stray.vhost, ways)
