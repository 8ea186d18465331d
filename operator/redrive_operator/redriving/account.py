"""The account of one Redrive that is at work: what it may move next, written down before it does.

Between two writes the truth is ahead of the status by what was begun. If a write fails, what was done since the last
one is kept in memory: whoever comes next in this operator goes on with that, and the next operator with the status.
"""

import threading

from redrive.spec import Redrive
from redrive_operator.errors import KubeError
from redrive_operator.reasons import CompleteReason, ConditionType
from redrive_operator.redriving.book import Book, RedriveEntry
from redrive_operator.redriving.course import Move, Step, begin, next_step, settle
from redrive_operator.redriving.judging import Stance, is_over, take_stance
from redrive_operator.redriving.pen import Pen
from redrive_operator.redriving.progress import Progress, read_progress
from redrive_operator.subject import Key
from redrive_operator.tools import Tools


class Account:
    """Asked by a session, in one thread. `ends_at` is when the session is to end, by the clock."""

    def __init__(
        self,
        tools: Tools,
        book: Book,
        entry: RedriveEntry,
        redrive: Redrive,
        *,
        progress: Progress,
        stopping: threading.Event,
    ) -> None:
        self._tools = tools
        self._book = book
        self._stopping = stopping
        self.redrive = redrive
        self.progress = progress
        self.pen = Pen(tools, book, entry)
        self._consumer = entry.consumer
        self.ends_at = float("inf")
        self._moves = False

    @property
    def key(self) -> Key:
        return self.pen.subject.key

    @property
    def rate(self) -> int:
        current = self._current()
        return self.redrive.rate if current is None else current.rate

    def goes_on(self) -> bool:
        current = self._current()
        return current is not None and not current.paused and not self._stopping.is_set()

    def begin(self) -> Move | None:
        if not self.goes_on() or self._tools.clock() >= self.ends_at or (self._moves and self._others_are_new()):
            return None
        step = next_step(self.redrive, self.progress)
        if not isinstance(step, Move):
            return None
        before, self.progress = self.progress, begin(self.progress, step, now=self._tools.now())
        try:
            self.write(step)
        except KubeError:
            self.progress = before  # nothing is moved now
            raise
        return step

    def settle(self, step: Move, *, moved: int, failed: int, unknown: int) -> None:
        now = self._tools.now()
        self._moves = self._moves or moved > 0
        self.progress = settle(self.progress, step, moved=moved, failed=failed, unknown=unknown, now=now)
        self._tools.metrics.redriven(self._consumer, self.redrive.action, moved)

    def write(self, step: Step, *, note: str = "", counting: bool = False) -> None:
        stance = take_stance(self.redrive, self.progress, step, note=note)
        past = self.pen.subject.history[ConditionType.COMPLETE]
        if isinstance(step, Move) and not self._moves and past.reason == CompleteReason.NOT_ACCEPTED:
            stance = Stance(CompleteReason.NOT_ACCEPTED, past.message)  # until one is taken, it is as it was
        self.pen.write(self.redrive, self.progress, stance, counting=counting)

    def _others_are_new(self) -> bool:
        """Say whether another Redrive of this consumer has not been told yet that it waits: the desk does that."""
        others = [entry.subject for entry in self._book.of(self._consumer) if entry.key != self.key]
        return any(other.status.get("observedGeneration") != other.generation for other in others if not is_over(other))

    def _current(self) -> Redrive | None:
        """Give what the object asks for now; None where it is gone, or going."""
        entry = self._book.get(self.key)
        if entry is None or entry.subject.uid != self.pen.subject.uid or entry.subject.deleting:
            return None
        return entry.redrive


class Memory:
    """What an operator knows better than the status: the progress that it could not write, by the object's uid."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Progress, Progress]] = {}

    def recall(self, entry: RedriveEntry) -> Progress:
        """Give the progress of an object; what we know beyond its status, if that is as we left it."""
        told = read_progress(entry.subject.status)
        written, actual = self._known.pop(entry.subject.uid, (told, told))
        return actual if written == told else told

    def keep(self, account: Account) -> None:
        written = read_progress(account.pen.subject.status)
        if written != account.progress:
            self._known[account.pen.subject.uid] = (written, account.progress)
