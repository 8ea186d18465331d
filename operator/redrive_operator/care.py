"""Sees to one consumer, once its broker has been asked: its user, its workers, its way out, and what is told of it.

Workers are made when the queues are there, and not touched while the broker cannot be asked: what runs can work, and a
config for queues that do not exist yet would reach a worker too early. Those of a queue that is without quorum are kept
as the object says, in the number that they have: they begin as soon as its nodes are back, and before anybody looks.
"""

from dataclasses import dataclass, field, replace
from math import inf

from redrive.config import plan_config
from redrive.errors import SpecError
from redrive.spec import Consumer
from redrive_operator.credentials import Access
from redrive_operator.errors import KubeError
from redrive_operator.judge import Verdict, judge, judge_invalid
from redrive_operator.kube import CONSUMERS
from redrive_operator.lasting import read_lasting
from redrive_operator.leaving import Circumstances, Leaving
from redrive_operator.metrics.consumers import Standing
from redrive_operator.names import deployment_key
from redrive_operator.observation import BrokerSeen, MessagesSeen, Observation, Problem, TopologySeen, WorkersSeen
from redrive_operator.placement import PlacementSeen
from redrive_operator.reasons import EventReason, TopologyReason, WorkersReason
from redrive_operator.registry import Entry, read_entry
from redrive_operator.subject import Key
from redrive_operator.telling import tell_verdict
from redrive_operator.tending import Tended
from redrive_operator.tools import Tools
from redrive_operator.user_desk import User
from redrive_operator.users import UserSeen
from redrive_operator.workload import WorkloadSettings, build_manifests

# With these, workers would take what is another's, or stand idle beside each other.
_MUST_NOT_RUN = (TopologyReason.QUEUE_CONFLICT, TopologyReason.SINGLE_ACTIVE_CONSUMER)


# The same sight of the same object is judged again after so long, since small changes of counts wait to be written.
SETTLED_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Found:
    """What the broker said of one consumer. `access` is the way that is known, also where the broker is not reached."""

    broker: BrokerSeen
    access: Access | None = None
    topology: TopologySeen | None = None
    messages: MessagesSeen = field(default_factory=MessagesSeen)
    counted_at: float = 0.0  # by the clock
    parks: bool = True
    reclaimed: int = 0
    orphans_looked_at: float = inf  # this, and the next, as in `Circumstances`
    stuck_now: str = ""
    lost: bool = False  # its queue is another's
    user: User | None = None


@dataclass(frozen=True, slots=True)
class _Settled:
    """A sight of a version of an object that was judged, and of which there was nothing to tell."""

    version: str
    standing: Standing
    at: float

    def is_of(self, version: str, seen: Observation, now: float) -> bool:
        return now - self.at < SETTLED_SECONDS and (self.version, self.standing.seen) == (version, seen)


