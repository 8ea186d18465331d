"""Dead letters on a real broker: a consumer's queues with letters in them, and what is where afterwards."""

import json
from datetime import timedelta

from redrive.letters import Order, look
from redrive.letters.looking import Pass
from redrive.outcome import DeadReason
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.spec.redrive import RedriveAction
from redrive.topology import DEAD, Owner, Wanted, dead_queue_name
from redrive_testbed.shell import wait_until

ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=1))
HOME, DEAD_QUEUE = "orders", dead_queue_name("orders")


REQUEUE = Order(RedriveAction.REQUEUE, lambda _letter: True, home=HOME)
DELETE = Order(RedriveAction.DELETE, lambda _letter: True)


def third(letter):
    """Choose every third letter of those that `bury` puts there."""
    return letter.reason is DeadReason.REJECTED


def result_of(progress):
    *_, last = progress
    return last


def prepare(amqp, management):
    ensure(ORDERS, owner=Owner("a-cluster"), amqp=amqp, management=management)


def bury(amqp, count, *, start=0, **headers):
    """Put so many letters there, with ids m0, m1, …; every third is of another kind."""
    several = []
    for number in range(start, start + count):
        ours = {
            "redrive-dead-reason": "Rejected" if number % 3 == 0 else "Exhausted",
            "redrive-dead-at": "2026-05-01T12:00:00.000Z",
            "redrive-attempt": 3,
            "redrive-error-type": "shop.errors.Late",
            "redrive-error": "no answer",
            "redrive-fingerprint": f"{number % 3:016x}",
            **headers,
        }
        body = json.dumps({"number": number}).encode()
        several.append((DEAD, "shop/orders", body, Properties(message_id=f"m{number}", delivery_mode=2, headers=ours)))
    assert not any(amqp.publish_several(several))
    assert amqp.count_ready(DEAD_QUEUE) is not None


def names(count, *, step=1, start=0):
    return [f"m{number}" for number in range(start, count, step)]


def settled(amqp, queue, count):
    wait_until(f"{queue} has not {count} messages", lambda: amqp.count_ready(queue) == count, within=30)


def seen_in(amqp, queue):
    """Look at what is in a queue, without a cost; in its order."""
    found = []
    with look(amqp, queue) if queue == DEAD_QUEUE else _Plain(amqp, queue) as looked:
        for window in looked.windows():
            found += window
    settled(amqp, queue, len(found))
    return found


def ids_in(amqp, queue):
    return [delivery.properties.message_id for delivery in seen_in(amqp, queue)]


class _Plain:
    """A pass over a queue that is not one of letters: its limit is its own affair."""

    def __init__(self, amqp, queue):
        self._pass = Pass(amqp, queue, clock=lambda: 0.0)

    def __enter__(self):
        return self._pass.__enter__()

    def __exit__(self, *error):
        return self._pass.__exit__(*error)
