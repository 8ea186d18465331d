"""Dramatiq: its own retries, publisher confirms, everything else as it comes.

A failed message goes to a delay queue, whose messages the worker takes and holds unacknowledged until they are due.
"""

import logging

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.middleware import CurrentMessage

from bench.peers import payload as handler
from bench.peers.told import read_told
from bench.worker_handler import NotYet

# Its command line knows nothing quieter than INFO, at which each retry is a line.
logging.getLogger("dramatiq").setLevel(logging.WARNING)

told = read_told()
broker = RabbitmqBroker(url=told.url, confirm_delivery=True)
dramatiq.set_broker(broker)

if told.delay_ms:
    broker.add_middleware(CurrentMessage())

    @dramatiq.actor(actor_name="bench.work", queue_name=told.queue)
    def work(payload: str) -> None:
        message = CurrentMessage.get_current_message()
        try:
            handler.fail_first(payload, 1 + message.options.get("retries", 0))
        except NotYet as failure:
            # The only exact delay that it has; its back-off would halve it at random.
            raise dramatiq.Retry(str(failure), delay=told.delay_ms) from failure

else:

    @dramatiq.actor(actor_name="bench.work", queue_name=told.queue)
    def work(payload: str) -> None:
        handler.succeed(payload)
