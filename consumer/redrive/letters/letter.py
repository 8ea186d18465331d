"""A dead letter as it lies in its queue: the message, and how it ended.

Headers come from outside, and reading them never raises: what makes no sense is left out, as the worker does it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from redrive.delivery import Delivery
from redrive.letter import Death, read_death
from redrive.message import Message, read_message
from redrive.outcome import DeadReason
from redrive.properties import Properties
from redrive.quickly import quickly


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. `delivery` is what came from the broker, as it came."""

    delivery: Delivery
    message: Message
    death: Death

    @property
    def tag(self) -> int:
        return self.delivery.tag

    @property
    def id(self) -> str:
        """The publisher's message id; empty where there was none."""
        return self.message.properties.message_id or ""

    @property
    def reason(self) -> DeadReason | None:
        return self.death.reason

    @property
    def error_type(self) -> str | None:
        return self.message.story.error_type

    @property
    def error(self) -> str | None:
        return self.message.story.error

    @property
    def fingerprint(self) -> str | None:
        return self.death.fingerprint

    @property
    def trace(self) -> str | None:
        return self.death.trace

    @property
    def pod(self) -> str | None:
        return self.death.pod

    @property
    def dead_at(self) -> datetime | None:
        return self.death.at

    @property
    def attempts(self) -> int:
        """How many attempts it had; the last one is the one it died of."""
        return self.message.story.attempt

    @property
    def redrives(self) -> int:
        """How often it was put back already."""
        return self.message.story.redrives

    @property
    def headers(self) -> Mapping[str, object]:
        return self.message.properties.headers

    @property
    def properties(self) -> Properties:
        return self.message.properties

    @property
    def body(self) -> bytes:
        return self.message.body


_letter = quickly(Letter)


def read_letter(delivery: Delivery, *, now: datetime) -> Letter:
    """Read what a dead queue delivered. Never raises."""
    message = read_message(delivery, now=now, max_attempts=1, new_id=_new_id)
    return _letter(delivery=delivery, message=message, death=read_death(message.properties.headers))


def _new_id() -> str:
    return str(uuid4())
