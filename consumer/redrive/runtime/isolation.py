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


class _State(Enum):
    PAUSING = auto()
    EMPTYING = auto()
    MAKING_SURE = auto()
    RUNNING = auto()


class Surroundings(Protocol):
    """The part of the runtime that isolation needs."""

    def is_busy(self, suspect: Held) -> bool:
        """Say whether anything is in flight, or another suspect in our hands."""

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
        if held is None or self._state is not _State.EMPTYING or self._surroundings.is_busy(held):
            return
        if held.book is None:  # the broker took it back while we waited
            self.end(held)
            return
        self._state = _State.MAKING_SURE
        self._surroundings.flush()
        held.book.session.barrier(lambda: self._sure(held))

    def end(self, held: Held) -> None:
        """Let others in again, if this is the suspect."""
        if held is self._suspect:
            self._suspect = None
            self._over()

    def taken_back(self, several: list[Held]) -> None:
        """Be told what the runner had not begun after all."""
        if self._suspect in several and self._state is _State.RUNNING:
            self._state = _State.EMPTYING
            self.look()

    def forget(self) -> Held | None:
        """Have no suspect any more, and let nobody in; give the one that there was."""
        held, self._suspect = self._suspect, None
        return held

    def _paused(self, held: Held) -> None:
        if held is self._suspect and self._state is _State.PAUSING:
            self._state = _State.EMPTYING
            self.look()

    def _sure(self, held: Held) -> None:
        if held is self._suspect and self._state is _State.MAKING_SURE:
            if self._surroundings.is_busy(held):
                self._state = _State.EMPTYING
                return
            self._state = _State.RUNNING
            self._surroundings.run_alone(held)
