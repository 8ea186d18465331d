"""The queues of one consumer in memory: the work queue, the ladder behind it, and the dead letters.

It keeps the promises that a worker builds on, and its surprises: what is published must be routable to be confirmed; a
message that comes out of the ladder goes to the end of the queue, and bears the marks of the rungs that it slept in;
one past its expiration is let go of at the head of the queue only; dead letters are gone after their retention.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from redrive.confirms import UNROUTABLE
from redrive.ladder import hops, read_routing_key
from redrive.properties import Properties
from redrive.runtime.ports import Refusal
from redrive.testing.carriage import carry
from redrive.testing.deaths import QueueDeath
from redrive.testing.virtual_loop import VirtualLoop


@dataclass(frozen=True, slots=True)
class Stored:
    """A message in a queue."""

    exchange: str
    routing_key: str
    body: bytes
    properties: Properties
    redelivered: bool = False
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sleeper:
    """A message in the ladder."""

    due_at: datetime
    stored: Stored


@dataclass(slots=True)
class Vhost:
    """The queues of one consumer. `refusing` is what publishing to them is answered with, if with anything.

    `is_in_doubt`: the consumer is about to end, and what arrives now is on its way to it and taken back again.
    """

    loop: VirtualLoop
    retry_exchange: str
    dead_exchange: str
    address: str
    queue: str = "orders"
    retention: timedelta | None = None
    ready: deque[Stored] = field(default_factory=deque)
    sleepers: list[Sleeper] = field(default_factory=list)
    dead: list[Stored] = field(default_factory=list)
    refusing: Refusal | None = None
    is_in_doubt: bool = False
    changed: Callable[[], None] = lambda: None

    @property
    def sleeping(self) -> int:
        return len(self.sleepers)

    def publish(self, exchange: str, routing_key: str, body: bytes, properties: Properties) -> Refusal | None:
        """Route a message of the worker's, or of whoever puts dead letters back."""
        if self.refusing is not None:
            return self.refusing
        stored = Stored(exchange, routing_key, body, carry(properties))
        if exchange == self.retry_exchange:
            return self._sleep(stored)
        if exchange == self.dead_exchange and routing_key == self.address:
            self._bury(stored)
            return None
        if exchange == "" and routing_key == self.queue:
            self.arrive(stored)
            return None
        return UNROUTABLE

    def arrive(self, stored: Stored) -> None:
        """Have a message in the work queue, however it was routed there."""
        expiration = stored.properties.expiration
        if expiration is not None:
            after = timedelta(milliseconds=int(expiration))
            stored = replace(stored, expires_at=self.loop.clock() + after)
            self.loop.later(after.total_seconds(), self._expire)
        self.ready.append(replace(stored, redelivered=True) if self.is_in_doubt else stored)
        self.changed()

    def give_back(self, several: list[Stored]) -> None:
        """Put messages back in their place and in their order, marked as redelivered."""
        self.ready.extendleft(replace(stored, redelivered=True) for stored in reversed(several))
        self._expire()
        self.changed()

    def take(self) -> Stored | None:
        self._expire()
        return self.ready.popleft() if self.ready else None

    def park(self, stored: Stored, reason: str) -> None:
        """Have the work queue itself carry a message to the dead letters."""
        death = QueueDeath(self.queue, reason, stored.exchange, stored.routing_key, self.loop.clock())
        self._bury(Stored(self.dead_exchange, self.address, stored.body, death.write_on(stored.properties)))

    def forget(self, stored: Stored) -> None:
        """Have a dead letter no longer."""
        self.dead = [one for one in self.dead if one is not stored]

    def _expire(self) -> None:
        while self.ready and (at := self.ready[0].expires_at) is not None and at <= self.loop.clock():
            self.park(self.ready.popleft(), "expired")

    def _bury(self, stored: Stored) -> None:
        self.dead.append(stored)
        if self.retention is not None:
            self.loop.later(self.retention.total_seconds(), lambda: self.forget(stored))

    def _sleep(self, stored: Stored) -> Refusal | None:
        match read_routing_key(stored.routing_key):
            case (delay, self.address):
                if not delay:  # straight through: no rung ever has it
                    self.arrive(stored)
                    return None
                sleeper = Sleeper(self.loop.clock() + delay, self._climb_down(stored, delay))
                self.sleepers.append(sleeper)
                self.loop.later(delay.total_seconds(), lambda: self._wake(sleeper))
                return None
            case _:
                return UNROUTABLE

    def _wake(self, sleeper: Sleeper) -> None:
        self.sleepers.remove(sleeper)
        self.arrive(sleeper.stored)

    def _climb_down(self, stored: Stored, delay: timedelta) -> Stored:
        """Tell what the rungs will have made of a message when it leaves the last of them."""
        at = self.loop.clock()
        for rung in hops(delay):
            at += rung.delay
            death = QueueDeath(rung.name, "expired", stored.exchange, stored.routing_key, at)
            stored = replace(stored, exchange=rung.next_exchange, properties=death.write_on(stored.properties))
        return stored
