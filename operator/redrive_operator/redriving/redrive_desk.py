"""The Redrives of one consumer: whose turn it is, and what its turn comes to.

One works at a time, in one thread: who has begun, then the oldest. One that is paused lets others pass. An object is
read anew before anything is moved for it: a watch may be behind what another operator has written.
"""

import logging
import threading
from typing import Protocol

from redrive.errors import BrokerError, Unreachable
from redrive.spec import Redrive
from redrive_operator.errors import KubeConflict
from redrive_operator.judge import Verdict
from redrive_operator.kube import REDRIVES
from redrive_operator.reasons import CompleteReason
from redrive_operator.redriving.account import Account, Memory
from redrive_operator.redriving.book import Book, RedriveEntry, read_redrive_entry
from redrive_operator.redriving.course import find_next
from redrive_operator.redriving.hindrance import Hindered, explain_error
from redrive_operator.redriving.judging import Stance, is_over, judge_invalid_redrive, judge_redrive
from redrive_operator.redriving.pen import Gone, Pen
from redrive_operator.redriving.progress import read_progress
from redrive_operator.redriving.run import AT_ONCE, Enter, Run, Visit
from redrive_operator.subject import Key
from redrive_operator.tools import Tools
from redrive_operator.turns import Turn

LOGGER = logging.getLogger(__name__)

PAUSED = Stance(CompleteReason.PAUSED, "spec.paused is set: set it to false, and it goes on")


class Way(Protocol):
    """Leads to the dead letters."""

    @property
    def enter(self) -> Enter: ...


class Ways(Protocol):
    """Finds the way for a Redrive; Hindered where there is none."""

    def find(self, redrive: Redrive) -> Way: ...


class RedriveDesk:
    """Works in one thread at a time."""

    def __init__(self, consumer: Key, tools: Tools, book: Book, ways: Ways, stopping: threading.Event) -> None:
        self._consumer = consumer
        self._tools = tools
        self._book = book
        self._ways = ways
        self._stopping = stopping
        self._memory = Memory()
        self._visits: dict[str, Visit] = {}

    def turn(self) -> Turn | None:
        """Go on with whose turn it is; None where nobody has anything to do until something changes."""
        entries = [entry for entry in self._book.of(self._consumer) if _is_open(entry)]
        self._forget_others(entries)
        for entry in entries:
            if entry.error is not None:
                self._tell(entry, judge_invalid_redrive(entry.subject, entry.error, now=self._tools.now()))
        usable = [(entry, entry.redrive) for entry in entries if entry.redrive is not None]
        for entry, redrive in usable:
            if redrive.paused:
                self._stand(entry, redrive, PAUSED)
        active = [(entry, redrive) for entry, redrive in usable if not redrive.paused]
        waiting, working = max(0, len(active) - 1), min(1, len(active))
        self._count(paused=len(usable) - len(active), waiting=waiting, working=working, blocked=0)
        return self._choose(active) if active else None

    def _choose(self, active: list[tuple[RedriveEntry, Redrive]]) -> Turn:
        places = [(_has_begun(entry), entry.subject.created, entry.key.name) for entry, _ in active]
        chosen, redrive = active[find_next(places)]
        for entry, other in active:
            if entry is not chosen:
                waits = f"the Redrive {chosen.key.name} of the same consumer goes first; this one follows by itself"
                self._stand(entry, other, Stance(CompleteReason.WAITING, waits))
        return self._have_turn(chosen, redrive)

    def _have_turn(self, entry: RedriveEntry, redrive: Redrive) -> Turn:
        """Go on with one. What is in the way is told in its status, and tried again."""
        try:
            return self._go_on(self._read_anew(entry), self._ways.find(redrive))
        except Gone:
            return AT_ONCE
        except Hindered as hindered:
            self._count(working=0, blocked=1)
            self._stand(entry, redrive, hindered.stance)
            return Turn(reached=hindered.reached)

    def _go_on(self, entry: RedriveEntry, way: Way) -> Turn:
        if entry.redrive is None or entry.redrive.paused:
            return AT_ONCE
        progress = self._memory.recall(entry)
        account = Account(self._tools, self._book, entry, entry.redrive, progress=progress, stopping=self._stopping)
        visit = self._visits.setdefault(entry.subject.uid, Visit(self._tools.clock()))
        try:
            return Run(self._tools, account, way.enter, visit).go_on()
        except BrokerError as error:
            LOGGER.warning("the Redrive %s is tried again: %s", entry.key, error)
            self._count(working=0, blocked=1)
            account.pen.write(account.redrive, account.progress, explain_error(error))
            return Turn(reached=not isinstance(error, Unreachable))
        finally:
            self._memory.keep(account)

    def _read_anew(self, entry: RedriveEntry) -> RedriveEntry:
        body = self._tools.kube.get(REDRIVES, entry.key)
        if body is None:
            self._book.drop(entry.key, uid=entry.subject.uid)
            raise Gone
        fresh = read_redrive_entry(body)
        self._book.put(fresh)
        if fresh.subject.uid != entry.subject.uid or not _is_open(fresh):
            raise Gone
        return fresh

    def _stand(self, entry: RedriveEntry, redrive: Redrive, stance: Stance) -> None:
        """Have one that is not at work say why."""
        known = self._book.get(entry.key)
        if known is None or known.subject.uid != entry.subject.uid or not _is_open(known):
            return
        progress = read_progress(known.subject.status)
        self._tell(known, judge_redrive(known.subject, redrive, progress, stance, now=self._tools.now()))

    def _tell(self, entry: RedriveEntry, verdict: Verdict) -> None:
        try:
            Pen(self._tools, self._book, entry).tell(verdict)
        except Gone:
            self._book.drop(entry.key, uid=entry.subject.uid)
        except KubeConflict:
            LOGGER.debug("the Redrive %s has changed meanwhile, and is judged again", entry.key)

    def _count(self, **states: int) -> None:
        self._tools.metrics.saw_redrives(self._consumer, states)

    def _forget_others(self, entries: list[RedriveEntry]) -> None:
        here = {entry.subject.uid for entry in entries}
        for uid in self._visits.keys() - here:
            del self._visits[uid]


def _is_open(entry: RedriveEntry) -> bool:
    return not entry.subject.deleting and not is_over(entry.subject)


def _has_begun(entry: RedriveEntry) -> bool:
    return read_progress(entry.subject.status).started is not None
