"""taskiq with taskiq-aio-pika: its smart retries, which wait in a delay queue with a time to live for each message."""

import asyncio
from typing import Annotated

from taskiq import Context, SmartRetryMiddleware, TaskiqDepends
from taskiq_aio_pika import AioPikaBroker, Queue

from bench import worker_handler as plain
from bench.peers import payload as handler
from bench.peers.layouts import taskiq_delay_name
from bench.peers.told import read_told

PREFETCH = 100

told = read_told()
broker = AioPikaBroker(
    told.url, qos=PREFETCH, task_queues=[Queue(name=told.queue)], delay_queue=Queue(name=taskiq_delay_name(told.queue))
)

if told.delay_ms:
    broker = broker.with_middlewares(SmartRetryMiddleware(default_delay=told.delay_ms / 1000, default_retry_label=True))

    @broker.task(task_name="bench.work")
    async def work(payload: str, context: Annotated[Context, TaskiqDepends()]) -> None:
        handler.fail_first(payload, 1 + int(context.message.labels.get("_retries", 0)))

else:

    @broker.task(task_name="bench.work")
    async def work(payload: str) -> None:
        if plain.seconds:
            await asyncio.sleep(plain.seconds)
        handler.note_success(payload)
