"""How a suspect gets to run alone.

A suspect that is redelivered has killed its worker, or so it must be taken: nothing else tells. So a worker has at most
one suspect in its hands, and nothing in flight beside it. Taking is paused first, every other suspect goes to the end
of the queue, then what runs is waited for, then the broker is asked to say that it has seen every acknowledgement:
one that the suspect's crash took with it would make a suspect's crime of an innocent's.

What has been taken and not begun stays where it is. It is not in flight, and most suspects kill nobody.

After a suspect the worker takes one message at a time, until it has seen enough that are none: the next suspect then
comes to empty hands. Pausing is not only slow. What is on its way to a consumer that ends comes back as redelivered,
and a suspect among it would be taken for a killer.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from redrive.runtime.held import Held
from redrive.runtime.ports import Session


class _State(Enum):
    PAUSING = auto()
    EMPTYING = auto()
    MAKING_SURE = auto()
    RUNNING = auto()
    LEAVING = auto()  # given back without a run


class Surroundings(Protocol):
    """What is beside a suspect, and what may be done to it."""

    def is_busy(self, suspect: Held) -> bool:
        """Say whether anything is in flight, or another suspect in our hands."""

    def is_hindered(self, suspect: Held) -> bool:
        """Say whether something stays in our hands that it must not run beside, nobody knows for how long."""

    def give_back(self, held: Held) -> None: ...

    def flush(self) -> None: ...

    def run_alone(self, held: Held) -> None: ...


class Isolation:
    """At most one suspect, and how far it is. `pause` ends taking; `over` is called when there is none any more."""

    def __init__(
        self, surroundings: Surroundings, pause: Callable[[Callable[[], None]], None], over: Callable[[], None]
    ) -> None:
        self._surroundings = surroundings
        self._pause = pause
        self._over = over
        self._suspect: Held | None = None
        self._state = _State.PAUSING

    @property
    def suspect(self) -> Held | None:
        return self._suspect

    def begin(self, held: Held) -> None:
        self._suspect = held
        self._state = _State.PAUSING
        self._pause(lambda: self._paused(held))

    def begin_at_once(self, held: Held) -> None:
        """Run a suspect that came to empty hands, and beside which nothing can come."""
        self._suspect = held
        self._state = _State.RUNNING
        self._surroundings.run_alone(held)

    def look(self) -> None:
        """See whether the suspect can go on: to be called whenever something has left our hands."""
        held = self._suspect
        if held is None or self._state is not _State.EMPTYING:
            return
        if self._surroundings.is_hindered(held):
            self._leave(held)
        elif self._surroundings.is_busy(held):
            return
        elif held.book is None:
            self.lost(held)
        else:
            self._make_sure(held, held.book.session)

    def _make_sure(self, held: Held, session: Session) -> None:
        self._state = _State.MAKING_SURE
        self._surroundings.flush()
        session.barrier(lambda: self._sure(held))

    def end(self, held: Held) -> None:
        """Let others in again, if this is the suspect."""
        if held is self._suspect:
            self._suspect = None
            self._over()

    def lost(self, held: Held) -> None:
        """Be told that its delivery is gone: the broker has taken it back, or nobody but us has it any more."""
        if not held.is_adrift:
            self.end(held)
        elif held is self._suspect and self._state is not _State.LEAVING:
            self._leave(held)  # rather than run it here: if it killed us, there would be none of it

    def taken_back(self, several: list[Held]) -> None:
        """Be told what the runner had not begun after all."""
        if self._suspect in several and self._state is _State.RUNNING:
            self._state = _State.EMPTYING
            self.look()

    def forget(self) -> Held | None:
        """Have no suspect any more, and let nobody in; give the one that there was, unless it is given back already."""
        held, self._suspect = self._suspect, None
        return None if self._state is _State.LEAVING else held

    def _leave(self, held: Held) -> None:
        """Give it back. Others are let in when it has left our hands, or cannot."""
        self._state = _State.LEAVING
        self._surroundings.give_back(held)

    def _paused(self, held: Held) -> None:
        if held is self._suspect and self._state is _State.PAUSING:
            self._state = _State.EMPTYING
            self.look()

    def _sure(self, held: Held) -> None:
        if held is self._suspect and self._state is _State.MAKING_SURE:
            if self._surroundings.is_busy(held) or self._surroundings.is_hindered(held):
                self._state = _State.EMPTYING
                self.look()
                return
            self._state = _State.RUNNING
            self._surroundings.run_alone(held)
