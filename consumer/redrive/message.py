"""A message as it was delivered: what a handler is given, and what deciding and republishing start from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from redrive.delivery import Delivery
from redrive.letter import DEAD_REASON
from redrive.properties import Properties, as_text, clean
from redrive.quickly import quickly
from redrive.story import Story, begin_anew, read_story


@dataclass(frozen=True, slots=True)
class Message:
    """One delivery. `id` is the publisher's, or one that was made up because there was none."""

    id: str
    body: bytes
    properties: Properties
    exchange: str
    routing_key: str
    redelivered: bool
    received_at: datetime
    max_attempts: int
    story: Story

    @property
    def attempt(self) -> int:
        """The attempt that this delivery is on, counted from 1."""
        return self.story.attempt

    @property
    def headers(self) -> Mapping[str, object]:
        """The headers as they came. Not to be changed: a retry is sent with them."""
        return MappingProxyType(self.properties.headers)

    @property
    def first_attempt_at(self) -> datetime:
        return self.story.first_attempt_at or self.received_at


_message = quickly(Message)


def read_message(delivery: Delivery, *, now: datetime, max_attempts: int, new_id: Callable[[], str]) -> Message:
    """Read a delivery, or a dead letter. Never raises; what made no sense is named in `story.clamped`."""
    properties, unclean = clean(delivery.properties)
    story = read_story(properties.headers)
    exchange, routing_key = delivery.exchange, delivery.routing_key
    if isinstance(exchange, bytes):
        exchange, unclean = as_text(exchange), (*unclean, "exchange")
    if isinstance(routing_key, bytes):
        routing_key, unclean = as_text(routing_key), (*unclean, "routing_key")
    if unclean:
        story = replace(story, clamped=(*unclean, *story.clamped))
    return _message(
        id=properties.message_id or new_id(),
        body=delivery.body,
        properties=properties,
        exchange=exchange,
        routing_key=routing_key,
        redelivered=delivery.redelivered,
        received_at=now,
        max_attempts=max_attempts,
        story=story,
    )


def welcome_back(message: Message) -> Message:
    """Let a dead letter that somebody moved to the work queue by hand begin anew, as if it had been requeued.

    With its old attempts it would have one try at most. For deliveries of a work queue only: a letter still in the
    dead letter queue keeps its story.
    """
    if DEAD_REASON not in message.properties.headers:
        return message
    return replace(message, story=begin_anew(message.story))


def is_expired(message: Message, now: datetime) -> bool:
    """Say whether it is past the time that its publisher gave it. While it is fresh the broker sees to that."""
    expires_at = message.story.expires_at
    return expires_at is not None and now >= expires_at
