"""A message is let go only when the broker has it elsewhere for good."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from samples import deliver

from redrive.config import WorkerConfig
from redrive.errors import NotAccepted
from redrive.outcome import Cause, DeadLetter, DeadReason, Done, RetryLater
from redrive.policy import Backoff, Immediate, Jitter, RetryPolicy, Strategy
from redrive.properties import Properties
from redrive.settle import settle
from redrive.spec import PythonMode, PythonRunner

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = RetryPolicy(
    max_attempts=3,
    backoff=Backoff(Strategy.FIXED, timedelta(seconds=1), 2, timedelta(seconds=1), Jitter.NONE, 15, ()),
    max_delay=timedelta(seconds=1),
    immediate=Immediate(1, timedelta(seconds=60)),
    max_crashes=3,
    rules=(),
)
RETRY = RetryLater(timedelta(seconds=300), attempt=2)
DEAD = DeadLetter(DeadReason.EXHAUSTED, Cause("ValueError", "bad"))


@dataclass
class Channel:
    """Remembers what was done to it, in order; refuses what it is told to refuse."""

    frame_max: int = 131_072
    refuses: bool = False
    calls: list = field(default_factory=list)

    def publish(self, exchange, routing_key, body, properties):
        if self.refuses:
            raise NotAccepted("no queue took it")
        self.calls.append(("publish", exchange, routing_key, body, properties.headers["redrive-attempt"]))

    def ack(self, tag):
        self.calls.append(("ack", tag))

    def reject(self, tag, *, requeue):
        self.calls.append(("reject", tag, requeue))


def config(*, queue_parks=True):
    return WorkerConfig(
        namespace="shop",
        consumer="orders",
        address="shop/orders",
        vhost="/",
        queue="orders",
        retry_exchange="the.retry",
        dead_exchange="the.dead",
        queue_parks=queue_parks,
        policy=POLICY,
        concurrency=1,
        timeout=timedelta(seconds=1),
        runner=PythonRunner("orders:handle", PythonMode.THREAD),
    )


def message(**headers):
    return deliver(Properties(headers=headers), body=b"body", exchange="", key="orders")


def settled(outcome, channel=None, *, queue_parks=True, headers=None):
    channel = channel or Channel()
    delivered = message(**(headers or {}))
    settle(channel, config(queue_parks=queue_parks), delivered, outcome, tag=7, now=NOW, pod="pod-1")
    return channel.calls


def test_what_is_done_is_acknowledged():
    assert settled(Done()) == [("ack", 7)]


def test_retry_is_published_to_the_ladder_and_then_acknowledged():
    assert settled(RETRY) == [("publish", "the.retry", "0.0.9.6.0.shop/orders", b"body", 2), ("ack", 7)]


def test_dead_letter_is_published_under_the_address_and_then_acknowledged():
    assert settled(DEAD) == [("publish", "the.dead", "shop/orders", b"body", 1), ("ack", 7)]


@pytest.mark.parametrize("outcome", [RETRY, DEAD], ids=["retry", "dead"])
def test_what_the_broker_does_not_take_is_not_acknowledged(outcome):
    channel = Channel(refuses=True)
    with pytest.raises(NotAccepted):
        settled(outcome, channel)
    assert channel.calls == []


HUGE = {"blob": "x" * 131_000}


@pytest.mark.parametrize("outcome", [RETRY, DEAD], ids=["retry", "dead"])
def test_message_whose_own_headers_fill_the_frame_is_parked_by_the_queue_itself(outcome):
    assert settled(outcome, headers=HUGE) == [("reject", 7, False)]


@pytest.mark.parametrize("outcome", [RETRY, DEAD], ids=["retry", "dead"])
def test_message_that_the_queue_would_lose_by_parking_it_is_kept(outcome):
    channel = Channel()
    with pytest.raises(NotAccepted, match="leave no room"):
        settled(outcome, channel, queue_parks=False, headers=HUGE)
    assert channel.calls == []


def test_limit_is_that_of_the_connection():
    assert settled(RETRY, Channel(frame_max=4096), headers={"blob": "x" * 4000}) == [("reject", 7, False)]
