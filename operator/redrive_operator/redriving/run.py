"""One Redrive at work: its next steps, as far as they go in one turn.

A turn is short, whatever there is to do: it counts, or moves for about a minute, or looks once at canaries. What it has
not seen, because somebody else is looking at the same letters, is never taken for nothing: it looks again.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, assert_never

from redrive.letters.letter import Letter
from redrive_operator.redriving.account import Account
from redrive_operator.redriving.choosing import Choosing, Counting
from redrive_operator.redriving.course import (
    Census,
    Count,
    End,
    Move,
    Step,
    Watch,
    counted,
    ended,
    next_step,
    pause_between_looks,
    watched,
)
from redrive_operator.redriving.session import Hands, Session
from redrive_operator.tools import Tools
from redrive_operator.turns import Turn

# Whatever is held by a session nobody else can see: so it is given back now and then.
SESSION_SECONDS = 60.0

# The broker's counts lag by five seconds: what they do not agree with is looked at again.
LAG_SECONDS, AGAIN_SECONDS = 6.0, 3.0

# A look that was too long for the broker's patience is not repeated at once.
LATER_SECONDS = 60.0

# A broker that never counts is believed after this.
BELIEVED_SECONDS = 20.0

AT_ONCE = Turn(reached=True, patience=0.0)
SOON = Turn(reached=True, patience=AGAIN_SECONDS)
LATER = Turn(reached=True, patience=LATER_SECONDS)


@dataclass(slots=True)
class Visit:
    """What is remembered of a Redrive between its turns, and would be found out again."""

    began: float  # by the clock
    exhausted: bool = False
    rests_until: float = 0.0
    cost: timedelta = timedelta(0)


class Letters(Protocol):
    """The dead letters of a consumer, as they were found when this turn began: see `way.Archive`."""

    @property
    def there(self) -> int | None: ...

    @property
    def is_idle(self) -> bool: ...

    @property
    def hold(self) -> timedelta: ...

    def open(self) -> AbstractContextManager[Hands[Letter]]: ...


Enter = Callable[[Choosing], AbstractContextManager[Letters]]


class Run:
    """Works in one thread, for one turn. `enter` leads to the letters."""

    def __init__(self, tools: Tools, account: Account, enter: Enter, visit: Visit) -> None:
        self._tools = tools
        self._account = account
        self._enter = enter
        self._visit = visit
        self._entered = tools.clock()
        self._note = ""
        subject = account.pen.subject
        self._choosing = Choosing.of(account.redrive, uid=subject.uid, made=subject.created)

    def go_on(self) -> Turn:
        """Do what is next; raises Hindered, Gone, and whatever the broker and the API server raise."""
        if isinstance(self._next(), Watch) and self._rests():
            return self._rest()
        with self._enter(self._choosing) as letters:
            turn: Turn | None = None
            while turn is None:
                turn = self._do(letters)
            return turn

    def _next(self) -> Step:
        return next_step(self._account.redrive, self._account.progress, exhausted=self._visit.exhausted)

    def _do(self, letters: Letters) -> Turn | None:
        """Do one step; None when there may be another in this turn."""
        step = self._next()
        match step:
            case Count():
                return self._count(letters, step)
            case Move():
                return self._move(letters)
            case Watch():
                return self._watch(letters, step)
            case End():
                self._account.progress = ended(self._account.progress, now=self._tools.now())
                self._account.write(step, note=self._note)
                return AT_ONCE
            case _:
                assert_never(step)

    def _count(self, letters: Letters, step: Count) -> Turn | None:
        account = self._account
        account.write(step, counting=True)
        seen = self._look_through(letters)
        if seen is None:
            return AT_ONCE
        census, late = seen
        is_last = account.redrive.dry_run or not census.matched
        if is_last and not self._is_whole(letters, census.scanned):
            if not late:
                account.write(step, note=_IN_OTHER_HANDS, counting=True)
                return SOON
            if not account.redrive.dry_run:
                account.write(step, note=_TOO_MANY, counting=True)
                return LATER
            self._note = _TOO_MANY  # to look again would find as many
        account.progress = counted(account.progress, census, now=self._tools.now())
        return None

    def _move(self, letters: Letters) -> Turn | None:
        account = self._account
        before = account.progress.done
        account.ends_at = self._tools.clock() + min(SESSION_SECONDS, letters.hold.total_seconds())
        with letters.open() as hands:
            looked = Session(hands, self._choosing.fits, account, clock=self._tools.clock).run()
        self._visit.exhausted = looked.exhausted and self._is_whole(letters, looked.scanned)
        step = self._next()
        if not isinstance(step, Move):
            self._plan_rest(step)
            return None
        if not looked.exhausted or (looked.late and account.progress.done > before):
            account.write(step)
            return AT_ONCE
        account.write(step, note=_TOO_MANY if looked.late else _IN_OTHER_HANDS)
        return LATER if looked.late else SOON

    def _watch(self, letters: Letters, step: Watch) -> Turn | None:
        account, began = self._account, self._tools.clock()
        if self._rests():
            account.write(step)
            return self._rest()
        seen = self._look_through(letters)
        if seen is None:
            return AT_ONCE
        census, _ = seen
        whole, idle = self._is_whole(letters, census.scanned), letters.is_idle
        account.progress = watched(
            account.progress, died=census.died_again, now=self._tools.now(), until=step.until, idle=idle, whole=whole
        )
        following = self._next()
        if not isinstance(following, Watch):
            return None
        account.write(following, note=_NOBODY_CONSUMES if idle else "" if whole else _IN_OTHER_HANDS)
        self._visit.cost = timedelta(seconds=self._tools.clock() - began)
        self._plan_rest(following)
        return self._rest() if whole else SOON

    def _look_through(self, letters: Letters) -> tuple[Census, bool] | None:
        """Look at all letters; say too if there was no time for more. None when somebody wants us to stop meanwhile."""
        counting = Counting(self._choosing.judge)
        with letters.open() as hands:
            while taken := hands.take():
                if not self._account.goes_on():
                    return None
                for letter in taken:
                    counting.add(letter)
            return counting.census(), hands.is_late

    def _is_whole(self, letters: Letters, scanned: int) -> bool:
        """Say whether that were all the letters, also by the broker's count: others may be looking at some of them.

        A count of when this Redrive was just begun may not have those yet that died shortly before.
        """
        age = self._entered - self._visit.began
        if letters.there is None:
            return age >= BELIEVED_SECONDS
        return age >= LAG_SECONDS and scanned >= letters.there

    def _plan_rest(self, step: Step) -> None:
        """Let canaries alone for a while, but be there when it is to be decided."""
        canary = self._account.redrive.canary
        if canary is None or not isinstance(step, Watch):
            return
        pause = pause_between_looks(canary, cost=self._visit.cost)
        left = max(timedelta(0), step.until - self._tools.now())
        self._visit.rests_until = self._tools.clock() + min(pause, left).total_seconds()

    def _rests(self) -> bool:
        return self._tools.clock() < self._visit.rests_until

    def _rest(self) -> Turn:
        return Turn(reached=True, patience=max(0.0, self._visit.rests_until - self._tools.clock()))


_IN_OTHER_HANDS = "some dead letters are in other hands now, and are waited for"
_TOO_MANY = (
    "there are more dead letters than can be looked through in the time for which the broker lets anybody hold them, "
    "and those behind were not seen: move or delete some of the first ones, or raise the broker's consumer_timeout"
)
_NOBODY_CONSUMES = "nobody consumes the queue, so nothing is learned, and the time begins anew"
