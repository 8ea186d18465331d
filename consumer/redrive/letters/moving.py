"""Puts chosen letters back into their work queue, or deletes them, and tells how far it is.

Always in this order: publish with mandatory, wait for the confirm, then acknowledge. Killed in between, a letter is
there twice, and never not at all. What a broker does not take stays where it is.

A letter that is put back may die again while the pass goes on. It comes in behind all that were there when the pass
began, and is not of this pass; and should somebody else have turned the queue round meanwhile, the time of its end
tells: what died after `until` is not touched.

A slow pass takes longer than a broker lets anybody hold a letter. So what is held is given back from time to time, and
the pass goes on with another round through those that are left of the first ones. Some of these may have expired, and
others come in their place: what was put back and died after the pass began is left then.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from redrive.amqp import Amqp
from redrive.errors import NotAccepted, NotFound
from redrive.letters.choosing import Choice
from redrive.letters.going_back import MOST_REDRIVES, TOO_OFTEN, Left, Send, Sending, sender
from redrive.letters.letter import Letter, read_letter
from redrive.letters.looking import Clock, Pass, check_limit, longest_hold
from redrive.letters.pace import Pace
from redrive.reading import Reading
from redrive.refusal import Refusal
from redrive.spec.redrive import RedriveAction

# How many are on their way at once. They are published, confirmed and acknowledged together.
PORTION = 512

# Between two of these it is asked whether to go on.
LONGEST_WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done, with which letters. `home` is the work queue; deleting needs none.

    `until`: letters that died later are not touched. `rate` is letters a second. `send` says how a letter goes back,
    where it is not as usual. `before` is shown what is about to leave; when it raises, nothing of that leaves.
    """

    action: RedriveAction
    choose: Choice
    home: str = ""
    limit: int | None = None
    rate: float | None = None
    until: datetime | None = None
    most_redrives: int = MOST_REDRIVES
    dry_run: bool = False
    send: Send | None = None
    before: Callable[[Sequence[Letter]], None] | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is. `total` is what was there at the start; of those, `chosen` fit, and `moved` are done.

    `too_often` and `refused` were chosen and are left for a person, the last with `complaint`, why. `moved_ids` are
    those that were moved since the progress before. `unseen` were with somebody else, who looked at the same time.
    """

    total: int
    seen: int = 0
    chosen: int = 0
    moved: int = 0
    too_often: int = 0
    refused: int = 0
    unseen: int = 0
    complaint: str = ""
    moved_ids: tuple[str, ...] = field(default=(), compare=False)
    stopped: bool = False


Watch = Callable[[], bool]


def move(
    amqp: Amqp,
    queue: str,
    order: Order,
    *,
    reading: Reading | None = None,
    keep_going: Watch = lambda: True,
    clock: Clock = time.monotonic,
) -> Iterator[Progress]:
    """Do it, and tell after each portion how far it is; the last told is the result.

    Stops between portions when `keep_going` says no. Raises BrokerError for what concerns all letters: what was moved
    until then is moved, and the rest is where it was.
    """
    check_limit(amqp, queue, reading)
    if order.action is RedriveAction.REQUEUE and amqp.count_ready(order.home) is None:
        raise NotFound(f"there is no work queue {order.home!r} to put letters back into")
    hold = longest_hold(queue, reading)
    mover = _Mover(amqp, queue, order, keep_going=keep_going, clock=clock)
    with Pass(amqp, queue, hold=hold, clock=clock) as first:
        mover.begin(first)
        yield from mover.round(first)
    while not mover.is_over:
        # Those of the first round that are left are the first in the queue.
        with Pass(amqp, queue, most=mover.left, hold=hold, clock=clock) as again:
            yield from mover.round(again)
    yield replace(mover.progress, moved_ids=())


class _Mover:
    """Moves letters, round by round. `left` is how many of the first ones are in the queue still."""

    def __init__(self, amqp: Amqp, queue: str, order: Order, *, keep_going: Watch, clock: Clock) -> None:
        self._amqp = amqp
        self._queue = queue
        self._order = order
        self._keep_going = keep_going
        self._clock = clock
        self._pace = Pace(order.rate)
        self._send = order.send or sender(order.home, most_redrives=order.most_redrives)
        self._unaccepted = ""
        self._began = datetime.now(UTC)
        self._rounds = 0
        self.progress = Progress(0)
        self.is_over = False

    @property
    def left(self) -> int:
        return self.progress.total - self.progress.moved

    def begin(self, first: Pass) -> None:
        self.progress = Progress(first.total)

    def round(self, looked: Pass) -> Iterator[Progress]:
        """Go through what is there. Counts begin anew with each round, but for what is gone already."""
        before = self.progress.moved
        self._rounds += 1
        self._tell(seen=before, chosen=before, too_often=0, refused=0, unseen=0)
        for window in looked.windows():
            now = datetime.now(UTC)
            letters = (read_letter(delivery, now=now) for delivery in window)
            chosen = [letter for letter in letters if self._is_chosen(letter)]
            self._tell(seen=before + looked.seen)
            yield from self._move_some(looked, chosen)
            if self.is_over or looked.is_late():
                break
        self._tell(unseen=looked.unseen)
        # One that moved nothing in all its time would not do better the next time.
        self.is_over = self.is_over or not looked.is_late() or self.progress.moved == before

    def _is_chosen(self, letter: Letter) -> bool:
        until = self._order.until
        is_in_time = until is None or not letter.died_after(until)
        return is_in_time and not self._has_come_after(letter) and self._order.choose(letter)

    def _has_come_after(self, letter: Letter) -> bool:
        """Say whether it may be one that we have put back: a later round may come to those that died again."""
        return self._rounds > 1 and letter.redrives > 0 and letter.died_after(self._began)

    def _move_some(self, looked: Pass, chosen: Sequence[Letter]) -> Iterator[Progress]:
        """Move these, portion by portion, until there is a reason to stop."""
        if not chosen:
            self._is_told_to_stop()
            yield self._tell(moved_ids=())
        start = 0
        while start < len(chosen) and not looked.is_late() and self._may_go():
            portion = chosen[start : start + min(self._pace.portion(PORTION), self._room())]
            start += len(portion)
            moved = self._settle(looked, portion)
            self._pace.went(len(moved), self._clock())
            yield self._tell(moved_ids=tuple(letter.message.id for letter in moved))
            self.is_over = self.is_over or self._room() == 0

    def _room(self) -> int:
        """Say how many more the limit allows."""
        limit, done = self._order.limit, self.progress
        counted = done.chosen - done.too_often - done.refused if self._order.dry_run else done.moved
        return PORTION if limit is None else max(0, limit - counted)

    def _may_go(self) -> bool:
        """Wait until the next may go; False when it is told to stop."""
        while not self.is_over and not self._is_told_to_stop():
            seconds = self._pace.wait(self._clock())
            if seconds == 0:
                return True
            self._amqp.wait(min(seconds, LONGEST_WAIT_SECONDS))
        return False

    def _is_told_to_stop(self) -> bool:
        if not self._keep_going():
            self.is_over = True
            self._tell(stopped=True)
        return self.is_over

    def _settle(self, looked: Pass, portion: Sequence[Letter]) -> list[Letter]:
        """Do with these what was ordered, and return those that are gone from here."""
        requeues = self._order.action is RedriveAction.REQUEUE
        going = self._send_back(portion) if requeues else list(portion)
        done = [] if self._order.dry_run else going
        if self._order.before is not None and done and not requeues:
            self._order.before(done)
        looked.moved([letter.tag for letter in done])
        self._tell(chosen=self.progress.chosen + len(portion), moved=self.progress.moved + len(done))
        if self._unaccepted:
            raise NotAccepted(f"the work queue {self._order.home!r} took no more: {self._unaccepted}")
        return done

    def _send_back(self, portion: Sequence[Letter]) -> list[Letter]:
        """Publish these to their queue, and return those that it has for good."""
        going: list[tuple[Letter, Sending]] = []
        for letter in portion:
            sending = self._send(letter, self._amqp.frame_max)
            if isinstance(sending, Left):
                self._leave(sending)
            else:
                going.append((letter, sending))
        if self._order.dry_run or not going:
            return []
        if self._order.before is not None:
            self._order.before([letter for letter, _ in going])
        refusals = self._amqp.publish_several([sending for _, sending in going])
        for refusal in filter(None, refusals):
            self._refuse(refusal)
        return [letter for (letter, _), refusal in zip(going, refusals, strict=True) if refusal is None]

    def _leave(self, left: Left) -> None:
        if left is TOO_OFTEN:
            self._tell(too_often=self.progress.too_often + 1)
        else:
            self._tell(refused=self.progress.refused + 1, complaint=left.why)

    def _refuse(self, refusal: Refusal) -> None:
        """One that cannot be published stays, alone; a queue that takes nothing is everybody's trouble."""
        if refusal.kind != "refused":
            self._unaccepted = refusal.reason
        self._tell(refused=self.progress.refused + 1, complaint=refusal.reason)

    def _tell(self, **facts: Any) -> Progress:  # noqa: ANN401 - the fields of Progress
        self.progress = replace(self.progress, **facts)
        return self.progress
