"""Taking messages as fast as Python can, in a process of its own, and noting when each came.

It shares two arrays with its starter: `arrivals`, the moment (of the monotonic clock, which all processes of a machine
share) at which the message of that number first came, and `deliveries`, how often it came. Nothing else goes between
the two while a measurement runs. Acknowledgements are batched, by count and by time.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from typing import Any

import pika
from pika.channel import Channel
from pika.spec import Basic

from bench.errors import Abandoned
from bench.measure import Meter

PREFETCH = 2000
ACK_EVERY = 200  # messages
ACK_WITHIN = 0.02  # seconds
NUMBER_BYTES = 8

# A fresh interpreter: a forked one would inherit the publisher's sockets and threads.
_CONTEXT = get_context("spawn")


class Ledger:
    """What has come home, by the numbers of the messages."""

    def __init__(self, size: int) -> None:
        self.arrivals: Any = _CONTEXT.RawArray("q", size)
        self.deliveries: Any = _CONTEXT.RawArray("B", size)

    def complete(self, numbers: range) -> bool:
        return all(self.deliveries[numbers.start : numbers.stop])

    def lost(self, numbers: range) -> int:
        return list(self.deliveries[numbers.start : numbers.stop]).count(0)

    def duplicated(self, numbers: range) -> int:
        return sum(max(0, times - 1) for times in self.deliveries[numbers.start : numbers.stop])

    def arrived(self, number: int) -> int | None:
        """Say when a message came, in nanoseconds of the monotonic clock."""
        return self.arrivals[number] or None


@contextmanager
def receiving(url: str, queue: str, ledger: Ledger) -> Iterator[Meter]:
    """Run a receiver until the block ends; its meter tells how busy it is."""
    ready = _CONTEXT.Event()
    process = _CONTEXT.Process(
        target=receive, args=(url, queue, ledger.arrivals, ledger.deliveries, ready), name="receiver", daemon=True
    )
    process.start()
    try:
        if not ready.wait(30):
            raise Abandoned("the receiver did not begin to consume within 30 s")
        yield Meter((process.pid or 0,))
        if process.exitcode is not None:
            raise Abandoned("the receiver ended before the measurement did")
    finally:
        process.terminate()
        process.join()


def receive(url: str, queue: str, arrivals: Any, deliveries: Any, ready: Event) -> None:  # noqa: ANN401 - shared arrays
    """Consume until killed."""
    parameters = pika.URLParameters(url)
    parameters.heartbeat = 0
    taker = _Taker(queue, arrivals, deliveries, ready)
    connection = pika.SelectConnection(parameters, on_open_callback=taker.opened)
    connection.ioloop.start()


class _Taker:
    def __init__(self, queue: str, arrivals: Any, deliveries: Any, ready: Event) -> None:  # noqa: ANN401
        self._queue = queue
        self._arrivals = arrivals
        self._deliveries = deliveries
        self._ready = ready
        self._unacked = 0
        self._last_tag = 0

    def opened(self, connection: pika.SelectConnection) -> None:
        self._connection = connection
        connection.channel(on_open_callback=self._channel_opened)

    def _channel_opened(self, channel: Channel) -> None:
        self._channel = channel
        channel.basic_qos(prefetch_count=PREFETCH)
        channel.basic_consume(self._queue, self._take, callback=lambda _: self._ready.set())
        self._tick()

    def _take(self, _channel: Channel, method: Basic.Deliver, _properties: pika.BasicProperties, body: bytes) -> None:
        now = time.monotonic_ns()
        number = int.from_bytes(body[:NUMBER_BYTES])
        if not self._deliveries[number]:
            self._arrivals[number] = now
        self._deliveries[number] = min(255, self._deliveries[number] + 1)
        self._last_tag = method.delivery_tag
        self._unacked += 1
        if self._unacked >= ACK_EVERY:
            self._acknowledge()

    def _tick(self) -> None:
        self._acknowledge()
        self._connection.ioloop.call_later(ACK_WITHIN, self._tick)

    def _acknowledge(self) -> None:
        if self._unacked:
            self._channel.basic_ack(self._last_tag, multiple=True)
            self._unacked = 0
