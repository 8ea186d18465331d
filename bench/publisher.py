"""Publishing persistent messages with a window of unconfirmed ones, as fast as it goes or at an even pace.

A message is due at the moment it is handed to the client plus its delay, so the way into the broker counts as
lateness too. All are mandatory: a message that the broker cannot route, or refuses, ends the measurement.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

import pika
from pika.channel import Channel
from pika.frame import Method

from bench.contenders import Entrance
from bench.errors import Abandoned
from bench.receiver import NUMBER_BYTES

BODY_BYTES = 1024
PERSISTENT = pika.BasicProperties(delivery_mode=2)
TICK = 0.005  # seconds between two looks at the clock when there is a pace to keep
GIVE_UP = 600  # seconds: the broker has blocked the connection, or is gone
_PADDING = b"\x5a" * (BODY_BYTES - NUMBER_BYTES)


Write = Callable[[int], tuple[bytes, pika.BasicProperties]]  # the message of a number


def write_numbered(number: int) -> tuple[bytes, pika.BasicProperties]:
    return number.to_bytes(NUMBER_BYTES) + _PADDING, PERSISTENT


@dataclass(frozen=True, slots=True)
class Letter:
    """A message to publish."""

    number: int
    entrance: Entrance
    delay_ns: int


@dataclass(frozen=True)
class Sent:
    """How publishing went: until the last confirm, and how much CPU this client itself used for it."""

    count: int
    seconds: float
    client_cpu: float

    @property
    def per_second(self) -> float:
        return self.count / self.seconds


class Publisher:
    """One connection and one channel in confirm mode; its loop runs only inside `publish`."""

    def __init__(self, url: str, *, window: int, dues: dict[int, int], write: Write = write_numbered) -> None:
        parameters = pika.URLParameters(url)
        parameters.heartbeat = 0  # nobody would answer one between two calls
        self._window = window
        self._dues = dues
        self._write = write
        self._letters: Sequence[Letter] = ()
        self._next = 0
        self._tag = 0
        self._unconfirmed: set[int] = set()
        self._confirmed_up_to = 0
        self._pace = 0.0
        self._began = 0.0
        self._fault = ""
        self._connection = pika.SelectConnection(
            parameters,
            on_open_callback=lambda connection: connection.channel(on_open_callback=self._channel_opened),
            on_open_error_callback=lambda _, error: self._fail(f"cannot connect: {error}"),
            on_close_callback=lambda _, reason: self._fail(f"the connection was closed: {reason}"),
        )
        self._run()

    def __enter__(self) -> "Publisher":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection.is_open:
            self._connection.close()
            self._connection.ioloop.start()

    def publish(self, letters: Sequence[Letter], *, per_second: float = 0) -> Sent:
        """Publish and wait for every confirm; a pace of 0 is as fast as the window allows."""
        self._letters, self._next, self._pace = letters, 0, per_second
        self._began, cpu = time.monotonic(), time.process_time()
        self._connection.ioloop.call_later(0, self._tick if per_second else self._pump)
        self._run()
        return Sent(len(letters), time.monotonic() - self._began, time.process_time() - cpu)

    def _run(self) -> None:
        loop = self._connection.ioloop
        alarm = loop.call_later(GIVE_UP, lambda: self._fail(f"not confirmed within {GIVE_UP} s"))
        loop.start()
        loop.remove_timeout(alarm)
        if self._fault:
            raise Abandoned(f"publishing failed: {self._fault}")

    def _tick(self) -> None:
        self._pump()
        if self._next < len(self._letters):
            self._connection.ioloop.call_later(TICK, self._tick)

    def _pump(self) -> None:
        until = len(self._letters)
        if self._pace:
            until = min(until, 1 + int((time.monotonic() - self._began) * self._pace))
        while self._next < until and len(self._unconfirmed) < self._window:
            self._send(self._letters[self._next])
            self._next += 1

    def _send(self, letter: Letter) -> None:
        self._tag += 1
        self._unconfirmed.add(self._tag)
        body, properties = self._write(letter.number)
        self._dues[letter.number] = time.monotonic_ns() + letter.delay_ns
        self._channel.basic_publish(
            letter.entrance.exchange, letter.entrance.routing_key, body, properties, mandatory=True
        )

    def _channel_opened(self, channel: Channel) -> None:
        self._channel = channel
        channel.add_on_return_callback(lambda _, method, *__: self._fail(f"unroutable: {method.routing_key}"))
        channel.add_on_close_callback(lambda _, reason: self._fail(f"the channel was closed: {reason}"))
        channel.confirm_delivery(self._confirmed, callback=lambda _: self._connection.ioloop.stop())

    def _confirmed(self, frame: Method) -> None:
        if isinstance(frame.method, pika.spec.Basic.Nack):
            self._fail("the broker refused a message")
            return
        self._strike(frame.method.delivery_tag, multiple=frame.method.multiple)
        if self._next < len(self._letters):
            self._pump()
        elif not self._unconfirmed:
            self._connection.ioloop.stop()

    def _strike(self, tag: int, *, multiple: bool) -> None:
        if multiple:
            self._unconfirmed.difference_update(range(self._confirmed_up_to + 1, tag + 1))
            self._confirmed_up_to = tag
        else:
            self._unconfirmed.discard(tag)

    def _fail(self, reason: str) -> None:
        # Closing on purpose comes here too; by then nobody reads the fault.
        self._fault = self._fault or reason
        self._connection.ioloop.stop()
