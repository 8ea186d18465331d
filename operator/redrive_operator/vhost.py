"""The broker's side of a turn: one reading of a vhost, and everything mended that its consumers need.

With the management API a turn in which nothing is wrong opens no AMQP connection. Without it everything is declared
again, which is harmless, but not free: so only now and then.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from redrive.adoption import NeedsPolicy, find_stuck, judge_queue, queue_parks, say_if_stuck
from redrive.amqp import OnDemand
from redrive.drift import sort_bindings
from redrive.elements import Binding
from redrive.errors import AccessRefused, BrokerError, NotFound, Unreachable, Unsupported
from redrive.ladder import places_for
from redrive.management import Management
from redrive.patience import refuse_single_active, warn_of_timeout
from redrive.provision import Ask, ensure_consumers, ensure_vhost
from redrive.reading import Reading
from redrive.spec import Consumer
from redrive.topology import Owner, Wanted, dead_queue_name
from redrive.workshop import Report
from redrive_operator.credentials import Access
from redrive_operator.explaining import explain_topology
from redrive_operator.homecoming import Homecoming
from redrive_operator.job import Job
from redrive_operator.observation import BrokerSeen, MessagesSeen, Problem, TopologySeen
from redrive_operator.reasons import TopologyReason
from redrive_operator.registry import DeskKey
from redrive_operator.status import read_bindings
from redrive_operator.subject import Key

# New queues of one batch are waited for together, and what fails with the connection costs one batch.
BATCH = 200

_UNSEEN = (
    "some messages of redrive.orphans were not looked at, as they are behind very many that cannot come home: "
    "what of this consumer's is among them waits there"
)

# A queue without quorum is taken out of the ladder when it has been without for so long: where nodes come and go, all
# queues are for a moment, and not at the same one. A rung waits for longer (see docs/reliability.md).
SETTLING_SECONDS = 10.0

LOGGER = logging.getLogger(__name__)

Losers = Callable[[Reading | None], Mapping[Key, Problem]]


@dataclass(frozen=True, slots=True)
class VhostSeen:
    """What a turn found and did. No `reading` means that nobody could list what is there."""

    broker: BrokerSeen
    reading: Reading | None = None
    topologies: Mapping[Key, TopologySeen] = field(default_factory=dict)
    losers: Mapping[Key, Problem] = field(default_factory=dict)
    reclaimed: Mapping[Key, int] = field(default_factory=dict)
    looked_for: Mapping[Key, float] = field(default_factory=dict)  # when all orphans were last looked through
    ready: Mapping[str, int] = field(default_factory=dict)  # by queue, where nobody could list what is there

    def say_if_stuck(self, consumer: Consumer) -> str:
        """Say why a consumer's queue, or that of its dead letters, takes and gives nothing; nothing if both do."""
        return "" if self.reading is None else find_stuck(consumer.queue.name, self.reading)

    def parks(self, consumer: Consumer) -> bool:
        """Say whether the queue itself parks as it is after this turn; one that was made in it has all it needs."""
        wanted = Wanted.of(consumer)
        if self.reading is None or wanted.queue not in self.reading.queues:
            return True
        policies = self.reading.policies
        match judge_queue(wanted, self.reading):
            case NeedsPolicy(policy):
                policies = policies | {policy}
        return queue_parks(wanted, replace(self.reading, policies=policies))

    def count(self, consumer: Consumer) -> MessagesSeen:
        queues = {} if self.reading is None else self.reading.queues
        work, dead = queues.get(consumer.queue.name), queues.get(dead_queue_name(consumer.queue.name))
        if self.reading is None:
            return MessagesSeen(ready=self.ready.get(consumer.queue.name))
        return MessagesSeen(
            ready=work.ready if work else None,
            unacked=work.unacked if work else None,
            acked=work.acked if work else None,
            delivered=work.delivered if work else None,
            dead=dead.ready + (dead.unacked or 0) if dead and dead.ready is not None else None,
        )


