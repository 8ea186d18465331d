"""What becomes of one dead letter in a Redrive: pure.

A message that a Redrive puts back bears its mark, the object's uid, in a header that every retry keeps. If it dies
again it so comes back marked, and the same Redrive leaves it: put back once is enough, however often the operator was
killed in between. A canary that died is known by that too.

A Redrive is about the letters that were there when it was made: one that died later is another's. Else it might never
end, where letters die as fast as they are put back.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from redrive.letters.choosing import chooser
from redrive.letters.going_back import MOST_REDRIVES, TOO_LARGE, Left, Sending, send_back
from redrive.letters.groups import Groups
from redrive.letters.letter import Letter
from redrive.republish import fits
from redrive.spec import Redrive, RedriveAction
from redrive.story import HIGHEST_COUNT
from redrive_operator.redriving.course import Census
from redrive_operator.redriving.progress import Group

MARK = "redrive-redrive"

# When an object was made is told in whole seconds, and the clock of a worker may be ahead of the API server's.
SLACK = timedelta(seconds=5)

# Letters that the broker itself has parked, and such that somebody put there, have no fingerprint.
NO_FINGERPRINT = "none"


class Fate(Enum):
    """What becomes of a letter."""

    CHOSEN = auto()
    TIRED = auto()  # it fits, and has died again too often: it is left for a person
    OURS = auto()  # this Redrive has put it back, and it has died again
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Choosing:
    """How one Redrive chooses, and what it does to a letter that it puts back."""

    redrive: Redrive
    uid: str
    judge: Callable[[Letter], Fate]

    @classmethod
    def of(cls, redrive: Redrive, *, uid: str, made: datetime) -> "Choosing":
        suits = chooser(redrive.select, seen_from=made)
        latest = made + SLACK
        patient = redrive.action is RedriveAction.DELETE or bool(redrive.select.message_ids)

        def judge(letter: Letter) -> Fate:
            if letter.headers.get(MARK) == uid:
                return Fate.OURS
            if letter.died_after(latest) or not suits(letter):
                return Fate.OTHER
            # Whoever names a message by its id, or deletes it, is the person that it was left for.
            return Fate.CHOSEN if patient or letter.redrives < MOST_REDRIVES else Fate.TIRED

        return cls(redrive, uid, judge)

    def fits(self, letter: Letter) -> bool:
        return self.judge(letter) is Fate.CHOSEN

    def send(self, letter: Letter, home: str, *, frame_max: int) -> Sending | Left:
        """Write the message that goes back to its work queue, with our mark on it."""
        sending = send_back(letter, home, frame_max=frame_max, most_redrives=HIGHEST_COUNT + 1)
        if isinstance(sending, Left):
            return sending
        exchange, key, body, properties = sending
        marked = replace(properties, headers={**properties.headers, MARK: self.uid})
        return (exchange, key, body, marked) if fits(marked, frame_max) else TOO_LARGE


class Counting:
    """Counts what a look sees."""

    def __init__(self, judge: Callable[[Letter], Fate]) -> None:
        self._judge = judge
        self._fates: Counter[Fate] = Counter()
        self._groups = Groups()

    def add(self, letter: Letter) -> None:
        fate = self._judge(letter)
        self._fates[fate] += 1
        if fate is Fate.CHOSEN:
            self._groups.add(letter)

    def census(self) -> Census:
        return Census(
            scanned=self._fates.total(),
            matched=self._fates[Fate.CHOSEN],
            skipped=self._fates[Fate.TIRED],
            died_again=self._fates[Fate.OURS],
            groups=tuple(
                Group(
                    fingerprint=group.kind.fingerprint or NO_FINGERPRINT,
                    count=group.count,
                    reason=str(group.kind.reason or ""),
                    error_type=group.kind.error_type or "",
                    example=group.example_id,
                )
                for group in self._groups.largest_first()
            ),
        )
