"""Messages and outcomes that several tests begin with."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from redrive.config import WorkerConfig
from redrive.delivery import Delivery
from redrive.message import Message, read_message
from redrive.outcome import Cause, DeadLetter, DeadReason, RetryLater
from redrive.policy import Backoff, Immediate, Jitter, RetryPolicy, Strategy
from redrive.properties import Properties
from redrive.spec import PythonMode, PythonRunner

NOW = datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
CAUSE = Cause("shop.errors.Late", "no answer from 10.0.0.7", "Traceback …\nshop.errors.Late")
RETRY = RetryLater(timedelta(seconds=2), 2, cause=CAUSE)
DEAD = DeadLetter(DeadReason.EXHAUSTED, CAUSE)


def worker_config(*, concurrency=2, tries=1, queue_parks=True, max_attempts=3) -> WorkerConfig:
    """Build the config of a worker that retries after two seconds."""
    return WorkerConfig(
        namespace="shop",
        consumer="orders",
        address="shop/orders",
        vhost="/",
        queue="orders",
        retry_exchange="redrive.retry",
        dead_exchange="redrive.dead",
        queue_parks=queue_parks,
        policy=RetryPolicy(
            max_attempts=max_attempts,
            backoff=Backoff(Strategy.FIXED, timedelta(seconds=2), 2, timedelta(seconds=2), Jitter.NONE, 15, ()),
            max_delay=timedelta(seconds=2),
            immediate=Immediate(tries, timedelta(seconds=60)),
            max_crashes=3,
            rules=(),
        ),
        concurrency=concurrency,
        timeout=timedelta(seconds=10),
        runner=PythonRunner("orders:handle", PythonMode.THREAD),
    )


def deliver(
    properties: Properties | None = None,
    *,
    body: bytes = b"{}",
    exchange: str | bytes = "shop.events",
    key: str | bytes = "order.created",
    **headers: object,
) -> Message:
    """Read a fresh message; headers are named with `_` for `-`."""
    properties = properties or Properties(message_id="m-1")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = replace(properties, headers={**properties.headers, **named})
    delivery = Delivery(1, exchange, key, redelivered=False, body=body, properties=sent)
    return read_message(delivery, now=NOW, max_attempts=10, new_id=lambda: "made-up")


def again(properties: Properties, exchange: str = "redrive.delivery", now: datetime = LATER) -> Message:
    """Read a message that came back from the ladder."""
    message = deliver(properties, exchange=exchange, key="0.0.0.1.0.shop/orders")
    return replace(message, received_at=now)
