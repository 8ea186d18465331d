"""One session at a queue of dead letters: looked through from its front, at the pace that was asked for.

What does not fit is held until the end, so that what is behind it can be seen; then it is given back. A session is
short, since whatever it holds nobody else can see meanwhile.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from redrive.errors import BrokerError, NotAccepted
from redrive.letters.pace import Pace
from redrive_operator.redriving.course import Move

L = TypeVar("L")

# Published or acknowledged together: what is in flight when the connection breaks is no more than this.
PORTION = 500

# Between two looks whether somebody wants it to stop.
NAP_SECONDS = 0.5


class Hands(Protocol[L]):
    """Takes letters from the front of a queue, and holds them until they are moved, or until it is closed."""

    @property
    def refused(self) -> bool:
        """Whether the work queue did not take some that it may take later."""
        ...

    @property
    def is_late(self) -> bool:
        """Whether letters have been held for as long as the broker allows: no more are taken then."""
        ...

    def take(self) -> Sequence[L]:
        """Give the next letters, once those before have been moved or are to be held; none when that was all."""
        ...

    def move(self, letters: Sequence[L]) -> int:
        """Put these back, or delete them; say how many. The others could not be, and are held like the rest.

        Where none could be, and nor could others, NotAccepted says so.
        """
        ...

    def wait(self, seconds: float) -> None: ...


class Account(Protocol):
    """Where a session asks whether it may go on, and says what it did."""

    @property
    def rate(self) -> int: ...

    def begin(self) -> Move | None:
        """Give the next step, which is written down by now; None to stop."""
        ...

    def settle(self, step: Move, *, moved: int, failed: int, unknown: int) -> None:
        """Take down what became of a step. Of `unknown` letters nobody knows whether they were moved."""
        ...

    def goes_on(self) -> bool:
        """Say whether to go on within a step: not when it was paused, or is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Looked:
    """How a session ended: how many letters were seen, and whether it saw none that is left to move.

    `late`: because there was no time to see more.
    """

    scanned: int
    exhausted: bool
    late: bool


class Session(Generic[L]):
    """Moves the letters that fit."""

    def __init__(
        self, hands: Hands[L], fits: Callable[[L], bool], account: Account, *, clock: Callable[[], float]
    ) -> None:
        self._hands = hands
        self._fits = fits
        self._account = account
        self._clock = clock
        self._pace = Pace(account.rate)
        self._fitting: deque[L] = deque()
        self._over = False
        self._scanned = self._failed = 0

    def run(self) -> Looked:
        """Go on until the account says stop, or until there is nothing left."""
        while self._gather():
            step = self._account.begin()
            if step is None:
                break
            self._move(step)
        exhausted = self._over and not self._fitting and not self._hands.refused
        return Looked(self._scanned, exhausted=exhausted, late=self._hands.is_late)

    def _gather(self) -> bool:
        """Have letters that fit in hand. No more are taken before those are moved, nor once it was told to stop."""
        while not self._fitting and not self._over and self._account.goes_on():
            taken = self._hands.take()
            self._over = not taken
            self._scanned += len(taken)
            self._fitting.extend(letter for letter in taken if self._fits(letter))
        return bool(self._fitting)

    def _move(self, step: Move) -> None:
        moved = flying = 0
        try:
            for portion in self._portions(step.most):
                flying = len(portion)
                done = self._hands.move(portion)
                self._failed += flying - done
                moved, flying = moved + done, 0
        except BrokerError as error:
            unknown = 0 if isinstance(error, NotAccepted) else flying
            self._account.settle(step, moved=moved, failed=self._failed, unknown=unknown)
            raise
        self._account.settle(step, moved=moved, failed=self._failed, unknown=0)

    def _portions(self, most: int) -> Iterator[list[L]]:
        """Give as many as may be moved, a few at a time, each when it is time for them."""
        left = most
        while left and self._account.goes_on():
            self._pace.rate = self._account.rate
            wait = self._pace.wait(self._clock())
            if wait > 0:
                self._hands.wait(min(NAP_SECONDS, wait))
            elif self._gather():
                size = min(self._pace.portion(min(left, PORTION)), len(self._fitting))
                self._pace.went(size, self._clock())
                left -= size
                yield [self._fitting.popleft() for _ in range(size)]
            else:
                return
