"""What is kept of a vhost between two readings: only what concerns the consumers of one desk.

A vhost is as large as whoever has it makes it, and one tenant may have many. While a turn works with a reading, all of
it is there; what every desk keeps for the next question must not grow with other people's queues.
"""

from collections.abc import Iterable
from dataclasses import replace

from redrive.effective import possible_policies
from redrive.reading import Reading
from redrive.topology import OWNER, dead_queue_name
from redrive_operator.registry import Entry
from redrive_operator.vhost import VhostSeen


def keep_of(seen: VhostSeen, entries: Iterable[Entry]) -> VhostSeen:
    """Keep of what a turn found what these consumers may be asked about."""
    if seen.reading is None:
        return seen
    return replace(
        seen, reading=take_excerpt(seen.reading, (one.consumer.queue.name for one in entries if one.consumer))
    )


def take_excerpt(reading: Reading, queues: Iterable[str]) -> Reading:
    """Keep whose the vhost is, these work queues and their dead letters, what is bound to them, and their policies."""
    asked = set(queues)
    names = asked | {dead_queue_name(name) for name in asked}
    work = [reading.queues[name] for name in asked if name in reading.queues]
    over = reading.operator_policies
    return replace(
        reading,
        exchanges={name: found for name, found in reading.exchanges.items() if name == OWNER},
        queues={name: reading.queues[name] for name in names if name in reading.queues},
        bindings=frozenset(binding for binding in reading.bindings if binding.destination in names),
        policies=frozenset(policy for queue in work for policy in possible_policies(queue, reading.policies)),
        operator_policies=frozenset(policy for queue in work for policy in possible_policies(queue, over)),
    )
