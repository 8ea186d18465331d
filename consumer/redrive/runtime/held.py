"""A message in our hands, and what the worker knows of it.

It outlives the channel that it came by: when the broker takes back what was unacknowledged, what has begun here goes
on, and meets its own redelivery later. Until then it has no `book`, and nothing can be said to the broker about it.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto

from redrive.delivery import Delivery
from redrive.message import Message
from redrive.outcome import Failed
from redrive.runners import Job
from redrive.runtime.acks import Book
from redrive.runtime.ports import Session, Timer
from redrive.settle import Disposal


class Stage(Enum):
    """How far a message has come in this worker."""

    WAITING = auto()  # its run has not begun
    RUNNING = auto()  # begun, and maybe between two tries in place
    DECIDED = auto()  # what becomes of it is known, and waits for a delivery that it can be done to
    SENDING = auto()  # on its way back to the broker, which has not confirmed it yet
    SENT = auto()  # only the acknowledgement is missing


@dataclass(slots=True, eq=False)
class Held(Job):
    """One message. It is the job that a runner is given, too, so that no table has to lead from one to the other."""

    delivery: Delivery = field(kw_only=True)
    book: "Book[Held] | None" = None
    tag: int = 0
    stage: Stage = Stage.WAITING
    tries: int = 0
    first_try_at: float | None = None
    seconds: float = 0.0
    refusals: int = 0
    silences: int = 0  # how often the broker was found to have said nothing yet to what it was sent
    failed: Failed | None = None
    disposal: Disposal | None = None
    planned_at: datetime | None = None
    again: Timer | None = None
    # Its queue may be gone, and nobody else have it: it is finished though there is no delivery to settle.
    is_adrift: bool = False
    # What became of it leaves a message that looks the same: it must not be taken for its own redelivery.
    is_gone: bool = False
    # A suspect that came back because of how we sent it round, and not because its worker died.
    is_cleared: bool = False

    @property
    def is_ours(self) -> bool:
        """Say whether the broker has not taken it back."""
        return self.book is not None or self.is_adrift

    @property
    def is_kept(self) -> bool:
        """Say whether it stays in our hands for nobody knows how long: the broker refuses it, or is silent about it."""
        return self.refusals > 0 or self.silences > 1

    def enter(self, book: "Book[Held]", tag: int) -> None:
        self.book, self.tag = book, tag
        book.held[tag] = self

    def leave(self) -> Session | None:
        """Be no longer among those in our hands; give the session that it came by, if there still is one."""
        if self.book is None:
            return None
        session = self.book.session
        del self.book.held[self.tag]
        self.book = None
        return session


def hold(message: Message, delivery: Delivery) -> Held:
    return Held(message, header=delivery.header, delivery=delivery)
