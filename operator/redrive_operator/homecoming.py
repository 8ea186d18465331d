"""The way home of orphans: messages that came out of the ladder while their queue could not take them.

Nobody can see whose they are without taking them all, so looks are rare where they bring nobody home, and each home has
a rest of its own: neither who is new nor who is in trouble has the others wait, or the broker looked through all day.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from math import inf

from redrive.amqp import OnDemand
from redrive.errors import BrokerError, NoAnswer, Unreachable
from redrive.ladder import ORPHANS
from redrive.orphans import Reclaimed, SilentHome, reclaim
from redrive.reading import Reading
from redrive_operator.job import Job
from redrive_operator.observation import TopologySeen
from redrive_operator.reasons import TopologyReason
from redrive_operator.registry import DeskKey
from redrive_operator.subject import Key

# Looked through at once. They are read in windows, not all at once; but all are held until the end of the look. Where
# nothing of anybody is among them, since they are of queues that cannot take them, twice as many are looked through the
# next time, and so on: what is behind them may be another's. The longest takes minutes, and the vhost waits for it.
MOST_ORPHANS, FURTHEST_ORPHANS = 100_000, 400_000

# After a look that brought nobody home: others' orphans may be many, and are fetched and given back each time. The
# further it was, the longer. Somebody new waits for a part of that: whoever makes ever new ones must not have the
# broker looked through all the time.
ORPHANS_SECONDS = 120.0
NEW_HOME_PART = 4

# For these nothing that can be waited for brings anything home.
_HOMELESS = (TopologyReason.QUEUE_REFUSED, TopologyReason.VHOST_TAKEN)

# Whose orphans are looked for: an address, and the uid of the object that has it now.
Home = tuple[str, str]

LOGGER = logging.getLogger(__name__)


class Homecoming:
    """Brings home the orphans of one vhost. `hides`: the last look found none of anybody here, and did not see all."""

    def __init__(self, desk: DeskKey, *, clock: Callable[[], float]) -> None:
        self._desk = desk
        self._clock = clock
        self.hides = False
        self._looked_for: Mapping[Home, float] = {}  # when the last look ended that was for these as well
        self._met: Mapping[Home, float] = {}  # since when those are known that nothing was looked for yet
        self._through: Mapping[Home, float] = {}  # when a look for these began that saw all that there was
        self._looked_at = self._clear_at = -inf
        self._rest = 0.0
        self._most = MOST_ORPHANS
        self._silent: Mapping[str, float] = {}  # until when nothing is brought home to an address

    def bring_home(
        self, door: OnDemand, jobs: Sequence[Job], topologies: Mapping[Key, TopologySeen], reading: Reading | None
    ) -> dict[Key, int]:
        """Bring the orphans of living consumers home. Those of others are left, and looked at again only if new.

        A queue that says nothing, though no reading shows why, is left out for a while: the others' are behind it.
        """
        now = self._clock()
        self._silent = {address: until for address, until in self._silent.items() if until > now}
        ready = {job.consumer.address: job for job in jobs if topologies[job.key].problem is None}
        homes = {address: job for address, job in ready.items() if address not in self._silent}
        self._forget_homes({job.consumer.address for job in jobs} - ready.keys(), now)
        here = {_home_of(job) for job in homes.values()}
        self._met = {**dict.fromkeys(here - self._looked_for.keys(), now), **self._met}
        if not self._is_due(here, now):
            return {}
        count = self._count_orphans(door, reading)
        if count is None:
            return {}
        if not count:
            self.hides, self._most, self._clear_at = False, MOST_ORPHANS, now
            return {}
        queues = {address: job.consumer.queue.name for address, job in homes.items()}
        try:
            result = reclaim(door.amqp, queues, most=self._most, reading=reading)
        except SilentHome as error:
            LOGGER.warning("the orphans of %s cannot be brought home to %s: %s", self._desk, error.address, error)
            self._silent = {**self._silent, error.address: self._clock() + ORPHANS_SECONDS}
            return {}
        except BrokerError as error:
            if isinstance(error, Unreachable) and not isinstance(error, NoAnswer):
                raise
            LOGGER.warning("the orphans of %s cannot be looked through: %s", self._desk, error)
            self._looked(here, rest=ORPHANS_SECONDS)
            return {}
        self._looked(here, rest=0.0 if result.put_back else ORPHANS_SECONDS * (self._most // MOST_ORPHANS))
        if not result.unseen:
            self._through = {**self._through, **dict.fromkeys(here, now)}
        self._look_further(result)
        return {homes[address].key: count for address, count in result.put_back.items()}

    def _is_due(self, homes: Set[Home], now: float) -> bool:
        """Say whether to look: for those who have waited a whole rest, or for somebody new after a part of one.

        Each by its own time, so that a look for one who is new does not have the others wait for longer.
        """
        since = {**self._met, **self._looked_for}
        if any(now - since[home] >= self._rest for home in homes):
            return True
        is_any_new = not homes <= self._looked_for.keys()
        return is_any_new and now - self._looked_at >= self._rest / NEW_HOME_PART

    def when_looked(self, job: Job, topology: TopologySeen) -> float:
        """Say when a look for its orphans began that saw all, or there were none; inf if none can come home at all."""
        if topology.problem is not None and topology.problem.reason in _HOMELESS:
            return inf
        return max(self._clear_at, self._through.get(_home_of(job), -inf))

    def _looked(self, homes: Iterable[Home], *, rest: float) -> None:
        now = self._clock()
        self._rest, self._looked_at = rest, now
        self._looked_for = {**self._looked_for, **dict.fromkeys(homes, now)}
        self._met = {home: at for home, at in self._met.items() if home not in self._looked_for}

    def _forget_homes(self, troubled: Collection[str], now: float) -> None:
        """Take for new whose queue has trouble, once it has none; keep nothing of those who are gone."""
        longest = 2 * ORPHANS_SECONDS * (FURTHEST_ORPHANS // MOST_ORPHANS)
        kept = ((home, at) for home, at in self._looked_for.items() if home[0] not in troubled)
        self._looked_for = {home: at for home, at in kept if now - at < longest}
        self._met, self._through = (
            {home: at for home, at in times.items() if now - at < longest} for times in (self._met, self._through)
        )

    def _look_further(self, result: Reclaimed) -> None:
        """Have the next look go further, if what this one saw is nobody's here, and there is more."""
        self.hides = result.unseen > 0 and not result.put_back
        if result.left <= MOST_ORPHANS:
            self._most = MOST_ORPHANS
        if self.hides:
            looked, self._most = self._most, min(2 * self._most, FURTHEST_ORPHANS)
            LOGGER.warning(
                "%d orphans of %s were not looked at: none of the %d before them can come home; the next look takes %d",
                *(result.unseen, self._desk, looked, self._most),
            )

    def _count_orphans(self, door: OnDemand, reading: Reading | None) -> int | None:
        """Count what there is to look through; None where nobody can know, or somebody else has some in hand."""
        if reading is None:
            return door.amqp.count_ready(ORPHANS) or 0
        orphans = reading.queues.get(ORPHANS)
        if orphans is None:
            return 0
        if not orphans.has_quorum:
            return None
        return orphans.ready or (None if orphans.ready is None or orphans.unacked else 0)


def _home_of(job: Job) -> Home:
    return job.consumer.address, job.entry.subject.uid