class Vhost:
    """One vhost by one way."""

    def __init__(self, desk: DeskKey, owner: Owner, *, clock: Callable[[], float]) -> None:
        self._desk = desk
        self._owner = owner
        self._clock = clock
        self._homecoming = Homecoming(desk, clock=clock)
        self._without_quorum: Mapping[str, float] = {}  # since when, by queue

    def tend(self, access: Access, jobs: Sequence[Job], losers: Losers) -> VhostSeen:
        """Read, mend, and say what was found; raises BrokerError where the broker as a whole cannot be used.

        `losers` says, once the vhost has been read, whose queue belongs to another.
        """
        management, reading, lacking = self._read(access)
        lost = losers(reading)
        jobs = [job for job in jobs if job.key not in lost]
        reading = reading and self._settle(reading, jobs)
        with access.connect_on_demand(reading) as door:
            seen = VhostSeen(self._describe(access, reading), reading, losers=lost)
            try:
                shared = ensure_vhost(
                    _places(jobs), owner=self._owner, amqp=door, management=management, reading=reading
                )
            except (Unreachable, Unsupported):
                raise
            except BrokerError as error:
                if door.gone:
                    raise  # it was the connection that was refused
                problem = explain_topology(error)
                topologies = {job.key: TopologySeen(problem) for job in jobs}
                return replace(seen, topologies=topologies, looked_for=self._when_looked(jobs, topologies))
            broker = replace(seen.broker, version=shared.version, cluster_name=shared.cluster_name)
            shared = replace(shared, missing=(*lacking, *shared.missing))
            topologies = self._provide(jobs, shared, door, access, management, reading)
            reclaimed = self._homecoming.bring_home(door, jobs, topologies, reading)
            topologies = _with_shared_repairs(jobs, topologies, shared)
            looked_for = self._when_looked(jobs, topologies)
            if self._homecoming.hides:
                topologies = {key: _with_unseen(topology) for key, topology in topologies.items()}
            return replace(seen, broker=broker, topologies=topologies, reclaimed=reclaimed, looked_for=looked_for)

    def _when_looked(self, jobs: Iterable[Job], topologies: Mapping[Key, TopologySeen]) -> dict[Key, float]:
        return {job.key: self._homecoming.when_looked(job, topologies[job.key]) for job in jobs}

    def _settle(self, reading: Reading, jobs: Iterable[Job]) -> Reading:
        """Tell which of these queues have only just lost their quorum; no others are remembered."""
        now = self._clock()
        work = {job.consumer.queue.name for job in jobs}
        names = work | {dead_queue_name(name) for name in work} | self._without_quorum.keys()
        lacking = [name for name in names if name in reading.queues and not reading.queues[name].has_quorum]
        self._without_quorum = {name: self._without_quorum.get(name, now) for name in lacking}
        young = (name for name, since in self._without_quorum.items() if now - since < SETTLING_SECONDS)
        return replace(reading, unsettled=frozenset(young))

    def count(self, access: Access, queues: Iterable[str]) -> dict[str, int]:
        """Count what is ready in queues, where nobody could list what is there."""
        with access.connect_on_demand(None) as door:
            counts = {queue: self._count_ready(door, queue) for queue in queues}
        return {queue: count for queue, count in counts.items() if count is not None}

    def _count_ready(self, door: OnDemand, queue: str) -> int | None:
        """Count what is ready in one queue; None where it is not there, or is kept from us: that is nobody else's."""
        try:
            return door.amqp.count_ready(queue)
        except Unreachable:
            raise
        except BrokerError as error:
            if door.gone:
                raise
            LOGGER.warning("the queue %r of %s cannot be counted: %s", queue, self._desk, error)
            return None

    def _describe(self, access: Access, reading: Reading | None) -> BrokerSeen:
        return BrokerSeen(
            vhost=self._desk.vhost,
            mode=self._desk.mode,
            version=reading.version if reading else "",
            cluster_name=reading.cluster_name if reading else "",
            user=access.amqp.user if self._desk.mode == "Secret" else "",
            management=reading is not None,
        )

    def _read(self, access: Access) -> tuple[Management | None, Reading | None, tuple[str, ...]]:
        """Read the vhost, where that is possible; say what is lacking where these credentials may not.

        An API that is there and does not answer is not taken for none: without it, a queue that must not be bound
        would be bound, and one that was taken over would be refused.
        """
        management = access.manage()
        if management is None:
            return None, None, ()
        try:
            return management, management.read(), ()
        except NotFound:
            raise NotFound(f"the broker has no vhost {self._desk.vhost!r}: create it, or name another") from None
        except AccessRefused as error:
            sentence = f"{error}; Redrive needs the tag policymaker there, and does without until then"
            return None, None, (sentence,)

    def _provide(
        self,
        jobs: Sequence[Job],
        shared: Report,
        door: OnDemand,
        access: Access,
        management: Management | None,
        reading: Reading | None,
    ) -> dict[Key, TopologySeen]:
        if not shared.ready:
            problem = _problem_of(shared)
            return {job.key: TopologySeen(problem, shared.missing) for job in jobs}
        reports = _ensure(jobs, door, management, reading)
        # What was complete, was listed and is not there: it was deleted while the vhost was read, which another
        # reading shows.
        gone = [job for job in jobs if job.expected and isinstance(reports[job.key], NotFound)]
        newer = self._read(access)[1] if gone and reading is not None else None
        if newer is not None:
            newer = self._settle(newer, gone)
            reports |= _ensure(gone, door, management, newer)
        return {job.key: _judge_report(job, reports[job.key], shared, reading) for job in jobs}


