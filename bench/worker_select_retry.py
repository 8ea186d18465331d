"""A consumer written by hand for speed that retries: a failed message is published again, confirmed, and then acked.

It sends the same body with one more header into the same ladder, up to a window of unconfirmed ones at a time, and
acknowledges many at once, as far as all before are settled. It has one connection, keeps no story, parks nothing and
survives no fault: it shows what the safety of the others costs.
"""

import sys
from collections import deque
from dataclasses import dataclass

import pika
from pika.channel import Channel
from pika.frame import Method
from pika.spec import Basic

from bench.worker_select import ACK_EVERY, ACK_WITHIN
from bench.worker_task import Task, read_task

WINDOW = 100  # unconfirmed
ATTEMPT = "x-attempt"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the handler is told, and what is kept to publish."""

    tag: int
    attempt: int
    body: bytes
    properties: pika.BasicProperties


class Consumer:
    """Takes on one channel and publishes on another of the same connection."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._failed: deque[Delivery] = deque()  # to be published
        self._published = 0
        self._unconfirmed: dict[int, int] = {}  # the delivery's tag, by the publish's, in its order
        self._settled: set[int] = set()  # beyond the first that is not
        self._settled_up_to = 0
        self._acked_up_to = 0
        self._connection = pika.SelectConnection(pika.URLParameters(task.url), on_open_callback=self._opened)

    def run(self) -> None:
        self._connection.ioloop.start()

    def _opened(self, connection: pika.SelectConnection) -> None:
        connection.channel(on_open_callback=self._publishing_opened)

    def _publishing_opened(self, channel: Channel) -> None:
        self._publishing = channel
        channel.add_on_return_callback(lambda *_: sys.exit("a retry could not be routed"))
        channel.confirm_delivery(self._confirmed)
        self._connection.channel(on_open_callback=self._consuming_opened)

    def _consuming_opened(self, channel: Channel) -> None:
        self._consuming = channel
        channel.basic_qos(prefetch_count=self._task.prefetch)
        channel.basic_consume(self._task.queue, self._take)
        self._tick()

    def _take(self, _channel: Channel, method: Basic.Deliver, properties: pika.BasicProperties, body: bytes) -> None:
        attempt = (properties.headers or {}).get(ATTEMPT, 1)
        delivery = Delivery(method.delivery_tag, attempt, body, properties)
        try:
            self._task.handler(body, delivery)
        except Exception:  # whatever the handler raises, the message is to come back
            self._failed.append(delivery)
            self._pump()
        else:
            self._settle(delivery.tag)

    def _pump(self) -> None:
        while self._failed and len(self._unconfirmed) < WINDOW:
            delivery = self._failed.popleft()
            properties = delivery.properties
            properties.headers = {**(properties.headers or {}), ATTEMPT: delivery.attempt + 1}
            self._published += 1
            self._unconfirmed[self._published] = delivery.tag
            task = self._task
            self._publishing.basic_publish(
                task.retry_exchange, task.retry_key, delivery.body, properties, mandatory=True
            )

    def _confirmed(self, frame: Method) -> None:
        if isinstance(frame.method, Basic.Nack):
            sys.exit("the broker refused a retry")
        published, multiple = frame.method.delivery_tag, frame.method.multiple
        while multiple and (first := next(iter(self._unconfirmed))) < published:
            self._settle(self._unconfirmed.pop(first))
        self._settle(self._unconfirmed.pop(published))
        self._pump()

    def _settle(self, tag: int) -> None:
        self._settled.add(tag)
        while self._settled_up_to + 1 in self._settled:
            self._settled_up_to += 1
            self._settled.remove(self._settled_up_to)
        if self._settled_up_to - self._acked_up_to >= ACK_EVERY:
            self._acknowledge()

    def _tick(self) -> None:
        self._acknowledge()
        self._connection.ioloop.call_later(ACK_WITHIN, self._tick)

    def _acknowledge(self) -> None:
        if self._settled_up_to > self._acked_up_to:
            self._acked_up_to = self._settled_up_to
            self._consuming.basic_ack(self._acked_up_to, multiple=True)


if __name__ == "__main__":
    Consumer(read_task()).run()
