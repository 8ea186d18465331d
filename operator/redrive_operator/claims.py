"""Whose a queue is when two objects ask for it: the older one's.

Two objects ask for one queue when they name the same queue in the same vhost of the same broker. Whether two brokers
are the same, their names do not tell: many are called `rabbitmq`. So the broker is asked: the bindings that bring a
consumer's retries home, and its dead letters to their queue, name every consumer that has the queue; while a queue is
out of the ladder, only the latter are there. Where they cannot be read, brokers are told apart by
their cluster's name and their host. An object that is gone claims nothing, whatever it left behind; nor does one that
has moved to a cluster of another name, for the binding that it left behind is not taken away.
"""

from collections.abc import Callable, Iterable, Mapping

from redrive.ladder import DELIVERY, delivery_binding
from redrive.reading import Reading
from redrive.spec import Consumer
from redrive.topology import DEAD, dead_queue_name
from redrive_operator.observation import Problem
from redrive_operator.reasons import TopologyReason
from redrive_operator.registry import DeskKey, Entry, Registry
from redrive_operator.subject import Key


def find_losers(
    entries: Iterable[Entry],
    registry: Registry,
    *,
    brokers: Mapping[DeskKey, str],
    reading: Reading | None,
    admitted: Callable[[Entry], bool],
) -> dict[Key, Problem]:
    """Say of each whose queue belongs to an older one why it cannot have it; `admitted` says who may claim at all."""
    losers: dict[Key, Problem] = {}
    for entry in entries:
        rivals = [] if entry.claim is None else registry.claiming(entry.claim)
        rivals = [rival for rival in rivals if not rival.subject.released and admitted(rival)]
        winner = find_winner(entry, rivals, brokers=brokers, reading=reading)
        if winner is not None and entry.consumer is not None:
            sentence = f"the queue {entry.consumer.queue.name!r} belongs to the older consumer {winner.key}"
            advice = "use another queue, or delete one of the two"
            if winner.desk != entry.desk:
                left = f"its bindings to the exchanges {DELIVERY!r} and {DEAD!r} here"
                advice += f"; if it has moved to another broker, remove {left}"
            losers[entry.key] = Problem(TopologyReason.QUEUE_CONFLICT, f"{sentence}: {advice}")
    return losers


def find_winner(
    entry: Entry, rivals: Iterable[Entry], *, brokers: Mapping[DeskKey, str], reading: Reading | None
) -> Entry | None:
    """Of those who ask for a queue of this name in a vhost of this name, name the older one that has this very queue.

    `brokers` says which broker a desk leads to, as far as that is known; it is what a Secret of some tenant's says, and
    so is believed only where the broker itself cannot be asked. None where the entry itself wins.
    """
    older = [rival for rival in rivals if rival.key != entry.key and _rank(rival) < _rank(entry)]
    if not older:
        return None
    if reading is None:
        same = [rival for rival in older if _same_broker(entry, rival, brokers)]
    else:
        bound = _bound_addresses(entry, reading)
        there = [rival for rival in older if _address(rival) in bound and not _has_moved(entry, rival, brokers)]
        same = [rival for rival in older if rival.desk == entry.desk or rival in there]
    return min(same, key=_rank, default=None)


def refuse_foreign_queue(consumer: Consumer, reading: Reading) -> Problem | None:
    """Refuse a queue that was not made for this consumer: whom a broker is lent to may not reach for other queues."""
    queue = reading.queues.get(consumer.queue.name)
    if queue is None or dict(queue.arguments).get("x-dead-letter-routing-key") == consumer.address:
        return None
    sentence = (
        f"the queue {queue.name!r} exists and was not made for this consumer, and a BrokerConnection gives access to "
        "no other: choose another spec.queue.name, or use spec.broker.secretRef with credentials of your own"
    )
    return Problem(TopologyReason.QUEUE_REFUSED, sentence)


def _rank(entry: Entry) -> tuple[object, ...]:
    """The smallest wins: the oldest, and of two that were made in the same second the first by name."""
    return (entry.subject.created, entry.key)


def _same_broker(one: Entry, other: Entry, brokers: Mapping[DeskKey, str]) -> bool:
    if one.desk is None or other.desk is None:
        return False
    known = brokers.get(one.desk)
    return one.desk == other.desk or (known is not None and known == brokers.get(other.desk))


def _has_moved(entry: Entry, rival: Entry, brokers: Mapping[DeskKey, str]) -> bool:
    """Say whether a rival is surely on another broker now. Of one cluster, two ways may know two hosts."""
    here, there = (brokers.get(one.desk, "") if one.desk else "" for one in (entry, rival))
    clusters = {here.rpartition("@")[0], there.rpartition("@")[0]}
    return "" not in clusters and len(clusters) == 2


def _address(entry: Entry) -> str:
    return "" if entry.consumer is None else entry.consumer.address


def _bound_addresses(entry: Entry, reading: Reading | None) -> set[str]:
    """Read from a vhost's bindings who has the queue: by what brings home its retries, or its dead letters."""
    if reading is None or entry.consumer is None:
        return set()
    queue = entry.consumer.queue.name
    ways = ((DELIVERY, queue, delivery_binding("", queue).routing_key), (DEAD, dead_queue_name(queue), ""))
    return {
        binding.routing_key.removeprefix(prefix)
        for source, destination, prefix in ways
        for binding in reading.bindings
        if (binding.source, binding.destination) == (source, destination)
    }
