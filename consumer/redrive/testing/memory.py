"""The doors of a worker to a broker in memory: the real ones of `redrive.amqp`, without a broker behind them.

What is unacknowledged when a channel ends comes back to the head of the queue, marked as redelivered. A prefetch is
that of one consumer: another on the same channel counts from none, whatever those before it have left unacknowledged.
"""

from collections.abc import Callable

from redrive.delivery import Delivery
from redrive.properties import FRAME_MAX, Properties
from redrive.runtime.ports import Confirmed, Loop, Taking
from redrive.testing.vhost import Stored, Vhost

__all__ = ["MemoryConsumer", "MemoryPublisher", "MemorySession", "Stored", "Vhost"]


# An end of taking is a question to the broker, and its answer takes a moment in which things happen.
TURNS_TO_PAUSE = 6


class MemorySession:
    """One channel: tags rise from 1."""

    def __init__(self, vhost: Vhost, loop: Loop) -> None:
        self._vhost = vhost
        self._loop = loop
        self._next_tag = 1
        self._oldest = 1  # of those that the consumer which is there now was given
        self.unacked: dict[int, Stored] = {}
        self.is_open = True
        self.hold: list[Callable[[], None]] | None = None  # what waits for the end of a consumer
        self.refreshed: Callable[[], None] = lambda: None

    @property
    def counted(self) -> int:
        """Say how many the consumer that is there now has not acknowledged."""
        return sum(tag >= self._oldest for tag in self.unacked)

    def begin(self) -> None:
        """Have another consumer."""
        self._oldest = self._next_tag

    def deliver(self, stored: Stored) -> Delivery:
        tag = self._next_tag
        self._next_tag += 1
        self.unacked[tag] = stored
        return Delivery(tag, stored.exchange, stored.routing_key, stored.redelivered, stored.body, stored.properties)

    def hold_back(self) -> None:
        """Put off what is asked for, until the consumer has ended."""
        self.hold = [] if self.hold is None else self.hold

    def catch_up(self) -> None:
        put_off, self.hold = self.hold or [], None
        for call in put_off:
            call()

    def ack(self, tag: int, *, multiple: bool) -> None:
        if self.hold is not None:
            self.hold.append(lambda: self.ack(tag, multiple=multiple))
        else:
            self._take_out(tag, multiple=multiple)

    def reject(self, tag: int, *, requeue: bool) -> None:
        if self.hold is not None:
            self.hold.append(lambda: self.reject(tag, requeue=requeue))
            return
        for stored in self._take_out(tag, multiple=False):
            if requeue:
                self._vhost.give_back([stored])
            else:
                self._vhost.park(stored, "rejected")

    def barrier(self, call: Callable[[], None]) -> None:
        if self.hold is not None:
            self.hold.append(lambda: self.barrier(call))
            return
        self._loop.soon(lambda: call() if self.is_open else None)

    def close(self) -> None:
        """Give back what is unacknowledged, in its place and in its order."""
        self.is_open = False
        self.forget(takes_back=True)

    def forget(self, *, takes_back: bool) -> None:
        """Have nothing unacknowledged any more: it is back in its queue, or gone with it."""
        returned = list(self.unacked.values())
        self.unacked.clear()
        if takes_back:
            self._vhost.give_back(returned)

    def _take_out(self, tag: int, *, multiple: bool) -> list[Stored]:
        if not self.is_open:
            return []
        tags = [known for known in self.unacked if known == tag or (multiple and known < tag)]
        taken = [self.unacked.pop(one) for one in tags]
        self.refreshed()
        return taken


