"""Brings orphans home: messages whose delay ended while their consumer had no queue, and that has one again.

One looks through the queue from its front. Whatever is not ours to move is held until the end of the look, so that what
is behind it can be seen, however much there is in front; then it is given back, in its order. As many are taken at once
as fit in some megabytes, whatever their number.

Nothing is lost when this is killed: a message is acknowledged only when its queue has confirmed that it has it. In
between it is there twice. A look counts as a delivery on RabbitMQ 3.10, and a million are allowed: look when there is a
reason to, and not all the time.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from redrive.amqp import Amqp
from redrive.delivery import Delivery
from redrive.effective import delivery_limit
from redrive.errors import AccessRefused, BrokerError, Conflict, NotAccepted, Unreachable
from redrive.ladder import DELIVERY_LIMIT, ORPHANS, read_routing_key
from redrive.message import read_message
from redrive.properties import as_text
from redrive.reading import Reading
from redrive.republish import build_again, fits

# The first are few, since nobody knows how large they are.
FIRST_WINDOW, LARGEST_WINDOW = 8, 256
WINDOW_BYTES = 16 * 1024 * 1024

# A queue that has messages hands them out at once; one whose leader is elsewhere, a little later.
PATIENCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """How many messages came home, by address; how many are left, and how many of these nobody looked at."""

    put_back: dict[str, int]
    left: int
    unseen: int = 0


def reclaim(amqp: Amqp, homes: Mapping[str, str], *, most: int, reading: Reading | None = None) -> Reclaimed:
    """Put the orphans of these addresses into their queues, looking at no more than `most` messages.

    What their queue does not take stays, and so does everybody else's. With a reading, orphans that would not survive
    being looked at are refused (Conflict).
    """
    if reading is not None:
        _refuse_look(reading)
    waiting = amqp.count_ready(ORPHANS) or 0
    look = _Look(amqp, homes)
    try:
        look.through(min(most, waiting))
    finally:
        with suppress(BrokerError):  # then the channel is gone, and has given them back itself
            look.give_back()
    put_back = dict(look.put_back)
    return Reclaimed(put_back, waiting - look.put_back.total(), unseen=waiting - look.seen)


class _Look:
    """One look through the orphans. `put_back` counts what came home, `seen` what was looked at."""

    def __init__(self, amqp: Amqp, homes: Mapping[str, str]) -> None:
        self._amqp = amqp
        self._homes = dict(homes)
        self._held: list[list[int]] = []
        self.put_back: Counter[str] = Counter()
        self.seen = 0

    def through(self, count: int) -> None:
        window = min(FIRST_WINDOW, count)
        while self.seen < count:
            taken = self._amqp.take(ORPHANS, at_most=window, patience=PATIENCE_SECONDS)
            self.seen += len(taken)
            self._held.append([delivery.tag for delivery in taken])
            for delivery in taken:
                if self._bring_home(delivery):
                    self._held[-1].remove(delivery.tag)
            if len(taken) < window:
                return  # somebody else was faster
            window = min(_next_window(taken), count - self.seen)

    def give_back(self) -> None:
        held, self._held = self._held, []
        self._amqp.give_back(ORPHANS, held)

    def _bring_home(self, delivery: Delivery) -> bool:
        """Publish it to its queue, confirmed, and only then be rid of it here."""
        found = read_routing_key(as_text(delivery.routing_key))
        home = None if found is None else self._homes.get(found[1])
        if found is None or home is None:
            return False
        message = read_message(delivery, now=datetime.now(UTC), max_attempts=1, new_id=lambda: str(uuid4()))
        sent = build_again(message, frame_max=self._amqp.frame_max)
        if not fits(sent, self._amqp.frame_max):
            return False
        try:
            self._amqp.publish("", home, delivery.body, sent)
        except NotAccepted:
            del self._homes[found[1]]  # nor would it take the next one
            return False
        except (AccessRefused, Unreachable):
            raise
        except BrokerError:
            return False  # this one alone, such as one that is larger than the broker takes by now
        self._amqp.ack(delivery.tag)
        self.put_back[found[1]] += 1
        return True


def _next_window(taken: list[Delivery]) -> int:
    """Take twice as many the next time, unless such large ones would not fit."""
    largest = max(len(delivery.body) for delivery in taken)
    return max(1, min(2 * len(taken), LARGEST_WINDOW, WINDOW_BYTES // max(1, largest)))


def _refuse_look(reading: Reading) -> None:
    queue = reading.queues.get(ORPHANS)
    limit = None if queue is None else delivery_limit(queue, reading)
    if queue is not None and (limit is None or limit < DELIVERY_LIMIT):
        raise Conflict(
            f"the queue {ORPHANS!r} has a delivery limit of {limit or 'the default'} instead of {DELIVERY_LIMIT}, and "
            "a look is a delivery: have the policy that lowers it spare the queue"
        )
