"""Letters counted by what they died of: the same fingerprint, or where there is none, the same reason and error type.

How many kinds there are is for strangers to choose, so that only some are counted each by itself; what comes when those
are full is counted together.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from redrive.letters.letter import Letter
from redrive.outcome import DeadReason

MOST_GROUPS = 1000


@dataclass(frozen=True, slots=True)
class Kind:
    """What letters of one group have in common."""

    reason: DeadReason | None
    error_type: str | None
    fingerprint: str | None


@dataclass(slots=True)
class Group:
    """How many there are of a kind, with one of them as an example: the first that was seen."""

    kind: Kind
    example_id: str
    example_error: str
    count: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None

    def add(self, letter: Letter) -> None:
        self.count += 1
        if letter.dead_at is not None:
            self.oldest = min(self.oldest or letter.dead_at, letter.dead_at)
            self.newest = max(self.newest or letter.dead_at, letter.dead_at)


class Groups:
    """Counts letters as they come by. `others` are those for which there was no room."""

    def __init__(self, *, most: int = MOST_GROUPS) -> None:
        self._most = most
        self._groups: dict[Kind, Group] = {}
        self.others = 0
        self.total = 0

    def add(self, letter: Letter) -> None:
        self.total += 1
        kind = Kind(letter.reason, letter.error_type, letter.fingerprint)
        group = self._groups.get(kind)
        if group is None and len(self._groups) >= self._most:
            self.others += 1
            return
        if group is None:
            group = self._groups[kind] = Group(kind, letter.id, letter.error or "")
        group.add(letter)

    def add_all(self, letters: Iterable[Letter]) -> None:
        for letter in letters:
            self.add(letter)

    def largest_first(self) -> list[Group]:
        return sorted(self._groups.values(), key=lambda group: -group.count)
