"""The last look of a trial: when the workers are gone, whatever is still in the broker is taken out of it.

Nobody is believed who says that nothing is there but the replicas of the queues themselves. What a rung holds is waited
for until it is home. What does not come by then is given free by another leader: a queue may keep it for a consumer
that is gone (`test_lost_node`). What faults have sent to other consumers is taken out as well, and none of it may be
missing: it is in their queue, or among the orphans while they have no way home.
"""

import time
from collections import Counter
from dataclasses import dataclass, field

from faults.accounting import Letter
from faults.evidence import take_letters
from faults.replicas import count_all, elect, is_at_rest
from faults.stage import VHOST
from workers.bed import QUEUE

from redrive.ladder import ORPHANS, read_routing_key
from redrive.message import read_message

# A rung holds what was not confirmed for three minutes.
LOOK_SECONDS = 200


@dataclass
class Found:
    """What was still there: ids of messages that waited, of those that another leader had to give free, and letters."""

    waiting: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    letters: list[Letter] = field(default_factory=list)
    neighbours: Counter[str] = field(default_factory=Counter)

    def take_orphans(self, orphans, names, neighbours):
        """Sort orphans by whose they are, as their routing keys tell."""
        theirs = {one.address for one in neighbours}
        for message in orphans:
            found = read_routing_key(message.routing_key)
            if found is not None and found[1] in theirs:
                self.neighbours[found[1]] += 1
            else:
                names.add(message.id)


def search(stage):
    """Take all that is left."""
    found = Found()
    left = _drain(stage, found, found.waiting)
    for queue in (name for name, count in left.items() if count != 0):
        elect(stage.living, VHOST, queue)
    if not is_at_rest(left):
        print(f"held, until its queue has another leader: {_some(left)}", flush=True)
        left = _drain(stage, found, found.stuck)
    if not is_at_rest(left):
        print(f"left behind: {_some(left)}", flush=True)
    for neighbour, sent in stage.neighbours.items():
        came = found.neighbours[neighbour.address]
        assert came >= sent, f"of {sent} messages of {neighbour.address} {came} were found"
    return found


def _drain(stage, found, names):
    """Take what comes until nothing is anywhere, or the time is up; say what is left."""
    deadline = time.monotonic() + LOOK_SECONDS
    while True:
        found.letters += take_letters(stage.bed)
        names |= {message.id for message in _take(stage, QUEUE)}
        found.take_orphans(_take(stage, ORPHANS), names, stage.neighbours)
        for neighbour in stage.neighbours:
            found.neighbours[neighbour.address] += len(_take(stage, neighbour.queue))
        left = count_all(stage.nodes, VHOST)
        if is_at_rest(left) or time.monotonic() > deadline:
            return left
        time.sleep(1)


def _take(stage, queue):
    found = []
    with stage.connect() as amqp:
        for delivery in amqp.consume(queue, prefetch=500, patience=2):
            if delivery is None:
                break
            found.append(read_message(delivery, now=None, max_attempts=1, new_id=str))
            amqp.ack(delivery.tag)
        amqp.cancel()
    return found


def _some(counts):
    return {name: count for name, count in counts.items() if count != 0}
