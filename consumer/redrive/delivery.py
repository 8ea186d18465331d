"""What a broker hands over: a message with where it came from, not yet made sense of."""

from dataclasses import dataclass, field

from redrive.properties import Properties


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that the broker handed out and waits to hear about, by its tag.

    Exchange and routing key are bytes where they are no valid text. `header` are the properties as they came over the
    wire, for who sends them on to another process; empty where nobody does.
    """

    tag: int
    exchange: str | bytes
    routing_key: str | bytes
    redelivered: bool
    body: bytes
    properties: Properties
    header: bytes = field(default=b"", compare=False, repr=False)
