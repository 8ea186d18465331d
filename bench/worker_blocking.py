"""A consumer as most are written: pika's blocking connection, one message after the other, each acknowledged."""

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

from bench.worker_task import read_task


def main() -> None:
    task = read_task()
    channel = pika.BlockingConnection(pika.URLParameters(task.url)).channel()
    channel.basic_qos(prefetch_count=task.prefetch)

    def take(channel: BlockingChannel, method: Basic.Deliver, _properties: pika.BasicProperties, body: bytes) -> None:
        task.handler(body)
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume(task.queue, take)
    channel.start_consuming()


if __name__ == "__main__":
    main()
