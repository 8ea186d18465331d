"""Celery: acknowledged late, publisher confirms, no results; `self.retry(countdown=…)` for what failed.

With a classic queue, which is its default, a retry waits in the memory of the worker, unacknowledged. With a quorum
queue it waits in the broker, in Celery's native delayed delivery, which needs a topic exchange.
"""

from celery import Celery, Task

from bench.peers import payload as handler
from bench.peers.told import read_told
from bench.worker_handler import NotYet

told = read_told()
app = Celery("bench", broker=told.url)
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    task_default_queue=told.queue,
    task_default_queue_type=told.queue_type,
    broker_transport_options={"confirm_publish": True},
    broker_connection_retry_on_startup=True,
)
if told.queue_type == "quorum":
    app.conf.update(
        task_default_exchange=told.queue, task_default_exchange_type="topic", task_default_routing_key=told.queue
    )


if told.delay_ms:

    @app.task(name="bench.work", bind=True)
    def work(self: Task, payload: str) -> None:
        try:
            handler.fail_first(payload, 1 + self.request.retries)
        except NotYet as failure:
            raise self.retry(exc=failure, countdown=told.delay_ms / 1000) from failure

else:

    @app.task(name="bench.work")
    def work(payload: str) -> None:
        handler.succeed(payload)
