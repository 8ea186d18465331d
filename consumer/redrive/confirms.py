"""What is to be published, what is on its way, and whose fault it is when the broker hangs up over one of them.

Everything leaves this book once, with a verdict: a queue has it for good, or a reason why none took it. A connection
that breaks is no verdict: what was on its way is sent again, in its order. Twice is allowed, never is not.

A broker that refuses to read a message closes the channel, or the connection, and does not say for which. So all that
were on their way become suspects, and suspects go alone: the one that is alone on its way when the broker hangs up is
guilty. Nobody else is ever refused for it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from redrive.properties import Properties
from redrive.refusal import Confirmed, Refusal

# As many as a worker holds at once (see `runtime.prefetch`), or nearly.
MOST_UNCONFIRMED = 200
MOST_BYTES = 4 * 1024 * 1024

# A connection may also break over a message without a word from the broker, whose last words were lost. So after this
# many in a row on which nothing was confirmed, messages go alone.
MOST_FRUITLESS = 3

UNROUTABLE = Refusal("no queue is bound for it", kind="returned")
NOT_TAKEN = Refusal("the queue did not take it", kind="nacked")


@dataclass(slots=True, eq=False)
class Outgoing:
    """A message to be published, and who waits to hear of it."""

    exchange: str
    routing_key: str
    body: bytes
    properties: Properties
    confirmed: Confirmed
    is_suspect: bool = False
    is_returned: bool = False


Verdict = tuple[Outgoing, Refusal | None]


class Confirms:
    """The book of one publisher. Numbers are those of one channel, and begin at 1 with each."""

    def __init__(self, *, most_unconfirmed: int = MOST_UNCONFIRMED, most_bytes: int = MOST_BYTES) -> None:
        self._most_unconfirmed = most_unconfirmed
        self._most_bytes = most_bytes
        self._waiting: deque[Outgoing] = deque()
        self._sent: dict[int, Outgoing] = {}
        self._sent_bytes = 0
        self._number = 0
        self._suspect: Outgoing | None = None  # the one that is alone on its way
        self._fruitless = 0

    def __len__(self) -> int:
        """How many have no verdict yet."""
        return len(self._waiting) + len(self._sent)

    @property
    def is_idle(self) -> bool:
        return not self._sent and not self._waiting

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way."""
        return not self._sent

    def begin_anew(self) -> None:
        """Count from 1 again: the next one goes by another channel. Only while nothing is on its way."""
        self._number = 0

    def add(self, outgoing: Outgoing) -> None:
        self._waiting.append(outgoing)

    def take(self) -> Outgoing | None:
        """Take the next one that may be sent now. It is `sent` then, or nobody's any more."""
        if not self._waiting or (self._sent and not self._may_join(self._waiting[0])):
            return None
        return self._waiting.popleft()

    def sent(self, outgoing: Outgoing) -> None:
        self._number += 1
        self._sent[self._number] = outgoing
        self._sent_bytes += len(outgoing.body)
        self._suspect = outgoing if outgoing.is_suspect else None

    def settle(self, number: int, *, multiple: bool, taken: bool) -> list[Verdict]:
        """The broker has taken the message of this number, and with `multiple` all before it; or it has not."""
        self._fruitless = 0
        numbers = list(self._up_to(number)) if multiple else [number] if number in self._sent else []
        return [self._conclude(self._sent.pop(one), taken=taken) for one in numbers]

    def note_returned(self, exchange: str, routing_key: str, message_id: str | None, body: bytes) -> None:
        """The broker found no queue for such a message; it will say so of the first one, by its number, too."""
        for one in self._sent.values():
            key = (one.exchange, one.routing_key, one.properties.message_id)
            if not one.is_returned and key == (exchange, routing_key, message_id) and one.body == body:
                one.is_returned = True
                return

    def channel_closed(self, blame: Refusal) -> list[Verdict]:
        """The broker closed the channel over one of those that were on their way."""
        verdicts, left = self._empty()
        if len(left) == 1:
            return [*verdicts, (left[0], blame)]
        self._send_again(left, suspect=True)
        return verdicts

    def connection_lost(self, blame: Refusal | None) -> list[Verdict]:
        """The connection is gone: over a message, or for reasons that have nothing to do with any."""
        if blame is not None:
            return self.channel_closed(blame)
        suspect = self._suspect
        verdicts, left = self._empty()
        if left and left[0] is suspect:
            self._waiting.append(suspect)  # nobody knows; the others do not wait for it to be found out
            return verdicts
        self._fruitless += bool(left)
        self._send_again(left, suspect=self._fruitless >= MOST_FRUITLESS)
        return verdicts

    def _may_join(self, outgoing: Outgoing) -> bool:
        is_alone = outgoing.is_suspect or self._suspect is not None
        return not is_alone and len(self._sent) < self._most_unconfirmed and self._sent_bytes < self._most_bytes

    def _up_to(self, number: int) -> Iterator[int]:
        for one in self._sent:
            if one > number:
                return
            yield one

    def _conclude(self, outgoing: Outgoing, *, taken: bool) -> Verdict:
        self._sent_bytes -= len(outgoing.body)
        if outgoing is self._suspect:
            self._suspect = None
        if outgoing.is_returned:
            return outgoing, UNROUTABLE
        return outgoing, None if taken else NOT_TAKEN

    def _empty(self) -> tuple[list[Verdict], list[Outgoing]]:
        """Begin anew with a channel to come; give those that were returned their verdict, and the others."""
        unconfirmed = list(self._sent.values())
        self._sent.clear()
        self._sent_bytes = self._number = 0
        self._suspect = None
        returned: list[Verdict] = [(one, UNROUTABLE) for one in unconfirmed if one.is_returned]
        return returned, [one for one in unconfirmed if not one.is_returned]

    def _send_again(self, several: list[Outgoing], *, suspect: bool) -> None:
        for one in several:
            one.is_suspect = one.is_suspect or suspect
        self._waiting.extendleft(reversed(several))