def _ensure(
    jobs: Sequence[Job], door: OnDemand, management: Management | None, reading: Reading | None
) -> dict[Key, Report | BrokerError]:
    found: dict[Key, Report | BrokerError] = {}
    claimed = None if reading is None else sort_bindings(reading)
    for batch in _batches(jobs, BATCH):
        asks = [Ask(Wanted.of(job.consumer), _recorded(job)) for job in batch]
        reports = ensure_consumers(asks, amqp=door, management=management, reading=reading, claimed=claimed)
        found |= zip((job.key for job in batch), reports, strict=True)
    return found


def _places(jobs: Iterable[Job]) -> int:
    return max((places_for(job.consumer.retry.max_delay) for job in jobs), default=1)


def _with_shared_repairs(
    jobs: Sequence[Job], topologies: Mapping[Key, TopologySeen], shared: Report
) -> dict[Key, TopologySeen]:
    """Tell the oldest consumer what was mended for all. Where one is new, that was growth, and nobody's drift."""
    found = dict(topologies)
    if shared.repaired and jobs and all(job.expected for job in jobs):
        oldest = min(jobs, key=lambda job: job.entry.subject.created).key
        found[oldest] = replace(found[oldest], repaired=(*map(str, shared.repaired), *found[oldest].repaired))
    return found


def _with_unseen(topology: TopologySeen) -> TopologySeen:
    """Say, of a consumer whose orphans could come home, that some may be there that nobody has seen."""
    return topology if topology.problem else replace(topology, missing=(*topology.missing, _UNSEEN))


def _recorded(job: Job) -> tuple[Binding, ...]:
    return read_bindings(job.entry.subject.status, job.consumer.queue.name)


def _judge_report(job: Job, report: Report | BrokerError, shared: Report, reading: Reading | None) -> TopologySeen:
    if isinstance(report, BrokerError):
        return TopologySeen(explain_topology(report))
    if not report.ready:
        return TopologySeen(_problem_of(report), report.missing, bindings=report.bindings)
    alone = None if reading is None else refuse_single_active(job.consumer, reading)
    warnings = (
        _lacking_for_scaling(job)
        if reading is None
        else (*warn_of_timeout(job.consumer, reading), *_lacking_for_parking(job, reading))
    )
    return TopologySeen(
        problem=None if alone is None else Problem(TopologyReason.SINGLE_ACTIVE_CONSUMER, alone),
        missing=tuple(dict.fromkeys((*shared.missing, *report.missing, *warnings))),
        repaired=tuple(map(str, report.repaired)) if job.expected else (),
        bindings=report.bindings,
    )


def _lacking_for_scaling(job: Job) -> tuple[str, ...]:
    if job.consumer.scaling is None:
        return ()
    return ("workers are not scaled down: without the management API nobody counts the messages in flight",)


def _lacking_for_parking(job: Job, reading: Reading) -> Iterator[str]:
    """Say that dead letters are not taken, and wait in the hands of workers; not of what was only just seen."""
    name = dead_queue_name(job.consumer.queue.name)
    stuck = say_if_stuck(reading.queues[name]) if name in reading.queues and name not in reading.unsettled else None
    if stuck is not None:
        yield f"{stuck}; what is to be parked stays with its worker meanwhile"


def _problem_of(report: Report) -> Problem:
    if report.refused:
        return Problem(TopologyReason.QUEUE_REFUSED, "; ".join(report.refused))
    if report.stuck:
        return Problem(TopologyReason.QUEUE_WITHOUT_QUORUM, "; ".join(report.stuck))
    sentences = "; ".join(map(str, report.broken))
    return Problem(TopologyReason.BROKEN, f"{sentences}: remove it when it is empty, and it is made anew")


def _batches(jobs: Sequence[Job], size: int) -> Iterator[Sequence[Job]]:
    rest = iter(jobs)
    while batch := list(islice(rest, size)):
        yield batch