class MemoryConsumer:
    """Takes from the work queue, at most `prefetch` at a time; no more than `allow` says, if it says anything."""

    def __init__(self, vhost: Vhost, loop: Loop) -> None:
        self._vhost = vhost
        self._loop = loop
        self._taking: Taking | None = None
        self._prefetch = 0
        self._is_pumping = False
        self._is_beginning = False
        self._allowance: int | None = None
        self.session: MemorySession | None = None
        self.is_paused = False
        self._pauses: list[Callable[[], None]] = []
        vhost.changed = self._pump_soon

    def start(self, taking: Taking, *, prefetch: int) -> None:
        self._taking = taking
        self._prefetch = prefetch
        self.connect()

    def connect(self) -> None:
        self.session = MemorySession(self._vhost, self._loop)
        self.session.refreshed = self._pump_soon
        if self._taking is not None and not self.is_paused:
            self._is_beginning = False
            self._taking.consuming(self.session)
        self._pump_soon()

    def break_connection(self, reason: str = "the connection broke") -> None:
        """Have the broker take everything back. `connect` opens another session."""
        session, self.session = self.session, None
        if session is not None and self._taking is not None:
            session.close()
            self._taking.lost(session, reason)

    def cancel(self, *, takes_back: bool) -> None:
        """End the consumer as the broker does: one that is too slow, and takes back what it had; else with the queue.

        The channel stays, and knows nothing of its deliveries any more. `connect` opens another session.
        """
        session, self.session = self.session, None
        if session is not None and self._taking is not None:
            session.forget(takes_back=takes_back)
            session.catch_up()
            self._taking.cancelled(session)

    def pause(self, call: Callable[[], None]) -> None:
        self._pauses.append(call)
        self._vhost.is_in_doubt = True
        if self.session is not None and not self.is_paused:
            self.session.hold_back()
        self._end_later(TURNS_TO_PAUSE)

    def resume(self, *, prefetch: int) -> None:
        self._is_beginning = bool(self._is_beginning or self.is_paused or self._pauses or prefetch != self._prefetch)
        self._pauses.clear()
        self._vhost.is_in_doubt = False
        self.is_paused = False
        self._prefetch = prefetch
        self._catch_up()
        self._pump_soon()

    def allow(self, count: int | None) -> None:
        """Have the broker deliver so many from now on, and then none; None: as many as the prefetch lets in."""
        self._allowance = count
        self._pump_soon()

    def stop(self) -> None:
        session, self.session, self._taking = self.session, None, None
        if session is not None:
            session.close()

    def _end_later(self, turns: int) -> None:
        if turns:
            self._loop.soon(lambda: self._end_later(turns - 1))
            return
        pauses, self._pauses = self._pauses, []
        if pauses:
            self._vhost.is_in_doubt = False
            self.is_paused = True
            self._catch_up()
        for call in pauses:
            call()

    def _catch_up(self) -> None:
        if self.session is not None:
            self.session.catch_up()

    def _pump_soon(self) -> None:
        if not self._is_pumping:
            self._is_pumping = True
            self._loop.soon(self._pump)

    def _pump(self) -> None:
        self._is_pumping = False
        self._begin()
        while self._taking is not None and self.session is not None and self._may_deliver(self.session):
            stored = self._vhost.take()
            if stored is None:
                return
            if self._allowance is not None:
                self._allowance -= 1
            self._taking.delivered(self.session, self.session.deliver(stored))

    def _begin(self) -> None:
        if self._is_beginning and self._taking is not None and self.session is not None:
            self._is_beginning = False
            self.session.begin()
            self._taking.consuming(self.session)

    def _may_deliver(self, session: MemorySession) -> bool:
        if self._is_beginning:
            return False  # between two consumers there is nobody to deliver to
        return self._allowance != 0 and not self.is_paused and session.counted < self._prefetch


class MemoryPublisher:
    """Publishes into the vhost; answers in the next turn of the loop, or when the connection is there again."""

    frame_max = FRAME_MAX

    def __init__(self, vhost: Vhost, loop: Loop) -> None:
        self._vhost = vhost
        self._loop = loop
        self._waiting: list[Callable[[], None]] = []
        self.connected = True

    def start(self) -> None: ...

    def stop(self) -> None:
        self._waiting.clear()
        self.connected = False

    def send(self, exchange: str, routing_key: str, body: bytes, properties: Properties, confirmed: Confirmed) -> None:
        def publish() -> None:
            answer = self._vhost.publish(exchange, routing_key, body, properties)
            self._loop.soon(lambda: confirmed(answer))

        if self.connected:
            publish()
        else:
            self._waiting.append(publish)

    def connect(self) -> None:
        self.connected = True
        waiting, self._waiting = self._waiting, []
        for publish in waiting:
            publish()
