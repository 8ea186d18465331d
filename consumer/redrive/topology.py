"""What must exist in a vhost for a consumer to retry: which exchanges, queues, bindings and policies, in which order.

The ladder, the dead letter exchange and the guarding policies are the vhost's and shared; a consumer adds its work
queue, its dead letter queue and their bindings. Declared in this order, every state in between is safe: a policy is
there before the queue it protects, a queue before the binding that fills it.

The rule the code does not show: the name of whoever manages the vhost stands where nothing is ever routed, as the
alternate of the exchange `redrive.owner`. Of an exchange's arguments it is the only one that a broker compares when
the exchange is declared again, so the first to declare it wins, by AMQP alone and at once on every node, and a second
cluster gets a refusal that names the first.
"""

import re
from dataclasses import dataclass
from datetime import timedelta

from redrive.elements import Binding, Element, Exchange, Policy, Queue, freeze
from redrive.ladder import DELIVERY_LIMIT, UNIT, delivery_binding, places_for, plan_ladder
from redrive.spec import Consumer

DEAD = "redrive.dead"
OWNER = "redrive.owner"
GUARD = "redrive.guard"
RETENTION = "redrive.retention"

# One policy applies to a queue, the one of highest priority: ours is to be above what people write.
PRIORITY = 1_000_000

USUAL_RETENTION = timedelta(hours=336)

# Marks a binding as made for a consumer, so that it can be removed when the consumer no longer wants it, and one that a
# person made cannot. No exchange looks at an argument that begins "x-", unless a headers binding asks it to.
MARK = "x-redrive-consumer"
_LOOKS_AT_MARKS = ("all-with-x", "any-with-x")

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a consumer its topology depends on. No `retention` means for ever."""

    address: str
    queue: str
    max_delay: timedelta
    bindings: tuple[Binding, ...] = ()
    retention: timedelta | None = USUAL_RETENTION

    @classmethod
    def of(cls, consumer: Consumer) -> "Wanted":
        name = consumer.queue.name
        return cls(
            address=consumer.address,
            queue=name,
            max_delay=consumer.retry.max_delay,
            bindings=tuple(
                Binding(binding.exchange, name, "queue", binding.routing_key, binding.arguments)
                for binding in consumer.queue.bindings
            ),
            retention=consumer.retention,
        )


@dataclass(frozen=True, slots=True)
class Owner:
    """Who manages a vhost. `identity` is the cluster's own, and not to be confused with another's."""

    identity: str

    @property
    def exchange(self) -> Exchange:
        return Exchange(OWNER, "fanout", arguments=freeze({"alternate-exchange": self.record}))

    @property
    def record(self) -> str:
        """The ladder's unit is in it: two ladders of different units in one vhost would bring retries early."""
        return f"{OWNER}/{UNIT // _MILLISECOND}ms/{self.identity}"


def plan(wanted: Wanted, owner: Owner) -> tuple[Element, ...]:
    """List everything that one consumer needs, in the order in which it must be declared."""
    return (*plan_vhost(places_for(wanted.max_delay), owner), *plan_consumer(wanted))


def plan_vhost(places: int, owner: Owner) -> tuple[Element, ...]:
    """List what the consumers of a vhost share. Fewer places than there are already change nothing."""
    guard = Policy(GUARD, r"^redrive\.(delay\.|orphans$)", freeze({"delivery-limit": DELIVERY_LIMIT}), PRIORITY)
    retention = retention_policy(RETENTION, r"^redrive\.dead\.", USUAL_RETENTION, PRIORITY)
    return (owner.exchange, guard, retention, *plan_ladder(places), Exchange(DEAD))


def plan_consumer(wanted: Wanted) -> tuple[Element, ...]:
    """List what is one consumer's own. Its bindings come last: then there is a way out for what they bring in."""
    dead = dead_queue(wanted.queue)
    return (
        *own_retention(wanted),
        dead,
        Binding(DEAD, dead.name, "queue", wanted.address),
        work_queue(wanted),
        delivery_binding(wanted.address, wanted.queue),
        *(mark(binding, wanted.address) for binding in wanted.bindings),
    )


def work_queue(wanted: Wanted) -> Queue:
    arguments: dict[str, str | int] = {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": DEAD,
        "x-dead-letter-routing-key": wanted.address,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-delivery-limit": DELIVERY_LIMIT,
    }
    return Queue(wanted.queue, freeze(arguments))


def dead_queue(queue: str) -> Queue:
    """Plan a queue that refuses what does not fit into it: by a limit that somebody set, it would drop the oldest."""
    refusing: dict[str, str | int] = {"x-overflow": "reject-publish", "x-delivery-limit": DELIVERY_LIMIT}
    return Queue(dead_queue_name(queue), freeze({"x-queue-type": "quorum", **refusing}))


def dead_queue_name(queue: str) -> str:
    return f"{DEAD}.{queue}"


def own_retention(wanted: Wanted) -> tuple[Policy, ...]:
    """Plan a policy only for a consumer that differs: each one is matched against every queue of the vhost."""
    if wanted.retention == USUAL_RETENTION:
        return ()
    name = dead_queue_name(wanted.queue)
    return (retention_policy(name, exactly(name), wanted.retention, PRIORITY + 1),)


def retention_policy(name: str, pattern: str, retention: timedelta | None, priority: int) -> Policy:
    ttl = {} if retention is None else {"message-ttl": retention // _MILLISECOND}
    return Policy(name, pattern, freeze({"delivery-limit": DELIVERY_LIMIT, **ttl}), priority)


def mark(binding: Binding, address: str) -> Binding:
    arguments = dict(binding.arguments)
    if arguments.get("x-match") in _LOOKS_AT_MARKS:
        return binding
    return Binding(
        binding.source,
        binding.destination,
        binding.destination_kind,
        binding.routing_key,
        freeze({**arguments, MARK: address}),
    )


def exactly(name: str) -> str:
    """Write a pattern that matches this name and no other, for policies and permissions."""
    return f"^{re.escape(name)}$"
