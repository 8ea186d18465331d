"""Which deliveries of one session are in our hands, and which are done but not acknowledged yet.

An acknowledgement with `multiple` speaks for every delivery up to its tag, so it may go only as far as no delivery is
still in our hands. What is done beyond that is acknowledged one by one, or waits until the gap has closed.

A session that is about to end a consumer holds acknowledgements back. If it is lost then, the broker has not heard of
them, so what they speak for is remembered here as long as that lasts.
"""

from collections.abc import Iterable
from typing import Generic, TypeVar

from redrive.runtime.ports import Session

T = TypeVar("T")


class Book(Generic[T]):
    """The deliveries of one session by their tags. Tags rise, so the first one in the book is the oldest."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.held: dict[int, T] = {}
        self._done: dict[int, T] = {}
        self._hold: object = None
        self._held_back: dict[int, T] = {}  # acknowledged, and not passed on as long as this hold lasts
        self._before = 0  # up to this tag it was an earlier consumer that was given what we hold

    @property
    def pending(self) -> int:
        """Say how many acknowledgements have not been sent."""
        return len(self._done)

    @property
    def settled(self) -> bool:
        return not self.held and not self._done

    @property
    def unheard(self) -> list[T]:
        """List all that the broker knows nothing of: what we hold, and what is done and not acknowledged to it."""
        is_held_back = self._hold is not None and self._hold is self.session.hold
        held_back = self._held_back.values() if is_held_back else ()
        return [*self.held.values(), *self._done.values(), *held_back]

    @property
    def present(self) -> list[T]:
        """List what we hold of the consumer that is there now."""
        return [item for tag, item in self.held.items() if tag > self._before]

    def begin(self) -> None:
        """Be told that there is another consumer on the same channel."""
        self._before = next(reversed(self.held), 0)

    def done(self, tag: int, item: T) -> None:
        """Have what has left our hands acknowledged with the next ones."""
        self._done[tag] = item

    def acknowledge(self) -> None:
        """Tell the broker of all that is done."""
        self.acknowledge_together()
        self._remember(self._done)
        for tag in self._done:
            self.session.ack(tag, multiple=False)
        self._done.clear()

    def acknowledge_together(self) -> None:
        """Tell the broker of as much as one acknowledgement can speak for."""
        oldest = next(iter(self.held), None)
        covered = list(self._done) if oldest is None else [tag for tag in self._done if tag < oldest]
        if covered:
            self._remember(covered)
            self.session.ack(max(covered), multiple=True)
            for tag in covered:
                del self._done[tag]

    def _remember(self, tags: Iterable[int]) -> None:
        """Remember what is about to be acknowledged, if the session will hold that back."""
        hold = self.session.hold
        if hold is not self._hold:
            self._hold, self._held_back = hold, {}
        if hold is not None:
            self._held_back.update((tag, self._done[tag]) for tag in tags)
