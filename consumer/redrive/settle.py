"""What an outcome does to a message: the one place where a message is let go.

The order is always: publish the retry or the dead letter, mandatory; wait until the broker has it for good; only then
acknowledge. A crash in between makes a duplicate, never a loss. So whatever is raised here, the message is still
unacknowledged, and the broker keeps it for us.
"""

from datetime import datetime
from typing import Protocol, assert_never

from redrive.config import WorkerConfig
from redrive.errors import NotAccepted
from redrive.ladder import routing_key
from redrive.message import Message
from redrive.outcome import DeadLetter, Done, Outcome, RetryLater
from redrive.properties import Properties
from redrive.republish import build_dead_letter, build_retry, fits


class Channel(Protocol):
    """The door's part that settling needs."""

    @property
    def frame_max(self) -> int: ...
    def publish(self, exchange: str, routing_key: str, body: bytes, properties: Properties) -> None: ...
    def ack(self, tag: int) -> None: ...
    def reject(self, tag: int, *, requeue: bool) -> None: ...


def settle(
    channel: Channel, config: WorkerConfig, message: Message, outcome: Outcome, *, tag: int, now: datetime, pod: str
) -> None:
    """Do what the outcome says; NotAccepted when the broker does not take it."""
    match outcome:
        case Done():
            channel.ack(tag)
        case RetryLater(delay=delay):
            sent = build_retry(message, outcome, now=now, frame_max=channel.frame_max)
            _send_on(
                channel, config, (config.retry_exchange, routing_key(delay, config.address)), sent, message, tag=tag
            )
        case DeadLetter():
            sent = build_dead_letter(message, outcome, now=now, pod=pod, frame_max=channel.frame_max)
            _send_on(channel, config, (config.dead_exchange, config.address), sent, message, tag=tag)
        case _:
            assert_never(outcome)


def _send_on(
    channel: Channel, config: WorkerConfig, way: tuple[str, str], sent: Properties, message: Message, *, tag: int
) -> None:
    if fits(sent, channel.frame_max):
        channel.publish(*way, message.body, sent)
        channel.ack(tag)
    elif config.queue_parks:
        # The publisher's own headers fill the frame. The broker can still park the message as it is.
        channel.reject(tag, requeue=False)
    else:
        raise NotAccepted(f"the headers of message {message.id} leave no room for its story: shorten what is published")
