"""Takes a number of messages by a blocking connection, and then no more: one consumer, as long as it takes.

The library hands deliveries over one by one, through three queues of its own, and that takes longer than reading them.
So they are read by the connection's `intake`, and the library sees only that a consumer comes and goes.

The broker sends as many as were asked for, at once and however large they are: to end the consumer does not call back
what is on its way, and its answer comes behind that. So all are waited for; but of those that are too much only tags
are kept, and they are to be given back.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from redrive.delivery import Delivery


class Taking:
    """Up to `at_most` messages of one queue, by one channel: `begin`, `wait`, `end`, and then they are in `taken`.

    `beyond` are the tags of those that came and were too much.
    """

    def __init__(self, connection: Any, channel: Any, *, at_most: int, most_bytes: float = math.inf) -> None:  # noqa: ANN401 - the library's own types
        self._connection = connection
        self._channel = channel
        self._at_most = at_most
        self._most_bytes = most_bytes
        self._size = 0
        self._tag = ""
        self.beyond: list[int] = []
        self.taken: list[Delivery] = []

    @property
    def is_cancelled(self) -> bool:
        """Whether the broker has ended the consumer: its queue is gone, or was moved."""
        return self._tag not in self._channel._impl.consumer_tags  # the channel around it forgets none until asked

    def begin(self, queue: str) -> None:
        self._channel.basic_qos(prefetch_count=self._at_most)
        self._take_by(self._take)
        self._tag = self._channel.basic_consume(queue, _never)

    def wait(self, patience: float) -> None:
        """Wait until they are here; no longer when none came for `patience` seconds."""
        count, until = 0, time.monotonic() + patience

        def is_over() -> bool:
            nonlocal count, until
            if self._count() != count:
                count, until = self._count(), time.monotonic() + patience
            return count >= self._at_most or self.is_cancelled or time.monotonic() >= until

        while not is_over():
            self._wait_for(is_over, max(0.0, until - time.monotonic()))

    def end(self) -> None:
        """Consume no longer. What comes when nobody consumes any more is given back; no broker should send it."""
        self._channel.basic_cancel(self._tag)
        give_back = self._channel._impl.basic_reject
        # Not a method of this: it stays there until the next is taken, and would keep all bodies in memory.
        self._take_by(lambda delivery: give_back(delivery.tag, requeue=True))

    def _take_by(self, take: Callable[[Delivery], None]) -> None:
        self._connection._impl.intake.takers[self._channel.channel_number] = take

    def _take(self, delivery: Delivery) -> None:
        if self._size < self._most_bytes:
            self.taken.append(delivery)
            self._size += len(delivery.body)
        else:
            self.beyond.append(delivery.tag)

    def _count(self) -> int:
        return len(self.taken) + len(self.beyond)

    def _wait_for(self, is_over: Callable[[], bool], seconds: float) -> None:
        """Wait for it for so long: the library asks only when something has come, or it is time for something."""
        passed: list[bool] = []
        inner = self._connection._impl
        timer = inner._adapter_call_later(seconds, lambda: passed.append(True))
        try:
            self._channel._flush_output(lambda: bool(passed) or is_over())
        finally:
            inner._adapter_remove_timeout(timer)


def _never(*_delivery: object) -> None:
    """What the library would call for a delivery."""
    raise AssertionError("the connection tells us of deliveries itself")
