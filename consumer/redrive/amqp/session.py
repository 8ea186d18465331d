"""One channel that consumes: its deliveries, and what may be done to them.

An innocent message must not look like one that killed its worker, so nothing may come back as redelivered only because
a consumer ended. But a broker takes back what is on its way to a consumer that ends. So nothing is acknowledged first,
until the prefetch is full or the queue is empty, and nothing is on its way. What is published just then to an empty
queue still may be. Who only wants to have more at once does not need that while the queue is empty, and stays.

A quorum queue takes 32 acknowledgements at a time from a channel. What is beyond waits in the channel, although that
answers other questions meanwhile, and is forgotten when the channel ends. Only the answer to a cancel comes from the
queue itself, behind all that was sent to it before. See `barrier`.
"""

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from itertools import takewhile
from typing import Any, Protocol

from redrive.amqp.frames import encode_ack
from redrive.amqp.loop import Broken, never, unswallowed
from redrive.amqp.scout import look_for
from redrive.delivery import Delivery
from redrive.runtime.ports import Loop, Timer

MOST_PREFETCH = 65_535  # what the protocol has room for; zero would mean no limit

# So many acknowledgements are with the queue when the channel has read them; more of them need some rest, on a busy
# broker more than a fifth of a second.
FEW = 30
REST_SECONDS = 0.5

# How often it is looked whether anything is still on its way to us, and for how long: others may hold up the queue.
LOOK_SECONDS = 0.005
PATIENCE_SECONDS = 1.0

# After so long it is tried again to have more at once, if anything comes; and at once when all is there that may be.
AGAIN_SECONDS = 0.5


def bound_prefetch(prefetch: int) -> int:
    return max(1, min(prefetch, MOST_PREFETCH))


class Phase(Enum):
    """Where a session is. Something can come while it is starting, taking or ending."""

    OPENING = auto()
    IDLE = auto()
    STARTING = auto()
    TAKING = auto()
    ENDING = auto()
    CANCELLED = auto()
    GONE = auto()


class Keeper(Protocol):
    """Who is told what becomes of a session."""

    def session_idle(self, session: "ChannelSession") -> None:
        """The channel is open, and no consumer is on it."""

    def session_taking(self, session: "ChannelSession") -> None: ...

    def session_stays(self, session: "ChannelSession") -> None:
        """It goes on taking as before: that nothing is on its way to it did not come about."""

    def session_may_go_over(self, session: "ChannelSession") -> None:
        """It has stayed, and may be asked again."""

    def session_cancelled(self, session: "ChannelSession") -> None: ...

    def session_lost(self, session: "ChannelSession", error: BaseException) -> None:
        """Its channel or its connection is gone."""

    def session_closed(self, session: "ChannelSession") -> None:
        """It was closed by whoever had it."""


