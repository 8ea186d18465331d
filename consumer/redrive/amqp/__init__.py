"""The door to RabbitMQ's AMQP: nobody else knows the client library.

`Amqp` is the plain half of it, for declaring, for tools and for tests; `OnDemand` is the same for who may not need it.
The worker's half turns in an event loop: `loop`, `consuming` and `publishing` are the real ones of what
`redrive.runtime.ports` describes.
"""

from redrive.amqp.blocking import Amqp
from redrive.amqp.on_demand import Declarer, OnDemand
from redrive.amqp.wire import BLOCKED_SECONDS, CONNECT_SECONDS, HEARTBEAT_SECONDS, from_pika, to_pika

__all__ = [
    "BLOCKED_SECONDS",
    "CONNECT_SECONDS",
    "HEARTBEAT_SECONDS",
    "Amqp",
    "Declarer",
    "OnDemand",
    "from_pika",
    "to_pika",
]
