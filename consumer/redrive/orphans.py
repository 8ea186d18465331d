"""Brings orphans home: messages whose delay ended while their consumer had no queue, and that has one again.

One looks through the queue as through dead letters (`letters.looking`): whatever is not ours to move is held until the
end of the look, so that what is behind it can be seen, however much there is in front; then it is given back, in its
order.

Nothing is lost when this is killed: a message is acknowledged only when its queue has confirmed that it has it. In
between it is there twice. A look counts as a delivery on RabbitMQ 3.10, and a million are allowed: look when there is a
reason to, and not all the time.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from uuid import uuid4

from redrive.amqp import Amqp
from redrive.delivery import Delivery
from redrive.errors import AccessRefused, BrokerError, NoAnswer, NotAccepted, Unreachable
from redrive.ladder import ORPHANS, read_routing_key
from redrive.letters.looking import Pass, check_limit, longest_hold
from redrive.message import read_message
from redrive.properties import as_text
from redrive.reading import Reading
from redrive.republish import build_again, fits

# A queue that has quorum confirms in much less, and whoever brings orphans home has others to see to.
HOME_SECONDS = 20.0


class SilentHome(NoAnswer):
    """The queue of `address` says nothing, and with it went the connection: without it, others can come home."""

    def __init__(self, message: str, address: str) -> None:
        super().__init__(message)
        self.address = address


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """How many messages came home, by address; how many are left, and how many of these nobody looked at."""

    put_back: dict[str, int]
    left: int
    unseen: int = 0


def reclaim(amqp: Amqp, homes: Mapping[str, str], *, most: int, reading: Reading | None = None) -> Reclaimed:
    """Put the orphans of these addresses into their queues, looking at no more than `most` messages.

    What their queue does not take stays, and so does everybody else's; but one that says nothing ends the look, and the
    connection (SilentHome). With a reading, orphans that would not survive being looked at are refused (Conflict).
    """
    if reading is not None and ORPHANS in reading.queues:
        check_limit(amqp, ORPHANS, reading)
    waiting = amqp.count_ready(ORPHANS) or 0
    if not waiting:
        return Reclaimed({}, 0)
    bringing = _Bringing(amqp, homes)
    hold = longest_hold(ORPHANS, reading)
    with Pass(amqp, ORPHANS, most=min(most, waiting), hold=hold, clock=time.monotonic) as look:
        for delivery in chain.from_iterable(look.windows()):
            if bringing.bring_home(delivery):
                look.moved([delivery.tag])
    put_back = dict(bringing.put_back)
    return Reclaimed(put_back, waiting - bringing.put_back.total(), unseen=waiting - look.seen)


class _Bringing:
    """Brings messages home, and counts them by address."""

    def __init__(self, amqp: Amqp, homes: Mapping[str, str]) -> None:
        self._amqp = amqp
        self._homes = dict(homes)
        self.put_back: Counter[str] = Counter()

    def bring_home(self, delivery: Delivery) -> bool:
        """Publish it to its queue; say whether that has confirmed that it has it."""
        found = read_routing_key(as_text(delivery.routing_key))
        home = None if found is None else self._homes.get(found[1])
        if found is None or home is None:
            return False
        message = read_message(delivery, now=datetime.now(UTC), max_attempts=1, new_id=lambda: str(uuid4()))
        sent = build_again(message, frame_max=self._amqp.frame_max)
        if not fits(sent, self._amqp.frame_max):
            return False
        try:
            self._amqp.publish("", home, delivery.body, sent, within=HOME_SECONDS)
        except NotAccepted:
            del self._homes[found[1]]  # nor would it take the next one
            return False
        except NoAnswer as error:
            raise SilentHome(str(error), found[1]) from error
        except (AccessRefused, Unreachable):
            raise
        except BrokerError:
            return False  # this one alone, such as one that is larger than the broker takes by now
        self.put_back[found[1]] += 1
        return True
