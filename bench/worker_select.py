"""A consumer written by hand for speed: pika's callbacks, and many messages acknowledged at once.

Nothing in Python takes messages much faster, and it does nothing else: it cannot retry, and its handler holds up the
heartbeats. It shows what the others are short of.
"""

import pika
from pika.channel import Channel
from pika.spec import Basic

from bench.worker_task import Task, read_task

ACK_EVERY = 64  # messages
ACK_WITHIN = 0.01  # seconds


class Consumer:
    """Handles in the loop itself, in the order of delivery, so that the last tag stands for all before it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._handled = 0
        self._last_tag = 0
        self._connection = pika.SelectConnection(pika.URLParameters(task.url), on_open_callback=self._opened)

    def run(self) -> None:
        self._connection.ioloop.start()

    def _opened(self, connection: pika.SelectConnection) -> None:
        connection.channel(on_open_callback=self._channel_opened)

    def _channel_opened(self, channel: Channel) -> None:
        self._channel = channel
        channel.basic_qos(prefetch_count=self._task.prefetch)
        channel.basic_consume(self._task.queue, self._take)
        self._tick()

    def _take(self, _channel: Channel, method: Basic.Deliver, _properties: pika.BasicProperties, body: bytes) -> None:
        self._task.handler(body)
        self._last_tag = method.delivery_tag
        self._handled += 1
        if self._handled >= ACK_EVERY:
            self._acknowledge()

    def _tick(self) -> None:
        self._acknowledge()
        self._connection.ioloop.call_later(ACK_WITHIN, self._tick)

    def _acknowledge(self) -> None:
        if self._handled:
            self._channel.basic_ack(self._last_tag, multiple=True)
            self._handled = 0


if __name__ == "__main__":
    Consumer(read_task()).run()
