"""The worker's loop and its doors in the hands of a test: it turns until something is so, and notes what is told."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from integration.stalling_proxy import StallingProxy

from redrive.amqp import Amqp
from redrive.amqp.consuming import QueueConsumer
from redrive.amqp.link import Terms
from redrive.amqp.loop import EventLoop
from redrive.amqp.publishing import ConfirmingPublisher
from redrive.delivery import Delivery
from redrive.elements import Queue, freeze
from redrive.endpoints import parse_amqp_url
from redrive.properties import Properties
from redrive.runtime.ports import Refusal, Session

WORK = Queue("orders", freeze({"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}))


def fill(amqp: Amqp, count: int, first: int = 0) -> None:
    """Publish numbers to the work queue."""
    for number in range(first, first + count):
        amqp.publish("", "orders", b"%d" % number, Properties(message_id=str(number), delivery_mode=2))


class Taker:
    """Notes what comes from the queue, and acknowledges it at once unless told to keep it."""

    def __init__(self, *, keeping: bool = False) -> None:
        self.keeping = keeping
        self.deliveries: list[Delivery] = []
        self.sessions: list[Session] = []
        self.cancellations: list[Session] = []
        self.losses: list[tuple[Session, str]] = []

    def delivered(self, session: Session, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        if not self.keeping:
            session.ack(delivery.tag, multiple=False)

    def consuming(self, session: Session) -> None:
        self.sessions.append(session)

    def cancelled(self, session: Session) -> None:
        self.cancellations.append(session)

    def lost(self, session: Session, reason: str) -> None:
        self.losses.append((session, reason))

    @property
    def bodies(self) -> list[bytes]:
        return [delivery.body for delivery in self.deliveries]

    @property
    def redelivered(self) -> list[bytes]:
        return [delivery.body for delivery in self.deliveries if delivery.redelivered]


class Turning:
    """A loop, and the doors that live on it. `troubles` are the sentences that they told."""

    def __init__(self, url: str) -> None:
        self.loop = EventLoop()
        self.endpoint = parse_amqp_url(url)
        self.tls = None
        self.troubles: list[str] = []
        self.verdicts: dict[bytes, list[Refusal | None]] = {}
        self._doors: list[QueueConsumer | ConfirmingPublisher] = []
        self._proxies: list[StallingProxy] = []

    def terms(self, **others: object) -> Terms:
        values = {"to": lambda: (self.endpoint, self.tls), "name": "shop/orders pod-1", "trouble": self.troubles.append}
        return Terms(**{**values, **others})

    def detour(self, **options: Path) -> StallingProxy:
        """Lead what connects from now on through a proxy."""
        self._proxies.append(StallingProxy(self.endpoint.port, **options))
        self.endpoint = replace(self.endpoint, port=self._proxies[-1].port)
        return self._proxies[-1]

    def consumer(self, taker: Taker, *, prefetch: int = 100, queue: str = "orders", **terms: object) -> QueueConsumer:
        consumer = QueueConsumer(self.loop, self.terms(**terms), queue=queue)
        self._doors.append(consumer)
        consumer.start(taker, prefetch=prefetch)
        return consumer

    def publisher(self, **terms: object) -> ConfirmingPublisher:
        publisher = ConfirmingPublisher(self.loop, self.terms(**terms))
        self._doors.append(publisher)
        publisher.start()
        return publisher

    def send(self, publisher: ConfirmingPublisher, body: bytes, *, exchange="", key="orders", **properties) -> None:
        """Publish, and note the verdict under the body."""
        said = self.verdicts.setdefault(body, [])
        sent = Properties(**{"message_id": body.decode(), "delivery_mode": 2, **properties})
        publisher.send(exchange, key, body, sent, said.append)
        assert not said, "told from inside of send"

    def until(self, condition: Callable[[], object], within: float = 60) -> None:
        """Turn until it is so; AssertionError when it is not in time."""
        deadline = time.monotonic() + within

        def look() -> None:
            if condition() or time.monotonic() > deadline:
                self.loop.stop()
            else:
                self.loop.later(0.005, look)

        look()
        self.loop.run()
        assert condition(), f"not so within {within} s; troubles: {self.troubles[-5:]}"

    def barrier(self, session: Session) -> None:
        """Turn until the broker has done what was asked of this session, and told what it had to tell by then."""
        called: list[None] = []
        session.barrier(lambda: called.append(None))
        self.until(lambda: called)

    def settled(self, *bodies: bytes) -> bool:
        """Say whether each of these has its verdict, or all that were sent."""
        return all(self.verdicts[body] for body in bodies or self.verdicts)

    def close(self) -> None:
        self.stop(*self._doors)
        self.loop.close()
        for proxy in self._proxies:
            proxy.close()

    def forget(self, door: QueueConsumer | ConfirmingPublisher) -> None:
        """Leave out of `close` a door that the test has stopped itself."""
        self._doors.remove(door)

    def stop(self, *doors: QueueConsumer | ConfirmingPublisher, within: float = 20) -> None:
        gone: list[object] = []
        for door in doors:
            self.forget(door)
            door.stop(lambda door=door: gone.append(door))
        self.until(lambda: len(gone) == len(doors), within)
