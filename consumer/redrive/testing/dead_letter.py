"""A message that was given up, as a value: where a person would look, a test looks here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from redrive.letter import Death, read_death
from redrive.message import Message
from redrive.outcome import DeadReason
from redrive.properties import Properties
from redrive.testing.vhost import Stored


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One dead letter, with the story that its headers tell. No `reason`: nobody knows why it is there."""

    id: str
    attempt: int
    reason: DeadReason | None
    error_type: str | None
    error: str | None
    body: bytes
    died_at: datetime | None = field(repr=False)
    trace: str | None = field(repr=False)
    fingerprint: str | None = field(repr=False)
    message: Message = field(repr=False)
    stored: Stored = field(repr=False, compare=False)

    @property
    def headers(self) -> Mapping[str, object]:
        return self.message.headers

    @property
    def properties(self) -> Properties:
        return self.message.properties


def read_letter(stored: Stored, message: Message) -> DeadLetter:
    death: Death = read_death(message.headers)
    return DeadLetter(
        id=message.id,
        attempt=message.attempt,
        reason=death.reason,
        error_type=message.story.error_type,
        error=message.story.error,
        body=message.body,
        died_at=death.at,
        trace=death.trace,
        fingerprint=death.fingerprint,
        message=message,
        stored=stored,
    )
