"""What a turn is to do for one consumer on its broker."""

from dataclasses import dataclass

from redrive.spec import Consumer
from redrive_operator.registry import Entry
from redrive_operator.subject import Key


@dataclass(frozen=True, slots=True)
class Job:
    """One consumer to provide for. `expected` says that it was complete before: what is missing now is drift."""

    entry: Entry
    consumer: Consumer
    expected: bool

    @property
    def key(self) -> Key:
        return self.entry.key
