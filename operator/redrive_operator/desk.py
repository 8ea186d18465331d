"""One desk: everything that the consumers of one vhost, reached by one way, need at one time.

A turn reads the broker once for all of them, mends what differs, and then sees to each. What fails for one costs only
that one. A turn that is called for single consumers, because they or their pods changed, asks the broker only for those
that it has not provided for yet.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf

from redrive.errors import BrokerError
from redrive.ownership import Whose, whose
from redrive.reading import Reading
from redrive.spec import BrokerConnection, Consumer, DeletionPolicy
from redrive.topology import OWNER
from redrive_operator.admission import refuse, shuts_out
from redrive_operator.care import Care, Found
from redrive_operator.claims import find_losers, refuse_foreign_queue
from redrive_operator.credentials import Access, Credentials, CredentialsError
from redrive_operator.errors import KubeError
from redrive_operator.excerpt import keep_of
from redrive_operator.explaining import explain_broker
from redrive_operator.guarding import failure_of
from redrive_operator.job import Job
from redrive_operator.leaving import GONE
from redrive_operator.observation import BrokerSeen, Problem, TopologySeen
from redrive_operator.reasons import BrokerReason, TopologyReason
from redrive_operator.registry import DeskKey, Entry, read_entry
from redrive_operator.subject import Key
from redrive_operator.tools import Tools
from redrive_operator.turns import Turn
from redrive_operator.user_desk import User, UserDesk
from redrive_operator.vhost import Vhost, VhostSeen

LOGGER = logging.getLogger(__name__)

# Where nothing can be read, everything is declared again, and that not at every turn.
DECLARE_SECONDS = 45.0

# A reading is taken to be still true for so long, where the same question comes again.
FRESH_SECONDS = 3.0

# A Secret that is missing is looked for again and again: that costs little, and somebody waits for it.
MISSING_SECONDS = 4.0

HANDFUL = 8


class Desk:
    """Works in one thread at a time."""

    def __init__(self, key: DeskKey, tools: Tools) -> None:
        self.key = key
        self._tools = tools
        self._credentials = Credentials(key, tools.kube, tools.registry, own_namespace=tools.settings.namespace)
        self._vhost = Vhost(key, tools.owner, clock=tools.clock)
        self._users = UserDesk(tools)
        self._care = Care(tools)
        self._known: dict[Key, tuple[str, int, TopologySeen]] = {}
        self._seen: VhostSeen | None = None
        self._asked_at = self._counted_at = float("-inf")

    def turn(self, dirty: frozenset[Key] | None) -> Turn:
        """See to these consumers, or to all of the desk."""
        self._forget_others()
        here = [entry for entry in self._tools.registry.at(self.key) if not entry.subject.released]
        entries = [entry for entry in here if dirty is None or entry.key in dirty]
        if not entries:
            return Turn(reached=self._seen is not None or not here)  # nobody asked, so nothing is known anew
        held, failed = self._hold_all(entries)
        access: Access | None = None
        patience: float | None = None
        try:
            access = self._credentials.resolve()
            seen = self._ask(access, held, everybody=dirty is None)
            seen = self._count(access, seen, everybody=dirty is None)
            users = self._see_to_users(held, access, seen)
        except CredentialsError as error:
            access, problem = self._credentials.last if error.problem.reason in GONE else None, error.problem
            patience = MISSING_SECONDS
        except BrokerError as error:
            problem = explain_broker(error)
        else:
            again = self._for_each(held, lambda entry, who: self._found(entry, who, access, seen, users))
            return Turn(True, failed | again)
        self._seen = None
        self._tools.metrics.forget_vhost(self.key)
        lost = self._find_losers(held, None, access)
        broker = BrokerSeen(self.key.vhost, self.key.mode, problem)
        again = self._for_each(held, lambda entry, _who: Found(broker, access, lost=entry.key in lost))
        return Turn(False, failed | again, patience)

    def _ask(self, access: Access, entries: list[Entry], *, everybody: bool) -> VhostSeen:
        """Ask the broker, unless all that is wanted is known from the last time, or nobody here may use it."""
        jobs = [job for entry in entries if (job := self._job(entry, access)) is not None]
        if not jobs and not any(self._may_leave(entry, access) for entry in entries):
            return VhostSeen(BrokerSeen(self.key.vhost, self.key.mode))
        if self._seen is not None and self._is_known(jobs, entries, everybody=everybody):
            losers = self._find_losers(entries, self._seen.reading, access)
            return replace(self._seen, topologies={}, reclaimed={}, losers=losers)
        counted_at = self._tools.clock()  # what is mended afterwards may take long
        seen = self._vhost.tend(access, jobs, lambda reading: self._find_losers(entries, reading, access))
        self._asked_at, self._counted_at = self._tools.clock(), counted_at
        broker = f"{seen.broker.cluster_name}@{access.amqp.host}"
        self._tools.brokers[self.key] = broker
        for job in jobs:
            if job.key in seen.topologies:
                subject = job.entry.subject
                self._known[job.key] = (subject.uid, subject.generation, seen.topologies[job.key])
        if seen.reading is not None:
            self._tools.metrics.saw_vhost(self.key, broker, seen.reading)
        self._seen = keep_of(seen, self._tools.registry.at(self.key))
        return seen

    def _count(self, access: Access, seen: VhostSeen, *, everybody: bool) -> VhostSeen:
        """Count what is ready for those who are scaled by it, where no reading has it."""
        if seen.reading is not None or self._seen is None or (self._seen.ready and not everybody):
            return seen
        here = [entry for entry in self._tools.registry.at(self.key) if not entry.subject.deleting]
        provided = [entry.consumer for entry in here if self._topology_of(entry) is not None]
        scaled = [one.queue.name for one in provided if one is not None and one.scaling is not None]
        if not scaled:
            return seen
        self._counted_at = self._tools.clock()
        ready = self._vhost.count(access, scaled)
        self._seen = replace(self._seen, ready=ready)
        return replace(seen, ready=ready)

    def _is_known(self, jobs: list[Job], entries: list[Entry], *, everybody: bool) -> bool:
        """Say whether the broker need not be asked: never while somebody is leaving, whose messages must be counted."""
        age = self._tools.clock() - self._asked_at
        if any(entry.subject.deleting for entry in entries) and age > FRESH_SECONDS:
            return False
        if not all(self._topology_of(job.entry, broken=age < FRESH_SECONDS) is not None for job in jobs):
            return False
        rests = self._seen is not None and self._seen.reading is None and age < DECLARE_SECONDS
        return rests or not everybody

    def _may_leave(self, entry: Entry, access: Access) -> bool:
        consumer = entry.consumer
        return entry.subject.deleting and consumer is not None and _refuse(consumer, access) is None

    def _job(self, entry: Entry, access: Access) -> Job | None:
        """Say what to provide for a consumer; None for one that is not allowed here, or is on its way out."""
        consumer, subject = entry.consumer, entry.subject
        if consumer is None or _refuse(consumer, access) is not None:
            return None
        if subject.deleting and consumer.deletion_policy is not DeletionPolicy.DELETE_IF_EMPTY:
            return None
        return Job(entry, consumer, expected=subject.was_found("TopologyReady"))

    def _topology_of(self, entry: Entry, *, broken: bool = False) -> TopologySeen | None:
        """Give what was found for this very object and spec; None where the broker must be asked."""
        uid, generation, topology = self._known.get(entry.key, ("", 0, TopologySeen()))
        if (uid, generation) != (entry.subject.uid, entry.subject.generation):
            return None
        return replace(topology, repaired=()) if broken or topology.problem is None else None

    def _find_losers(
        self, entries: list[Entry], reading: Reading | None, access: Access | None
    ) -> Mapping[Key, Problem]:
        """Find whose queue is another's: an older consumer's, or, on a broker that is lent out, anybody's."""

        def admitted(rival: Entry) -> bool:
            if access is None or rival.consumer is None or rival.desk != self.key:
                return True
            return _refuse(rival.consumer, access) is None and foreign(rival.consumer) is None

        def foreign(consumer: Consumer) -> Problem | None:
            if reading is None or self.key.mode != "Connection":
                return None
            return refuse_foreign_queue(consumer, reading)

        losers = find_losers(
            entries, self._tools.registry, brokers=self._tools.brokers, reading=reading, admitted=admitted
        )
        for entry in entries:
            problem = None if entry.consumer is None else foreign(entry.consumer)
            if problem is not None:
                losers.setdefault(entry.key, problem)
        return losers

    def _see_to_users(self, entries: list[Entry], access: Access, seen: VhostSeen) -> Mapping[Key, User]:
        """Have a user for every consumer that may work here, and none for who may not, or whose queue is another's.

        None is made where the team's own credentials serve, nor where another cluster's users have the same names.
        """
        if access.connection is None or self._is_taken(seen):
            return {}
        consumers = [(entry, entry.consumer) for entry in entries if entry.consumer is not None]
        refused = [each for each in consumers if each[0].key in seen.losers or _is_shut_out(each[1], access.connection)]
        self._users.revoke(refused, access)
        jobs = [job for entry in entries if (job := self._job(entry, access)) is not None]
        return self._users.see_to([(job.entry, job.consumer) for job in jobs if job.key not in seen.losers], access)

    def _is_taken(self, seen: VhostSeen) -> bool:
        """Say whether another cluster manages the vhost, by its record or because it came first just now."""
        record = None if seen.reading is None else seen.reading.exchanges.get(OWNER)
        if whose(record, self._tools.owner) is Whose.ANOTHERS:
            return True
        problems = [topology.problem for topology in seen.topologies.values()]
        return any(problem is not None and problem.reason == TopologyReason.VHOST_TAKEN for problem in problems)

    def _found(
        self, entry: Entry, consumer: Consumer, access: Access | None, seen: VhostSeen, users: Mapping[Key, User]
    ) -> Found:
        refused = None if access is None else _refuse(consumer, access)
        if refused is not None and refused.reason == TopologyReason.EXCHANGE_NOT_ALLOWED:
            return Found(seen.broker, access, topology=TopologySeen(refused), lost=True)
        if refused is not None:  # it may not use the broker, and so nothing is done there for it
            return Found(replace(seen.broker, problem=refused), lost=True)
        if entry.key in seen.losers:
            return Found(seen.broker, access, topology=TopologySeen(seen.losers[entry.key]), lost=True)
        return Found(
            broker=seen.broker,
            access=access,
            topology=seen.topologies.get(entry.key) or self._topology_of(entry, broken=True),
            messages=seen.count(consumer),
            counted_at=self._counted_at,
            parks=seen.parks(consumer),
            reclaimed=seen.reclaimed.get(entry.key, 0),
            orphans_looked_at=seen.looked_for.get(entry.key, -inf),
            stuck_now=seen.say_if_stuck(consumer),
            user=users.get(entry.key),
        )

    def _hold_all(self, entries: list[Entry]) -> tuple[list[Entry], frozenset[Key]]:
        """Have our finalizer on each object before anything is made for it; name those that could not be held."""
        held, failed, holdings = [], [], []
        for entry in entries:
            if entry.subject.deleting or entry.subject.held:
                held.append(entry)
            else:
                holdings.append((entry, self._tools.pool.submit(self._hold, entry)))
        for entry, holding in holdings:
            try:
                seen = holding.result()
            except KubeError as error:
                LOGGER.warning("%s could not be held, and is seen to again: %s", entry.key, error)
                failed.append(entry.key)
            except Exception:
                LOGGER.exception("%s could not be held: this is a defect of the operator", entry.key)
                failed.append(entry.key)
            else:
                held += [] if seen is None else [seen]
        return held, frozenset(failed)

    def _hold(self, entry: Entry) -> Entry | None:
        """Give the object with our finalizer on it; None for one that is gone, or goes without having been ours."""
        body = self._tools.kube.set_finalizer(entry.subject, True)
        if body is None:
            return None
        held = read_entry(body)
        self._tools.consumer_written(held)
        is_ours = held.subject.uid == entry.subject.uid and held.desk == self.key
        return held if held.subject.held and is_ours else None

    def _for_each(self, entries: list[Entry], find: Callable[[Entry, Consumer], Found]) -> frozenset[Key]:
        """See to every one, several at a time; name those for whom it did not work.

        Who is leaving needs the broker, which may be slow: that is done here, and not where others would wait for it.
        """

        def care(entry: Entry) -> None:
            if entry.consumer is not None:
                self._care.see_to(entry, entry.consumer, find(entry, entry.consumer))

        def see_to(entry: Entry) -> Key | None:
            failure = failure_of(entry.key, partial(care, entry))
            self._tools.metrics.reconciled(failure or "ok")
            return entry.key if failure else None

        staying = [entry for entry in entries if not entry.subject.deleting]
        leaving = [entry for entry in entries if entry.subject.deleting]
        # By the handful: for most there is nothing to do, and to hand one over costs more than to look at it.
        handfuls = [staying[start : start + HANDFUL] for start in range(0, len(staying), HANDFUL)]
        done = self._tools.pool.map(lambda handful: [*map(see_to, handful)], handfuls)
        results = [*chain.from_iterable(done), *map(see_to, leaving)]
        return frozenset(key for key in results if key is not None)

    def _forget_others(self) -> None:
        here = {entry.key for entry in self._tools.registry.at(self.key)}
        for key in self._known.keys() - here:
            del self._known[key]
            self._users.forget(key)
            self._care.forget(key)


def _is_shut_out(consumer: Consumer, connection: BrokerConnection) -> bool:
    return shuts_out(connection, consumer.namespace, consumer.broker.vhost)


def _refuse(consumer: Consumer, access: Access) -> Problem | None:
    if access.connection is None:
        return None
    if access.management is None:
        sentence = f"the BrokerConnection {access.connection.name} has no managementURL, and users are made by that"
        return Problem(BrokerReason.MANAGEMENT_REQUIRED, f"{sentence}: ask the platform team")
    return refuse(consumer, access.connection)