class ChannelSession:
    """The `Session` of `redrive.runtime.ports`. `is_known`: whoever takes its deliveries has heard of it."""

    def __init__(
        self,
        connection: Any,  # noqa: ANN401 - the library's own type
        queue: str,
        *,
        loop: Loop,
        keeper: Keeper,
        delivered: Callable[["ChannelSession", Delivery], None],
    ) -> None:
        self._connection = connection
        self._queue = queue
        self._loop = loop
        self._keeper = keeper
        self._delivered = delivered
        self.phase = Phase.OPENING
        self.prefetch = 1
        self.is_known = False
        self._tag = ""
        self._unacked: dict[int, None] = {}  # the deliveries of the consumer that is there now
        self._put_off: list[Callable[[], None]] | None = None  # what waits for the end of a consumer
        self._patience: Timer | None = None  # until the end of a consumer that has not been asked for yet
        self._may_stay = False
        self._again_at: float | None = None  # when one that stayed may be asked again
        self._told = 0  # acknowledgements that we sent
        self._heard = 0  # those among them that the queue has, for all we know
        self._channel = connection.channel(on_open_callback=unswallowed(self._on_open))
        self._channel.add_on_close_callback(unswallowed(self._on_close))

    # What the runtime may do.

    @property
    def hold(self) -> object:
        return self._put_off

    def ack(self, tag: int, *, multiple: bool) -> None:
        if self._put_off is not None:
            self._put_off.append(partial(self.ack, tag, multiple=multiple))
        elif self._is_usable():
            self._settled(tag, multiple=multiple)
            self._connection.send([encode_ack(self._channel.channel_number, tag, multiple=multiple)])

    def reject(self, tag: int, *, requeue: bool) -> None:
        if self._put_off is not None:
            self._put_off.append(partial(self.reject, tag, requeue=requeue))
        elif self._is_usable():
            self._settled(tag, multiple=False)
            self._channel.basic_reject(tag, requeue)

    def barrier(self, call: Callable[[], None]) -> None:
        if self._put_off is not None:
            self._put_off.append(partial(self.barrier, call))
        elif self._told - self._heard <= FEW:
            self._ask(call)
        else:
            self._ask(partial(self._rest, self._told, call))

    def close(self) -> None:
        if self.phase is not Phase.GONE:
            is_usable = self._is_usable()
            self.phase = Phase.GONE
            if is_usable:
                self._channel.close()
            self._keeper.session_closed(self)

    def _settled(self, tag: int, *, multiple: bool) -> None:
        self._told += 1
        self._unacked.pop(tag, None)
        if multiple:
            for one in list(takewhile(lambda one: one < tag, self._unacked)):
                del self._unacked[one]

    def _ask(self, call: Callable[[], None]) -> None:
        """Ask for something harmless that the channel answers in its turn: the prefetch of consumers to come."""
        if self._is_usable():
            self._channel.basic_qos(prefetch_count=self.prefetch, callback=unswallowed(lambda _frame: call()))

    def _rest(self, told: int, call: Callable[[], None]) -> None:
        def go_on() -> None:
            self._heard = max(self._heard, told)
            self._ask(call)

        self._loop.later(REST_SECONDS, go_on)

    # What its keeper has it do.

    def begin_taking(self, prefetch: int) -> None:
        self.phase = Phase.STARTING
        self.prefetch = prefetch
        self._unacked.clear()
        self._channel.basic_qos(prefetch_count=prefetch)
        answered = unswallowed(self._on_consume_ok)
        self._tag = self._channel.basic_consume(self._queue, never, callback=answered)

    def end_taking(self) -> None:
        """Have nothing more come."""
        self._end(may_stay=False)

    def go_over(self) -> None:
        """Make room for a consumer that may have more, as soon as that can be done at no cost to anybody."""
        self._end(may_stay=True)

    def _end(self, *, may_stay: bool) -> None:
        self.phase = Phase.ENDING
        self._may_stay, self._again_at = may_stay, None
        self._put_off = []
        self._patience = self._loop.later(PATIENCE_SECONDS, self._give_up)
        self._look(self._put_off)

    def is_quiet(self) -> bool:
        """Say whether nothing can come from it."""
        return self.phase not in (Phase.STARTING, Phase.TAKING, Phase.ENDING)

    @property
    def _is_full(self) -> bool:
        return len(self._unacked) >= self.prefetch

    def _look(self, ending: object) -> None:
        """Cancel once nothing is on its way to us; what is published in this very moment may be.

        An answer may come when this ending is over, and be of no use to another.
        """

        def answered(ready: int | None) -> None:
            if ending is not self._put_off:
                return
            if self._is_full:
                self._cancel()
            elif ready:
                self._loop.later(LOOK_SECONDS, partial(self._look, ending))
            else:
                self._give_up()

        if ending is not self._put_off:
            return
        if self._is_full:
            self._cancel()
        elif self._patience is not None:
            look_for(self._connection, self._queue, answered)

    def _give_up(self) -> None:
        """Wait no longer for the prefetch to be full. If it is, nothing would come that had us ask again."""
        if self._may_stay and not self._is_full:
            self._stay()
        else:
            self._cancel()

    def _cancel(self) -> None:
        if self._lose_patience():
            self._channel.basic_cancel(self._tag, unswallowed(partial(self._on_cancel_ok, self._told)))

    def _stay(self) -> None:
        if self._lose_patience():
            self.phase = Phase.TAKING
            self._again_at = self._loop.now() + AGAIN_SECONDS
            self._catch_up()
            self._keeper.session_stays(self)

    def _lose_patience(self) -> bool:
        """Say whether there still is a consumer, and nobody has done anything about it yet."""
        patience, self._patience = self._patience, None
        if patience is None or self.phase is not Phase.ENDING or not self._is_usable():
            return False
        patience.cancel()
        return True

    def _catch_up(self) -> None:
        """Do what was put off."""
        put_off, self._put_off = self._put_off or [], None
        for call in put_off:
            call()

    def _is_usable(self) -> bool:
        # The library tells of a lost connection one channel after the other: others look open meanwhile.
        return self.phase is not Phase.GONE and bool(self._channel.is_open and self._connection.is_open)

    # What the library tells.

    def _on_open(self, channel: Any) -> None:  # noqa: ANN401
        if self.phase is Phase.GONE:
            channel.close()
            return
        self._connection.intake.takers[channel.channel_number] = self._on_delivery
        channel.add_on_cancel_callback(unswallowed(self._on_cancel))
        self.phase = Phase.IDLE
        self._keeper.session_idle(self)

    def _on_consume_ok(self, _frame: Any) -> None:  # noqa: ANN401
        if self.phase is Phase.STARTING:
            self.phase = Phase.TAKING
            self._keeper.session_taking(self)

    def _on_delivery(self, delivery: Delivery) -> None:
        if self.phase is Phase.GONE:
            return
        self._unacked[delivery.tag] = None
        try:  # the hottest path of all: no wrapper
            self._delivered(self, delivery)
            if self._again_at is not None and (self._is_full or self._loop.now() >= self._again_at):
                self._again_at = None
                self._keeper.session_may_go_over(self)
        except Exception as error:
            raise Broken from error

    def _on_cancel_ok(self, told: int, _frame: Any) -> None:  # noqa: ANN401
        if self.phase is Phase.ENDING:
            self._heard = max(self._heard, told)
            self.phase = Phase.IDLE
            self._catch_up()
            self._keeper.session_idle(self)

    def _on_cancel(self, frame: Any) -> None:  # noqa: ANN401
        """The broker ended the consumer; that we asked for its end too makes no difference."""
        if frame.method.consumer_tag == self._tag and not self.is_quiet():
            self.phase = Phase.CANCELLED
            self._catch_up()
            self._keeper.session_cancelled(self)

    def _on_close(self, channel: Any, error: BaseException) -> None:  # noqa: ANN401
        self._connection.intake.forget(channel.channel_number)
        if self.phase is not Phase.GONE:
            self.phase = Phase.GONE
            self._keeper.session_lost(self, error)