class Care:
    """Cares for the consumers of one desk; called from several threads, each time for another consumer."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._leaving = Leaving(tools)
        self._settled: dict[Key, _Settled] = {}

    def forget(self, key: Key) -> None:
        """Forget a consumer that is gone, or is seen to at another desk."""
        self._settled.pop(key, None)

    def see_to(self, entry: Entry, consumer: Consumer, found: Found) -> None:
        """Do what is to be done in the cluster, and tell what came of it; nothing for a spec that is not the newest."""
        known = self._tools.registry.get(entry.key)
        if known is None or not entry.is_as_asked(known):
            return  # whoever has its newest spec sees to it, perhaps at another desk, and must not be undone
        seen = Observation(found.broker, found.topology, messages=found.messages, reclaimed=found.reclaimed)
        if entry.subject.deleting:
            way = Circumstances(
                found.access,
                found.broker.problem,
                found.messages,
                is_another_s=found.lost,
                stuck=_say_if_stuck(found.topology),
                stuck_now=found.stuck_now,
                orphans_looked_at=found.orphans_looked_at,
            )
            waits_for = self._leaving.leave(entry, consumer, way)
            if waits_for is None:
                return
            seen = replace(seen, deleting=waits_for)
        try:
            seen = self._run(entry, consumer, found, seen)
        except SpecError as error:
            if seen.deleting is None:
                self._end_unwanted(entry, consumer)
                self._tell(entry, self._judge_invalid(entry, error))
                return
            seen = self._with_idle_workers(entry, consumer, seen)  # nobody mends it now: say what its end waits for
        self._judge(entry, consumer, seen)

    def see_to_unreadable(self, entry: Entry) -> None:
        """Say what to change in a spec that cannot be used, or let its object go: nobody knows which queue it means."""
        if entry.subject.deleting and entry.subject.held:
            message = "its spec cannot be read, so whatever queues it had were left as they are"
            self._leaving.release(entry, EventReason.QUEUES_LEFT_BEHIND, message)
        elif entry.error is not None and not entry.subject.deleting:
            self._tell(entry, self._judge_invalid(entry, entry.error))

    def _end_unwanted(self, entry: Entry, consumer: Consumer) -> None:
        """End workers that are asked to be none, though what else is asked of them cannot be made: they would go on."""
        none = consumer.paused or (consumer.scaling is None and consumer.replicas == 0)
        if none and self._tools.holdings.deployment(deployment_key(entry.key)) is not None:
            self._tools.tending.stop(entry.subject)

    def _judge_invalid(self, entry: Entry, error: SpecError) -> Verdict:
        self._tools.metrics.saw_invalid(entry.key)
        return judge_invalid(entry.subject, error, now=self._tools.now())

    def _judge(self, entry: Entry, consumer: Consumer, seen: Observation) -> None:
        """Judge and tell. Of most consumers the same is seen turn after turn, and then nothing is even judged."""
        version, at = entry.subject.resource_version, self._tools.clock()
        settled = self._settled.get(entry.key)
        if settled is not None and settled.is_of(version, seen, at):
            self._count(entry, settled.standing)
            return
        verdict = judge(entry.subject, consumer, seen, now=self._tools.now())
        standing = Standing(verdict.ready, consumer, seen, read_lasting(verdict.status))
        self._count(entry, standing)
        if self._tell(entry, verdict):
            self._settled.pop(entry.key, None)
        else:
            self._settled[entry.key] = _Settled(version, standing, at)

    def _count(self, entry: Entry, standing: Standing) -> None:
        known = self._tools.registry.get(entry.key)
        if known is not None and known.subject.uid == entry.subject.uid:  # it may have gone meanwhile
            self._tools.metrics.saw(entry.key, standing)

    def _run(self, entry: Entry, consumer: Consumer, found: Found, seen: Observation) -> Observation:
        """Have the workers run, if everything is there that they need and they are wanted still."""
        going = seen.deleting is not None and not seen.deleting.workers_go_on
        unready = found.topology is None or found.topology.problem is not None
        if found.access is None or going or (unready and not self._is_kept(entry, found, found.access)):
            return self._with_idle_workers(entry, consumer, seen, lost=found.lost)
        match found.user:
            case None:
                secret = (entry.desk.name if entry.desk else "", found.access.digest)
                return self._with_workers(entry, consumer, found, seen, secret)
            case UserSeen():
                seen = _with_user(seen, found.user)
                return self._with_workers(entry, consumer, found, seen, (found.user.secret, found.user.digest))
            case Problem(reason) if reason in (WorkersReason.NAME_TAKEN, WorkersReason.REFUSED):
                return replace(seen, workers=self._look(entry, consumer, Tended((), found.user)))
            case Problem():
                return self._with_idle_workers(entry, consumer, replace(seen, topology=TopologySeen(found.user)))
            case KubeError():
                raise found.user

    def _is_kept(self, entry: Entry, found: Found, access: Access) -> bool:
        """Say whether there are workers that wait for nothing but a majority of their queue."""
        if not _say_if_stuck(found.topology) or (found.user is None and access.connection is not None):
            return False
        return self._tools.holdings.deployment(deployment_key(entry.key)) is not None

    def _with_idle_workers(
        self, entry: Entry, consumer: Consumer, seen: Observation, *, lost: bool = False
    ) -> Observation:
        """Leave workers as they are: what runs can work. Only those that would take another's messages must not."""
        if consumer.worker is None:
            return seen
        if must_not_run(seen.topology, lost=lost):
            self._tools.tending.stop(entry.subject)
        workers = self._look(entry, consumer, Tended())
        if not workers.exist:
            waiting = Problem(WorkersReason.TOPOLOGY_NOT_READY, "workers are made when the queues are there")
            workers = replace(workers, problem=waiting)
        return replace(seen, workers=workers)

    def _with_workers(
        self, entry: Entry, consumer: Consumer, found: Found, seen: Observation, secret: tuple[str, str]
    ) -> Observation:
        worker = consumer.worker
        if worker is None:
            self._tools.tending.remove(entry.subject)
            return seen
        workforce = self._tools.workforce
        placement = workforce.look(entry.key, consumer)
        if _say_if_stuck(found.topology):
            staffing = workforce.keep(entry.subject, consumer)
        else:
            staffing = workforce.staff(entry.subject, consumer, found.messages, found.counted_at, placement)
        workforce.spare_the_busy(entry.key, staffing.replicas)
        # All that the manifests are made of: the generation stands for the spec.
        inputs = (entry.subject.uid, entry.subject.generation, found.parks, secret, staffing.replicas)
        tended = self._tools.tending.tend(
            entry.subject,
            inputs,
            lambda: build_manifests(
                consumer,
                entry.subject,
                config=plan_config(consumer, worker, queue_parks=found.parks),
                broker_secret=secret[0],
                broker_digest=secret[1],
                replicas=staffing.replicas,
                settings=WorkloadSettings(
                    consumer_image=self._tools.settings.consumer_image,
                    trusts_templates=self._tools.settings.trusts_templates,
                    service_accounts=self._tools.settings.worker_service_accounts,
                ),
            ),
        )
        workers = self._observe(entry, staffing.replicas, tended, placement)
        written = tended.problem is None and not tended.put_off
        if written:
            workforce.hired(entry.subject, staffing)
        scaled = staffing.told if written else ""
        return replace(seen, workers=replace(workers, scaled=scaled))

    def _look(self, entry: Entry, consumer: Consumer, tended: Tended) -> WorkersSeen:
        """Look at the workers that there are, without deciding anything."""
        workforce = self._tools.workforce
        return self._observe(entry, workforce.wanted(entry.key, consumer), tended, workforce.look(entry.key, consumer))

    def _observe(self, entry: Entry, wanted: int, tended: Tended, placement: PlacementSeen) -> WorkersSeen:
        """Add what is known of the pods to what their Deployment says."""
        workers = self._tools.tending.observe(entry.subject, wanted, tended)
        return replace(workers, unplaced=placement.unplaced, waiting=placement.waiting, crashing=placement.crashing)

    def _tell(self, entry: Entry, verdict: Verdict) -> bool:
        written = self._tools.consumer_written
        return tell_verdict(self._tools, CONSUMERS, entry.subject, verdict, take=lambda body: written(read_entry(body)))


def must_not_run(topology: TopologySeen | None, *, lost: bool) -> bool:
    """Say whether workers must stop. A queue that is refused for what it is may be worked off, another's may not."""
    if topology is None or topology.problem is None:
        return False
    reason = topology.problem.reason
    return reason in _MUST_NOT_RUN or (lost and reason == TopologyReason.QUEUE_REFUSED)


def _say_if_stuck(topology: TopologySeen | None) -> str:
    problem = None if topology is None else topology.problem
    return problem.message if problem is not None and problem.reason == TopologyReason.QUEUE_WITHOUT_QUORUM else ""


def _with_user(seen: Observation, user: UserSeen) -> Observation:
    topology = seen.topology or TopologySeen()
    return replace(
        seen,
        broker=replace(seen.broker, user=user.name),
        password_rotated=user.rotated,
        topology=replace(topology, repaired=(*topology.repaired, *user.repaired)),
    )
