"""A pass over a dead queue, window by window: looking costs nothing.

Looking is delivering. So a queue that drops what was delivered too often is not opened at all; what was looked at is
held until the pass is over, so that what is behind it can be seen, and is then given back in its order. Whoever is
killed in between has held it no longer: the broker gives it back by itself.

The pass ends with what was there when it began. Letters that come meanwhile are behind it, and for the next one. Only
the tags of what is held are kept, so that a pass over a hundred thousand takes little memory.

Two passes at once see each a part, and nothing twice: a queue delivers to both in turn. `unseen` says how many were
with somebody else. A pass ends early after `LONGEST_HOLD`, because a broker closes the channel of who holds something
for too long; what was not seen then is unseen too.
"""

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType

from redrive.amqp import Amqp
from redrive.delivery import Delivery
from redrive.effective import consumer_timeout, delivery_limit
from redrive.elements import Queue
from redrive.errors import AccessRefused, BrokerError, Conflict, NotFound
from redrive.ladder import DELIVERY_LIMIT, ORPHANS, ORPHANS_QUEUE
from redrive.reading import Reading
from redrive.topology import dead_queue

# The first are few, since nobody knows how large they are.
FIRST_WINDOW, LARGEST_WINDOW = 16, 1024
WINDOW_BYTES = 16 * 1024 * 1024

# Large ones may lie behind small ones, and a window is chosen by those before it: no more of one is kept than this.
MOST_BYTES = 4 * WINDOW_BYTES

# A queue that has messages hands them out at once; one whose leader is elsewhere, a little later.
PATIENCE_SECONDS = 2.0

# A third of what a broker allows by its own configuration.
LONGEST_HOLD = timedelta(minutes=10)

# What is given back while acknowledgements are still on their way to the queue comes there in any order.
REST_SECONDS = 0.25

# To find one among those that a channel holds, a broker goes through all that are older. So who moves some and holds
# others does not hold too many by one channel.
MOST_HELD = 4096

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Held:
    """What is held by one channel: the tags of each take."""

    channel: str
    takes: list["array[int]"] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(map(len, self.takes))


class Pass:
    """One pass. Use it as a context: its end gives back what is held. `total` is what was there when it began."""

    def __init__(
        self, amqp: Amqp, queue: str, *, most: int | None = None, hold: timedelta = LONGEST_HOLD, clock: Clock
    ) -> None:
        waiting = amqp.count_ready(queue)
        if waiting is None:
            raise NotFound(f"there is no queue {queue!r}")
        self._amqp = amqp
        self._queue = queue
        self._clock = clock
        self._until = clock() + hold.total_seconds()
        self._channels = [_Held("consume")]
        self.total = waiting if most is None else min(most, waiting)
        self.seen = 0
        self._moves = False
        self._ran_out = False

    def __enter__(self) -> "Pass":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt | SystemExit):
            return  # interrupted anywhere: only the end of the connection, which gives them back, is sure to work
        with suppress(BrokerError):  # then the channel is gone, and the broker has taken them back itself
            self.give_back()

    @property
    def unseen(self) -> int:
        """How many were with somebody else when it was their turn; or, after too long a time, were not looked at."""
        return self.total - self.seen if self._ran_out else 0

    def windows(self) -> Iterator[list[Delivery]]:
        """Take what is there, some at a time; what is not `moved` is held."""
        window = min(FIRST_WINDOW, self.total)
        while self.seen < self.total:
            held = self._channels[-1]
            taken = self._amqp.take(
                self._queue, at_most=window, patience=PATIENCE_SECONDS, most_bytes=MOST_BYTES, by=held.channel
            )
            self.seen += len(taken)
            held.takes.append(array("Q", [delivery.tag for delivery in taken]))
            if taken:
                yield taken
            if self._moves and held.count > MOST_HELD:
                self._channels.append(_Held(f"consume {len(self._channels)}"))
            is_full = sum(len(delivery.body) for delivery in taken) >= MOST_BYTES
            self._ran_out = (len(taken) < window and not is_full) or self.is_late()
            if self._ran_out:
                return
            window = min(next_window(taken), self.total - self.seen)

    def moved(self, tags: Sequence[int]) -> None:
        """Be rid of these, which the last window brought: they are safe elsewhere, or not wanted any more."""
        held, gone = self._channels[-1], frozenset(tags)
        self._amqp.ack_several(tags, by=held.channel)
        held.takes[-1] = array("Q", [tag for tag in held.takes[-1] if tag not in gone])
        self._moves = True

    def give_back(self) -> None:
        if self._moves:
            self._amqp.wait(REST_SECONDS)
        channels, self._channels = self._channels, [_Held("consume")]
        for held in channels:
            self._amqp.give_back(self._queue, held.takes, by=held.channel)

    def is_late(self) -> bool:
        """Say whether what is held has been held for as long as it may be."""
        return self._clock() >= self._until


def look(
    amqp: Amqp, queue: str, *, reading: Reading | None = None, most: int | None = None, clock: Clock = time.monotonic
) -> Pass:
    """Begin a pass over a dead queue, after making sure that its letters survive it (else Conflict)."""
    check_limit(amqp, queue, reading)
    return Pass(amqp, queue, most=most, hold=longest_hold(queue, reading), clock=clock)


def check_limit(amqp: Amqp, queue: str, reading: Reading | None) -> None:
    """Refuse a queue that drops what was delivered some times.

    Without a reading nobody can see a policy; but the queue's own limit can be asked for, by declaring it once more.
    """
    if reading is None:
        _check_by_declaring(amqp, queue)
        return
    found = reading.queues.get(queue)
    if found is None:
        raise NotFound(f"there is no queue {queue!r}")
    limit = delivery_limit(found, reading)
    if found.type == "quorum" and (limit is None or limit < DELIVERY_LIMIT):
        raise Conflict(
            f"the queue {queue!r} has a delivery limit of {limit or 'the default'} instead of {DELIVERY_LIMIT}, and "
            "looking is delivering: have the policy that lowers it spare the queue"
        )


def longest_hold(queue: str, reading: Reading | None) -> timedelta:
    found = None if reading is None else reading.queues.get(queue)
    timeout = None if found is None or reading is None else consumer_timeout(found, reading)
    return LONGEST_HOLD if timeout is None else min(LONGEST_HOLD, timeout / 3)


def next_window(taken: Sequence[Delivery]) -> int:
    """Take twice as many the next time, unless such large ones would not fit."""
    largest = max(len(delivery.body) for delivery in taken)
    return max(1, min(2 * len(taken), LARGEST_WINDOW, WINDOW_BYTES // max(1, largest)))


def _check_by_declaring(amqp: Amqp, queue: str) -> None:
    if amqp.count_ready(queue) is None:
        raise NotFound(f"there is no queue {queue!r}")
    try:
        amqp.declare(ORPHANS_QUEUE if queue == ORPHANS else Queue(queue, dead_queue("").arguments))
    except Conflict as error:
        raise Conflict(
            f"the queue {queue!r} is not as Redrive makes it, and may drop letters that are looked at: {error}"
        ) from error
    except AccessRefused as error:
        raise AccessRefused(
            f"nobody can say whether the letters in {queue!r} survive being looked at: give the address of the "
            f"management API, or a user who may declare the queue ({error})"
        ) from error
