"""A dead letter as it lies in its queue: the message, and how it ended.

Headers come from outside, and reading them never raises: what makes no sense is left out, as the worker does it. No
letter died later than now: one that says so would be left by all who leave what came after they had begun.

Each part is read when it is first asked for: of a hundred thousand letters that are looked through, most are asked for
one thing.
"""

from collections.abc import Mapping
from datetime import datetime
from uuid import uuid4

from redrive.delivery import Delivery
from redrive.letter import DEAD_AT, FINGERPRINT, Death, not_ahead, read_death, read_reason
from redrive.message import Message, read_message
from redrive.outcome import DeadReason
from redrive.properties import Properties, clean
from redrive.story import ERROR_TYPE, HeaderReader, Story, read_story


class Letter:
    """One dead letter. `delivery` is what came from the broker, as it came. Not to be changed."""

    __slots__ = ("_death", "_message", "_properties", "_received_at", "_story", "delivery")

    def __init__(self, delivery: Delivery, received_at: datetime) -> None:
        self.delivery = delivery
        self._received_at = received_at
        self._properties: Properties | None = None
        self._story: Story | None = None
        self._death: Death | None = None
        self._message: Message | None = None

    def __repr__(self) -> str:
        return f"Letter({self.id!r}, {self.reason})"

    @property
    def tag(self) -> int:
        return self.delivery.tag

    @property
    def properties(self) -> Properties:
        if self._properties is None:
            self._properties, _ = clean(self.delivery.properties)
        return self._properties

    @property
    def headers(self) -> Mapping[str, object]:
        return self.properties.headers

    @property
    def story(self) -> Story:
        if self._story is None:
            self._story = read_story(self.headers)
        return self._story

    @property
    def death(self) -> Death:
        if self._death is None:
            self._death = not_ahead(read_death(self.headers), self._received_at)
        return self._death

    @property
    def message(self) -> Message:
        """The message as it was delivered: what is put back is made of it."""
        if self._message is None:
            self._message = read_message(self.delivery, now=self._received_at, max_attempts=1, new_id=_new_id)
        return self._message

    @property
    def id(self) -> str:
        """The publisher's message id; empty where there was none."""
        return self.properties.message_id or ""

    @property
    def reason(self) -> DeadReason | None:
        return read_reason(self.headers) if self._death is None else self._death.reason

    @property
    def error_type(self) -> str | None:
        return HeaderReader(self.headers).text(ERROR_TYPE) if self._story is None else self._story.error_type

    @property
    def error(self) -> str | None:
        return self.story.error

    @property
    def fingerprint(self) -> str | None:
        return HeaderReader(self.headers).text(FINGERPRINT) if self._death is None else self._death.fingerprint

    @property
    def trace(self) -> str | None:
        return self.death.trace

    @property
    def pod(self) -> str | None:
        return self.death.pod

    @property
    def dead_at(self) -> datetime | None:
        """When it died; of one that says that it will, now."""
        return self.death.at

    def died_after(self, moment: datetime) -> bool:
        """Say whether it is known to have died later. What has no time, or none to be believed, is not."""
        death = self.death
        return death.at is not None and death.at > moment and DEAD_AT not in death.clamped

    @property
    def attempts(self) -> int:
        """How many attempts it had; the last one is the one it died of."""
        return self.story.attempt

    @property
    def redrives(self) -> int:
        """How often it was put back already."""
        return self.story.redrives

    @property
    def body(self) -> bytes:
        return self.delivery.body


def read_letter(delivery: Delivery, *, now: datetime) -> Letter:
    """Read what a dead queue delivered. Never raises, nor does anything that is asked of the letter."""
    return Letter(delivery, now)


def _new_id() -> str:
    return str(uuid4())
