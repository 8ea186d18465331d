"""What a broker hands over: a message with where it came from, not yet made sense of."""

from dataclasses import dataclass

from redrive.properties import Properties


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that the broker handed out and waits to hear about, by its tag.

    Exchange and routing key are bytes where they are no valid text.
    """

    tag: int
    exchange: str | bytes
    routing_key: str | bytes
    redelivered: bool
    body: bytes
    properties: Properties
