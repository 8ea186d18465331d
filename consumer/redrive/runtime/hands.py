"""All that is in a worker's hands: by the session that it came by, and what no delivery is left of."""

from collections.abc import Iterator
from itertools import chain

from redrive.runtime.acks import Book
from redrive.runtime.held import Held
from redrive.runtime.ports import Session


class Hands:
    """The books of all sessions. `adrift` is what nobody else may have, and nothing can be said to a broker about."""

    def __init__(self) -> None:
        self.books: dict[Session, Book[Held]] = {}
        self.adrift: set[Held] = set()
        self._present: Session | None = None

    @property
    def held(self) -> int:
        return sum(len(book.held) for book in self.books.values()) + len(self.adrift)

    @property
    def unheard(self) -> int:
        """How many deliveries the broker has not heard back about. It may be asked for from any thread."""
        return sum(len(book.held) + book.pending for book in list(self.books.values()))

    @property
    def every(self) -> Iterator[Held]:
        """Go through all that we hold."""
        return chain(self.adrift, *(book.held.values() for book in self.books.values()))

    @property
    def kept(self) -> list[Held]:
        """List what the broker has refused or says nothing about, also while it is tried again."""
        return [held for held in self.every if held.is_kept]

    @property
    def present(self) -> list[Held]:
        """List what we hold of the consumer that is there now."""
        book = None if self._present is None else self.books.get(self._present)
        return [] if book is None else book.present

    def begin(self, session: Session) -> None:
        """Be told that there is another consumer."""
        self._present = session
        if session in self.books:
            self.books[session].begin()

    def take(self, session: Session, held: Held, tag: int) -> None:
        """Enter a delivery."""
        book = self.books.get(session)
        if book is None:
            book = self.books[session] = Book(session)
        held.enter(book, tag)

    def take_again(self, session: Session, held: Held, tag: int) -> None:
        """Enter the redelivery of something that we have: by its old tag nothing can be said any more."""
        held.leave()
        held.is_adrift = False
        self.adrift.discard(held)
        self.take(session, held, tag)

    def unheard_of(self, session: Session) -> list[Held]:
        book = self.books.get(session)
        return book.unheard if book else []

    def holds_other_suspects(self, suspect: Held) -> bool:
        return any(held.message.story.suspect and held is not suspect for held in self.every)
