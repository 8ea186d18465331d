"""Has everything exist that consumers need, and says what was done, what is missing and what was refused.

Declaring is idempotent, so running it twice changes nothing and two at once do no harm. With the management API a
reading tells what is missing, and only that is declared; without it everything is declared, by AMQP alone, and what
AMQP cannot do is said: no policies, hence no guard and no retention, and no queue taken over that differs.

It raises only for the broker as a whole: not reached, not supported, taken by another cluster. Of many consumers, what
goes wrong with one costs that one alone.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from redrive.amqp import Declarer
from redrive.drift import Claimed, Unwanted, find_unwanted, sort_bindings, stale
from redrive.elements import Binding
from redrive.errors import BrokerError, Conflict, Unreachable, Unsupported, VhostTaken
from redrive.ladder import places_for
from redrive.management import Management
from redrive.reading import Reading
from redrive.topology import OWNER, Owner, Wanted, plan_consumer, plan_vhost
from redrive.versions import refuse_version
from redrive.workshop import Report, Workshop, let_grow_up


@dataclass(frozen=True, slots=True)
class Ask:
    """One consumer to provide for, and the bindings that were reported for it the last time."""

    wanted: Wanted
    recorded: tuple[Binding, ...] = ()


def ensure(
    wanted: Wanted,
    *,
    owner: Owner,
    amqp: Declarer,
    management: Management | None = None,
    recorded: Iterable[Binding] = (),
) -> Report:
    """Have everything exist that one consumer needs, the vhost's part first."""
    shared = ensure_vhost(places_for(wanted.max_delay), owner=owner, amqp=amqp, management=management)
    return shared + ensure_consumer(wanted, amqp=amqp, management=management, recorded=recorded)


def ensure_vhost(
    places: int, *, owner: Owner, amqp: Declarer, management: Management | None = None, reading: Reading | None = None
) -> Report:
    """Have what all consumers share exist: enough for delays of so many places. Nothing is ever taken away."""
    check_version(amqp.version)
    claim(owner, amqp, reading)
    work = Workshop(amqp, management)
    work.apply(plan_vhost(places, owner), reading or _read(management))
    return work.report()


def ensure_consumer(
    wanted: Wanted,
    *,
    amqp: Declarer,
    management: Management | None = None,
    reading: Reading | None = None,
    recorded: Iterable[Binding] = (),
) -> Report:
    """Have what is one consumer's own exist. The vhost's part must be there, and may be read only once for many."""
    [outcome] = ensure_consumers([Ask(wanted, tuple(recorded))], amqp=amqp, management=management, reading=reading)
    if isinstance(outcome, BrokerError):
        raise outcome
    return outcome


def ensure_consumers(
    asks: Sequence[Ask],
    *,
    amqp: Declarer,
    management: Management | None = None,
    reading: Reading | None = None,
    claimed: Claimed | None = None,
) -> list[Report | BrokerError]:
    """Have what is these consumers' own exist; say what came of each, in their order. All wait once for young queues.

    Raises when the connection is gone: whoever was not finished then is finished the next time. `claimed` is what
    `sort_bindings` says of the reading, for who asks in several batches.
    """
    reading = reading or _read(management)
    if claimed is None and reading is not None:
        claimed = sort_bindings(reading)
    tasks = [_Task(ask, Workshop(amqp, management), reading, claimed) for ask in asks]
    young = [_attempt(task, task.make, amqp) for task in tasks]
    if any(young):
        let_grow_up(amqp)
    for task in tasks:
        if task.error is None:
            _attempt(task, task.bind, amqp)
    return [task.error or task.report() for task in tasks]


def check_version(version: str) -> None:
    reason = refuse_version(version)
    if reason is not None:
        raise Unsupported(reason)


def claim(owner: Owner, amqp: Declarer, reading: Reading | None = None) -> None:
    """Record who manages the vhost, unless somebody has: then it must be us.

    A reading can tell who it is. Where it tells nobody, AMQP decides between those who come at once.
    """
    found = None if reading is None else reading.exchanges.get(OWNER)
    if found is not None:
        current = dict(found.arguments).get("alternate-exchange")
        if current != owner.record:
            raise VhostTaken(_taken_by(current, owner))
        return
    try:
        amqp.declare(owner.exchange)
    except Conflict as error:
        named = re.search(r"current is '(.*)'", str(error))
        raise VhostTaken(_taken_by(named and named[1], owner)) from error


def _taken_by(other: object, owner: Owner) -> str:
    return (
        f"this vhost is managed by {other or 'somebody else'!r}, and we are {owner.record!r}: use another vhost, or, "
        f"if that one is gone for good, delete the exchange {OWNER!r}"
    )


class _Task:
    """One consumer of many, in two steps: everything but its bindings, and, when that has grown up, these."""

    def __init__(self, ask: Ask, work: Workshop, reading: Reading | None, claimed: Claimed | None) -> None:
        self._ask = ask
        self._work = work
        self._reading = reading
        self._claimed = claimed
        self._refused = False  # or stuck: nothing is asked of the queue then, which may not answer
        self.error: BrokerError | None = None

    def make(self) -> bool:
        self._refused = not self._work.settle(self._ask.wanted, self._reading)
        return not self._refused and self._work.make(plan_consumer(self._ask.wanted), self._reading)

    def bind(self) -> bool:
        if not self._refused:
            self._work.bind()
            self._work.remove(self._left_behind())
        return False

    def report(self) -> Report:
        report = self._work.report()
        return replace(report, bindings=self._ask.recorded) if self._refused else report  # they are still there

    def _left_behind(self) -> tuple[Unwanted, ...]:
        wanted, recorded = self._ask.wanted, self._ask.recorded
        if self._reading is None:
            return tuple(Unwanted(binding) for binding in stale(recorded, wanted))
        return find_unwanted(wanted, self._reading, recorded, claimed=self._claimed)


def _attempt(task: _Task, step: Callable[[], bool], amqp: Declarer) -> bool:
    """Take one step of a task, and keep what goes wrong for it alone, unless nothing can go right any more."""
    try:
        return step()
    except BrokerError as error:
        if isinstance(error, Unreachable) or amqp.gone:
            raise
        task.error = error
        return False


def _read(management: Management | None) -> Reading | None:
    """Look once, and so take no loss of a quorum for one that lasts: who looks again says so in his own reading."""
    if management is None:
        return None
    reading = management.read()
    lacking = (name for name, queue in reading.queues.items() if not queue.has_quorum)
    return replace(reading, unsettled=frozenset(lacking))
