"""FastStream: it has no retries with a delay, so a failed message is published to a queue with a time to live.

That is how its users do it: one waiting queue, which dead-letters into the work queue; publish, await the confirm, and
return, upon which the framework acknowledges.
"""

import asyncio
import logging

from faststream import AckPolicy, FastStream
from faststream.rabbit import Channel, QueueType, RabbitBroker, RabbitMessage, RabbitQueue

from bench import worker_handler as plain
from bench import worker_handler_async as handler
from bench.peers.layouts import waiting_arguments, waiting_name
from bench.peers.told import read_told

PREFETCH = 100
ATTEMPT = "x-attempt"

logging.basicConfig(level=logging.WARNING)
told = read_told()
broker = RabbitBroker(
    told.url, default_channel=Channel(prefetch_count=PREFETCH, on_return_raises=True), log_level=logging.DEBUG
)
app = FastStream(broker)
queue = RabbitQueue(told.queue, queue_type=QueueType.QUORUM, durable=True)

if told.delay_ms:
    waiting = RabbitQueue(
        waiting_name(told.queue, told.delay_ms),
        queue_type=QueueType.QUORUM,
        durable=True,
        arguments=waiting_arguments(told.queue, told.delay_ms),
    )

    @broker.subscriber(queue, ack_policy=AckPolicy.NACK_ON_ERROR)
    async def work(body: bytes) -> None:
        # As an argument it would be injected by way of a thread, for every message.
        message: RabbitMessage = broker.context.get_local("message")
        attempt = int(message.headers.get(ATTEMPT, 1))
        try:
            plain.fail_or_succeed(int.from_bytes(body[: plain.NUMBER_BYTES]), attempt, body[plain.NUMBER_BYTES])
        except plain.NotYet:
            await broker.publish(
                body,
                queue=waiting.name,
                headers={ATTEMPT: attempt + 1},
                persist=True,
                message_id=message.message_id,
                correlation_id=message.correlation_id,
            )

    @app.after_startup
    async def declare() -> None:
        await broker.declare_queue(waiting)

else:

    @broker.subscriber(queue, ack_policy=AckPolicy.NACK_ON_ERROR)
    async def work(body: bytes) -> None:
        await handler.succeed(body)


if __name__ == "__main__":
    asyncio.run(app.run())
