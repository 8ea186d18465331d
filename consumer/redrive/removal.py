"""Takes a consumer's part of a vhost away: cut off first, counted, and then deleted.

Every step may be repeated, and what is gone already counts as done: whoever is killed in the middle is finished by the
next. A work queue that Redrive did not make is never deleted, nor one that another consumer uses: it is only unbound.

Whose dead letters a queue holds only a reading tells, by its bindings. Without one they go with a work queue that is
surely the consumer's own, and before it: whoever finishes what another began must still see that.

The ladder and the rest of the vhost's part stay. What still sleeps there ends among the orphans.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from redrive.adoption import policy_name
from redrive.amqp import Amqp, Declarer
from redrive.drift import claimant, name_element, sort_bindings
from redrive.elements import Binding
from redrive.errors import AccessRefused, Conflict
from redrive.ladder import DELIVERY, delivery_binding
from redrive.management import Management
from redrive.reading import Reading
from redrive.topology import DEAD, Wanted, dead_queue_name, mark, work_queue

# The broker has agreed to give by then, and what comes would come at once.
_ANSWER_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Counted:
    """What is in a consumer's queues; `unacked` is with a worker, and None where the broker did not say.

    Then it is with the `unseen`, who consume from the work queue, and who may hold any number.
    """

    ready: int
    unacked: int | None
    dead: int
    unseen: int = 0

    @property
    def empty(self) -> bool:
        return not (self.ready or self.unacked or self.dead or self.unseen)


@dataclass(frozen=True, slots=True)
class Removed:
    """How many messages were destroyed with their queues, and in sentences what was kept."""

    ready: int = 0
    dead: int = 0
    kept: tuple[str, ...] = ()


class _Work(Enum):
    """Whose the work queue is."""

    OURS = auto()
    NOT_OURS = auto()
    ABSENT = auto()


def detach(
    wanted: Wanted, *, amqp: Declarer, recorded: Iterable[Binding] = (), reading: Reading | None = None
) -> tuple[str, ...]:
    """Unbind the work queue from the ladder and from what was bound for the consumer, so that nothing flows in.

    Dead letters still find their queue. Says what could not be unbound, because somebody closed an exchange to us.
    """
    home = delivery_binding(wanted.address, wanted.queue)
    asked = {mark(binding, wanted.address) for binding in wanted.bindings} | set(recorded)
    if reading is not None:
        marked = sort_bindings(reading).get(wanted.address, frozenset())
        asked |= {binding for binding in marked if binding.source != DEAD}
        asked &= reading.bindings
    left = []
    for binding in sorted(asked - {home}, key=lambda one: (one.source, one.routing_key)):
        try:
            amqp.unbind(binding)
        except AccessRefused as error:
            left.append(f"{name_element(binding)} could not be removed: {error}")
    if reading is None or home in reading.bindings:
        amqp.unbind(home)
    return tuple(left)


def count(wanted: Wanted, *, amqp: Amqp, reading: Reading | None = None) -> Counted:
    """Count what would be destroyed. A queue that is not there is empty.

    What waits is counted now; what is with a worker is known from the reading alone, and some seconds old. Without
    that, only those are counted who may hold something. Who fetches messages one by one is not among them.
    """
    ready = amqp.count_ready(wanted.queue)
    found = None if reading is None else reading.queues.get(wanted.queue)
    held = 0 if ready is None else (None if found is None else found.unacked)
    unseen = amqp.count_consumers(wanted.queue) if held is None else 0
    return Counted(ready or 0, held, amqp.count_ready(dead_queue_name(wanted.queue)) or 0, unseen)


def have_answer(wanted: Wanted, *, amqp: Amqp) -> None:
    """Have the consumer's empty queues say that they have nothing to give.

    One that has lost its quorum may be counted as empty, and can be deleted all the same, with what is in it. It does
    not answer who wants to consume from it (Unreachable, after a minute); only a reading tells sooner.
    """
    for queue in (wanted.queue, dead_queue_name(wanted.queue)):
        if amqp.count_ready(queue) == 0:
            came = amqp.take(queue, at_most=1, patience=_ANSWER_SECONDS)
            amqp.give_back(queue, [[delivery.tag] for delivery in came])


def remove(
    wanted: Wanted,
    *,
    amqp: Amqp,
    management: Management | None = None,
    reading: Reading | None = None,
    recorded: Iterable[Binding] = (),
) -> Removed:
    """Delete the consumer's queues with what is in them, and its policies; what it cannot own is only unbound.

    `reading` may be one of before; without one the management API is read, if there is one.

    A quorum queue cannot be deleted on the condition that it is empty. Who wants that counts right before: what is
    published to the queue itself (by the default exchange), or given back by a worker, in the moment between is
    destroyed. It is in the figures then: they are the broker's own, of the moment of deleting. What was with a worker
    is in none.
    """
    if reading is None and management is not None:
        reading = management.read()
    kept = list(detach(wanted, amqp=amqp, recorded=recorded, reading=reading))
    others = sorted(_find_others(wanted, reading))
    if others:
        kept.append(f"the queue {wanted.queue!r} is also used by {', '.join(others)}: it stays, with its dead letters")
        amqp.unbind(Binding(DEAD, dead_queue_name(wanted.queue), "queue", wanted.address))
        return Removed(kept=tuple(kept))
    state = _look_at(wanted, amqp, reading)
    if state is _Work.NOT_OURS:
        kept.append(f"the queue {wanted.queue!r} was not made by Redrive: it is only unbound, and what is in it stays")
    dead_queue, dead = dead_queue_name(wanted.queue), 0
    if reading is not None or state is _Work.OURS:
        dead = amqp.delete_queue(dead_queue)
    elif amqp.count_ready(dead_queue) is not None:
        kept.append(
            f"the queue {dead_queue!r} stays, with what is in it: without the management API nobody can tell whether "
            "another consumer's dead letters are there, so look, and delete it yourself"
        )
    ready = amqp.delete_queue(wanted.queue) if state is _Work.OURS else 0
    kept += _remove_policies(wanted, management, reading)
    return Removed(ready, dead, tuple(kept))


def _find_others(wanted: Wanted, reading: Reading | None) -> set[str]:
    """Find whose retries or dead letters come to the same queues, if anybody's: two may claim one queue."""
    queues = {DELIVERY: wanted.queue, DEAD: dead_queue_name(wanted.queue)}
    bindings = () if reading is None else reading.bindings
    claimants = (claimant(one) for one in bindings if queues.get(one.source) == one.destination)
    return {address for address in claimants if address is not None} - {wanted.address}


def _look_at(wanted: Wanted, amqp: Amqp, reading: Reading | None) -> _Work:
    """Say whether the work queue is as Redrive makes it for this consumer. AMQP is asked too: a reading may be old."""
    planned = work_queue(wanted)
    found = None if reading is None else reading.queues.get(wanted.queue)
    if found is not None and set(found.arguments) != set(planned.arguments):
        return _Work.NOT_OURS
    if amqp.count_ready(wanted.queue) is None:
        return _Work.ABSENT
    try:
        amqp.declare(planned)
    except Conflict:
        return _Work.NOT_OURS
    return _Work.OURS


def _remove_policies(wanted: Wanted, management: Management | None, reading: Reading | None) -> Iterator[str]:
    if management is None or reading is None:
        return
    there = {policy.name for policy in reading.policies}
    for name in (dead_queue_name(wanted.queue), policy_name(wanted.queue)):
        if name in there:
            try:
                management.delete_policy(name)
            except AccessRefused as error:
                yield f"the policy {name!r} could not be removed: {error}"
