"""InMemoryBroker: a broker and a worker, for the unit tests of a handler.

Everything between the queue and the handler is the real thing: the parser of the policy, the worker's runtime, what it
decides and what it writes on a message. Only the queues are in memory, and time passes only when it is told to.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from redrive.config import plan_config
from redrive.delivery import Delivery
from redrive.errors import RedriveError
from redrive.handler import read_handler
from redrive.message import Message, read_message
from redrive.properties import Properties
from redrive.republish import build_requeue
from redrive.runtime.held import Held
from redrive.settle import Disposal
from redrive.spec import Consumer
from redrive.testing.body import Body, encode_body
from redrive.testing.carriage import carry
from redrive.testing.dead_letter import DeadLetter, read_letter
from redrive.testing.manifest import IN_MEMORY, consumer_with, function_of, read_consumer
from redrive.testing.run import Run, tell_run
from redrive.testing.vhost import Stored, Vhost
from redrive.testing.virtual_loop import BEGAN, VirtualLoop
from redrive.testing.worker import Chance, MemoryWorker

# More than a test runs on purpose, and soon reached.
MOST_RUNS = 10_000


class NeverIdle(RedriveError):
    """Messages that are run again and again, with no end in sight."""


class InMemoryBroker:
    """A queue of messages for one handler, its worker, the ladder that retries sleep in, and the dead letters.

    >>> from datetime import timedelta
    >>> from redrive import Message, Reject
    >>> def handle(order: dict, message: Message) -> None:
    ...     if order["card"] == "declined":
    ...         raise Reject("the card was declined")
    ...     if message.attempt < 3:
    ...         raise ConnectionError("no answer from the bank")
    >>> broker = InMemoryBroker(handle, retry={"backoff": {"strategy": "Fixed", "base": "10s"}})
    >>> broker.publish({"card": "good"}, message_id="order-7")
    >>> run = broker.run_once()
    >>> run.outcome, run.attempt, run.delay, run.error
    ('retry', 1, datetime.timedelta(seconds=10), 'no answer from the bank')
    >>> broker.run_once() is None  # it sleeps
    True
    >>> broker.advance(timedelta(seconds=10))
    >>> broker.run_once().outcome
    'retry'
    >>> [run.outcome for run in broker.run_until_idle()]
    ['done']
    >>> broker.publish({"card": "declined"}, message_id="order-8")
    >>> broker.run_once().outcome
    'dead'
    >>> [letter] = broker.dead_letters
    >>> letter.id, letter.reason.value, letter.error
    ('order-8', 'Rejected', 'the card was declined')

    `retry` is what stands in a manifest below `spec.retry`, with the same defaults and the same errors; `from_manifest`
    takes a whole one. Jitter draws from `random`, a function that gives numbers from 0 to 1: by default always the same
    ones; `lambda: 1.0` has every delay as long as it can be. `now` is what the calendar says at first.
    """

    def __init__(
        self,
        handle: Callable[..., object],
        *,
        retry: Mapping[str, object] | None = None,
        consumer: Consumer | None = None,
        random: Callable[[], float] | None = None,
        now: datetime = BEGAN,
    ) -> None:
        consumer = consumer or consumer_with(retry)
        self._config = plan_config(consumer, consumer.worker or IN_MEMORY, queue_parks=True)
        self._handler = read_handler(handle, _name(handle))
        self._loop = VirtualLoop(now)
        self._vhost = Vhost(
            self._loop,
            self._config.retry_exchange,
            self._config.dead_exchange,
            self._config.address,
            queue=self._config.queue,
            retention=consumer.retention,
        )
        numbers = count(1)
        self._chance = Chance(random or Random(0).random, lambda: f"made-up-{next(numbers)}")  # noqa: S311 - no secret
        self._worker: MemoryWorker | None = None
        self._last = 0
        self.runs: list[Run] = []

    @classmethod
    def from_manifest(
        cls,
        manifest: str | Path | Mapping[str, Any],
        *,
        handle: Callable[..., object] | None = None,
        random: Callable[[], float] | None = None,
        now: datetime = BEGAN,
    ) -> "InMemoryBroker":
        """Take the consumer of a manifest: a file in YAML or JSON, or an object. Without `handle`, its own is imported.

        >>> manifest = {
        ...     "apiVersion": "redrive.dev/v1alpha1",
        ...     "kind": "RetryingConsumer",
        ...     "metadata": {"name": "numbers"},
        ...     "spec": {
        ...         "broker": {"secretRef": {"name": "rabbitmq"}},
        ...         "worker": {"image": "numbers:1", "python": {"handler": "math:sqrt"}},
        ...     },
        ... }
        >>> broker = InMemoryBroker.from_manifest(manifest, handle=lambda body: float(body))
        >>> broker.publish("one")
        >>> broker.run_once().error_type
        'ValueError'
        """
        consumer = read_consumer(manifest)
        return cls(handle or function_of(consumer), consumer=consumer, random=random, now=now)

    # Time and messages.

    @property
    def now(self) -> datetime:
        return self._loop.clock()

    def advance(self, time: timedelta | float) -> None:
        """Let time pass, as a timedelta or a number of seconds. What wakes up waits in the queue, and is not run.

        Called by a handler, that is how long the handler takes.
        """
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        if seconds < 0:
            raise ValueError(f"time goes forward only, got {time!r}")
        self._loop.advance(seconds)

    def publish(
        self,
        body: Body,
        *,
        headers: Mapping[str, object] | None = None,
        message_id: str | None = None,
        properties: Properties | None = None,
        exchange: str = "",
        routing_key: str | None = None,
        redelivered: bool = False,
    ) -> None:
        """Put a message at the end of the queue, as a publisher would; Unsendable says what AMQP would not carry.

        A body that is neither bytes nor text becomes JSON. `exchange` and `routing_key` are how it comes to the queue,
        straight if they are left out. A `redelivered` one was with a worker before, which died.
        """
        sent = properties or Properties()
        sent = replace(
            sent,
            headers={**sent.headers, **(headers or {})},
            message_id=sent.message_id if message_id is None else message_id,
        )
        key = ("" if exchange else self._config.queue) if routing_key is None else routing_key
        self._vhost.arrive(Stored(exchange, key, encode_body(body), carry(sent), redelivered))

    @property
    def waiting(self) -> list[Message]:
        """The messages in the queue, in its order."""
        return [self._read(stored) for stored in self._vhost.ready]

    @property
    def sleeping(self) -> list[Message]:
        """The messages in the ladder; `story.due_at` says when each wakes up, the next one first."""
        sleepers = sorted(self._vhost.sleepers, key=lambda sleeper: sleeper.due_at)
        return [self._read(sleeper.stored) for sleeper in sleepers]

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The messages that were given up, the oldest first. The broker destroys them after `deadLetter.retention`."""
        return [read_letter(stored, self._read(stored)) for stored in self._vhost.dead]

    def requeue(self, letter: DeadLetter) -> None:
        """Put a dead letter back into the queue, where it begins anew, on attempt 1."""
        if not any(stored is letter.stored for stored in self._vhost.dead):
            raise RedriveError(f"there is no dead letter {letter.id!r} any more: it was put back, or is past its time")
        message = replace(letter.message, id=letter.id or self._chance.new_id())
        self._vhost.publish("", self._config.queue, letter.body, build_requeue(message))
        self._vhost.forget(letter.stored)

    def redrive(self) -> int:
        """Put all dead letters back, and say how many they were."""
        letters = self.dead_letters
        for letter in letters:
            self.requeue(letter)
        return len(letters)

    # The worker.

    def run_once(self) -> Run | None:
        """Run the next message, once, with all its tries in place; None when none is waiting, or the worker died."""
        seen = len(self.runs)
        while self._work(1, MOST_RUNS) and len(self.runs) == seen and self._vhost.ready:
            pass
        return self.runs[seen] if len(self.runs) > seen else None

    def run(self, *, most: int = MOST_RUNS) -> list[Run]:
        """Run until no message is waiting. Time passes only between tries in place."""
        seen = len(self.runs)
        self._work(None, most)
        return self.runs[seen:]

    def run_until_idle(self, *, most: int = MOST_RUNS) -> list[Run]:
        """Run, and let time pass, until no message is waiting or sleeping; NeverIdle if that takes more runs."""
        seen = len(self.runs)
        goes_on = self._work(None, most)
        while goes_on and self._vhost.sleeping and self._loop.advance_to_next():
            goes_on = self._work(None, most - (len(self.runs) - seen))
        return self.runs[seen:]

    def drain_worker(self) -> None:
        """Have the worker stop as at SIGTERM; the next run is another's. A handler may call it, too."""
        if self._worker is not None:
            self._worker.drain()
            self._let_it_end()

    def kill_worker(self) -> None:
        """Have the worker die; the next run is another's. Called by a handler, its message comes again.

        So a test can see that a message which is run twice does no harm:

        >>> charged = set()
        >>> def handle(order: str) -> None:
        ...     if order in charged:
        ...         return
        ...     charged.add(order)
        ...     broker.kill_worker()  # before it could tell the broker
        >>> broker = InMemoryBroker(handle)
        >>> broker.publish("order 7")
        >>> broker.run_once() is None
        True
        >>> broker.run_once().outcome
        'done'
        """
        if self._worker is not None:
            self._worker.kill()
            self._let_it_end()

    def _let_it_end(self) -> None:
        if self._worker is not None and not self._worker.is_running:
            self._loop.settle()

    def _work(self, count: int | None, most: int) -> bool:
        """Have a worker take so many messages; say whether it is still there."""
        worker = self._hire()
        self._last = len(self.runs) + most
        try:
            worker.take(count)
        except BaseException:
            worker.kill()  # it was in the middle of something
            raise
        return worker.is_alive

    def _hire(self) -> MemoryWorker:
        if self._worker is None or not self._worker.is_alive:
            self._worker = MemoryWorker(
                self._config, self._handler, self._vhost, chance=self._chance, settled=self._settled
            )
        if self._worker.is_running:
            raise RedriveError("a handler is running: it may publish and let time pass, but not run others")
        return self._worker

    def _settled(self, held: Held, disposal: Disposal, raised: BaseException | None) -> None:
        run = tell_run(held, disposal, raised)
        if run is None:
            return
        self.runs.append(run)
        if len(self.runs) > self._last:
            problem = f"no end after {len(self.runs)} runs, of which {run.id!r} was the last ({run.outcome})"
            raise NeverIdle(f"{problem}: does the handler always snooze or publish? Otherwise raise `most`")

    def _read(self, stored: Stored) -> Message:
        delivery = Delivery(0, stored.exchange, stored.routing_key, stored.redelivered, stored.body, stored.properties)
        attempts = self._config.policy.max_attempts
        return read_message(delivery, now=self.now, max_attempts=attempts, new_id=lambda: "")


def _name(handle: object) -> str:
    return f"{getattr(handle, '__module__', None)}:{getattr(handle, '__qualname__', repr(handle))}"
