"""All Redrives of an operator: takes what was seen of them, and has them work in threads of their own.

Each consumer with a Redrive is one desk of an engine of its own, apart from that of the consumers: a redrive of a
million letters, one a second, holds up no turn of theirs. A Redrive that moves letters has a thread for itself, for a
minute at a time; there are so many of these threads that few ever wait, and no more.
"""

import logging
import threading
from collections.abc import Mapping
from typing import Any

from redrive_operator.engine import Engine
from redrive_operator.kube import REDRIVES, Kube
from redrive_operator.redriving.book import Book, read_redrive_entry
from redrive_operator.redriving.redrive_desk import RedriveDesk
from redrive_operator.redriving.way import WayFinder
from redrive_operator.subject import Key, Subject
from redrive_operator.tools import Tools
from redrive_operator.turns import Turn
from redrive_operator.watching import Watched

LOGGER = logging.getLogger(__name__)

# At work at once; each has one connection to its broker.
THREADS = 16

# A look through millions of letters is long, and no reason to give its thread up for lost.
HUNG_SECONDS = 1800.0


class Redriving:
    """Open it, tell it what was seen, close it."""

    def __init__(self, kube: Kube, tools: Tools) -> None:
        self._kube = kube
        self._tools = tools
        self._book = Book()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._desks: dict[Key, RedriveDesk] = {}
        self._engine: Engine[Key] = Engine(
            self._work,
            interval=tools.settings.interval,
            threads=THREADS,
            clock=tools.clock,
            name="redrive",
            hung=HUNG_SECONDS,
        )
        self.watched = Watched(REDRIVES, self._known, self._found)

    def list_all(self, namespace: str | None) -> None:
        for body in self._kube.each(REDRIVES, namespace=namespace):
            self.seen(body)

    def start(self) -> None:
        self._engine.start()

    def close(self, patience: float) -> bool:
        """Have everybody stop at the next letter; say whether all have, in time."""
        self._stopping.set()
        return self._engine.stop(patience)

    def seen(self, body: Mapping[str, Any], *, gone: bool = False) -> None:
        """Take a Redrive as a watch or a list showed it."""
        entry = read_redrive_entry(body)
        if gone:
            self._dismiss(entry.key, entry.subject.uid)
        elif self._book.put(entry):
            self._engine.wake(entry.consumer)

    def wake(self, consumer: Key) -> None:
        """Be told that something about a consumer has changed."""
        if self._book.of(consumer):
            self._engine.wake(consumer)

    def _work(self, consumer: Key, _: frozenset[Key] | None) -> Turn:
        with self._lock:
            desk = self._desks.get(consumer)
            if desk is None:
                ways = WayFinder(consumer, self._tools)
                desk = self._desks[consumer] = RedriveDesk(consumer, self._tools, self._book, ways, self._stopping)
        before = self._book.versions(consumer)
        turn = desk.turn()
        if turn is not None:
            return turn
        self._engine.forget(consumer)
        if self._book.versions(consumer) != before:
            self._engine.wake(consumer)  # something was seen meanwhile, and its turn was just forgotten
        elif not before:
            self._tools.metrics.forget_redrives(consumer)
            with self._lock:
                self._desks.pop(consumer, None)
        return Turn(reached=True)

    def _known(self) -> list[Subject]:
        return [entry.subject for entry in self._book.all()]

    def _found(self, key: Key, uid: str | None, body: Mapping[str, Any] | None) -> None:
        if body is None:
            self._dismiss(key, uid)
        else:
            self.seen(body)

    def _dismiss(self, key: Key, uid: str | None) -> None:
        entry = self._book.drop(key, uid=uid)
        if entry is not None:
            self._engine.wake(entry.consumer)
