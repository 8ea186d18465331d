"""Publishes over a connection of its own, mandatory and confirmed, as much at a time as one window holds.

What is sent in one turn of the loop leaves in one piece at its end. While the broker blocks publishers everything
waits, and nothing is refused for it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pika import exceptions as foreign

from redrive.amqp.frames import CannotEncode, encode_publish
from redrive.amqp.link import Link, Loss, Terms
from redrive.amqp.loop import EventLoop, never, unswallowed
from redrive.amqp.wire import BLOCKED_SECONDS
from redrive.confirms import Confirms, Outgoing, Verdict
from redrive.properties import FRAME_MAX, Properties
from redrive.reconnecting import pause_after
from redrive.runtime.ports import Confirmed, Refusal, Timer

# After a channel whose end was one message's fault the next one comes soon: many may be waiting to be told the same.
LONGEST_PAUSE_GUILTY = 0.2
LONGEST_PAUSE = 10.0

# A channel that was told once that a quorum queue is full may go on refusing by itself when there is room again: when
# the limit was a policy that is gone, the queue never tells it so. So one of this age that refuses is replaced.
WORN_SECONDS = 5.0

# Codes of the broker that one message can be the reason of; of a connection's end, that is.
_HOPELESS = frozenset({501, 502, 505})
_BLAMING = _HOPELESS | {503, 506, 540, 541}
_TOO_MUCH = 406


class ConfirmingPublisher:
    """The `Publisher` of `redrive.runtime.ports`."""

    def __init__(self, loop: EventLoop, terms: Terms) -> None:
        self._loop = loop
        self._terms = replace(terms, name=f"{terms.name} publish", doing="publishing", blocked=BLOCKED_SECONDS)
        self._link = Link(loop, self._terms, opened=self._link_opened, lost=self._link_lost)
        self._confirms = Confirms()
        self._frame_max = FRAME_MAX
        self._channel: Any = None
        self._latest: Any = None  # the channel that is there, or on its way; what others still say is of no account
        self._is_blocked = False
        self._is_pumping = False
        self._failures = 0
        self._timer: Timer | None = None
        self._opened_at = 0.0
        self._is_worn = False

    @property
    def frame_max(self) -> int:
        return self._frame_max

    @property
    def connected(self) -> bool:
        return self._channel is not None

    @property
    def is_blocked(self) -> bool:
        """Whether the broker takes nothing for now, because it is short of memory or disk."""
        return self._is_blocked

    def start(self) -> None:
        self._link.start()

    def send(self, exchange: str, routing_key: str, body: bytes, properties: Properties, confirmed: Confirmed) -> None:
        self._confirms.add(Outgoing(exchange, routing_key, body, properties, confirmed))
        self._pump_soon()

    def stop(self, done: Callable[[], None] | None = None) -> None:
        """Close the connection, politely if the broker answers in time; then call `done`."""
        self._channel = None
        self._confirms = Confirms()
        if self._timer is not None:
            self._timer.cancel()
        self._link.stop(done)

    def _pump_soon(self) -> None:
        if not self._is_pumping:
            self._is_pumping = True
            self._loop.soon(self._pump)

    def _pump(self) -> None:
        """Send as much as may be on its way at once."""
        self._is_pumping = False
        if self._is_worn and self._confirms.is_settled:
            self._replace_channel()
        if self._channel is None or self._is_blocked or self._is_worn:
            return
        pieces: list[bytes] = []
        unwritable: list[Verdict] = []
        while (outgoing := self._confirms.take()) is not None:
            try:
                pieces += encode_publish(self._channel.channel_number, outgoing, self._frame_max)
            except CannotEncode as error:
                unwritable.append((outgoing, Refusal(str(error), hopeless=True)))
            else:
                self._confirms.sent(outgoing)
        if pieces:
            self._channel.connection.send(pieces)
        self._tell(unwritable)

    def _tell(self, verdicts: list[Verdict]) -> None:
        for outgoing, refusal in verdicts:
            outgoing.confirmed(refusal)

    # The connection.

    def _link_opened(self, connection: Any) -> None:  # noqa: ANN401 - the library's own type
        self._frame_max = int(connection.params.frame_max)
        connection.add_on_connection_blocked_callback(unswallowed(self._on_blocked))
        connection.add_on_connection_unblocked_callback(unswallowed(self._on_unblocked))
        self._open_channel()

    def _link_lost(self, loss: Loss) -> None:
        self._channel = None
        self._is_blocked = False
        self._cancel_timer()
        blame = Refusal(loss.reason, hopeless=loss.code in _HOPELESS) if loss.code in _BLAMING else None
        self._tell(self._confirms.connection_lost(blame))

    def _on_blocked(self, _connection: Any, _frame: Any) -> None:  # noqa: ANN401
        self._is_blocked = True
        self._terms.trouble("publishing: the broker blocks publishers, it is short of memory or disk; waiting")

    def _on_unblocked(self, _connection: Any, _frame: Any) -> None:  # noqa: ANN401
        self._is_blocked = False
        self._pump()

    # The channel.

    def _open_channel(self) -> None:
        self._timer = None
        connection = self._link.connection
        if connection is not None:
            self._latest = connection.channel(on_open_callback=unswallowed(self._on_channel_open))
            self._latest.add_on_close_callback(unswallowed(self._on_channel_close))

    def _on_channel_open(self, channel: Any) -> None:  # noqa: ANN401
        def ready(_frame: Any) -> None:  # noqa: ANN401
            self._channel = channel
            self._opened_at = self._loop.now()
            if self._confirms.is_idle:
                self._link.worked()
            self._pump()

        channel.add_on_return_callback(unswallowed(self._on_return))
        channel.connection.intake.hearers[channel.channel_number] = unswallowed(self._on_confirm)
        channel.confirm_delivery(never, callback=unswallowed(ready))

    def _on_confirm(self, number: int, multiple: bool, taken: bool) -> None:
        self._failures = 0
        self._link.worked()
        if not taken and self._loop.now() - self._opened_at > WORN_SECONDS:
            self._is_worn = True
        self._tell(self._confirms.settle(number, multiple=multiple, taken=taken))
        self._pump_soon()

    def _on_return(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:  # noqa: ANN401
        self._confirms.note_returned(method.exchange, method.routing_key, properties.message_id, body)

    def _on_channel_close(self, channel: Any, error: BaseException) -> None:  # noqa: ANN401
        """One that ends with its connection is told of by that one; one that was replaced is missed by nobody."""
        channel.connection.intake.forget(channel.channel_number)
        if channel is not self._latest or not isinstance(error, foreign.ChannelClosedByBroker):
            return
        self._channel = None
        reason = self._link.explain(error)
        verdicts = self._confirms.channel_closed(Refusal(reason, hopeless=error.reply_code == _TOO_MUCH))
        self._failures += 1
        longest = LONGEST_PAUSE_GUILTY if verdicts else LONGEST_PAUSE
        pause = pause_after(self._failures, random=self._terms.random, longest=longest)
        self._timer = self._loop.later(pause, self._open_channel)
        if not verdicts:
            self._terms.trouble(f"{reason}; trying again")
        self._tell(verdicts)

    def _replace_channel(self) -> None:
        """Go on by another channel, when all that went by this one is settled."""
        self._is_worn = False
        if self._channel is not None:
            self._channel.connection.intake.hearers[self._channel.channel_number] = _overhear
            self._channel.close()
            self._channel = None
            self._confirms.begin_anew()
            self._open_channel()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _overhear(_number: int, _multiple: bool, _taken: bool) -> None:
    """Hear what is said of a channel that was replaced, whose numbers are no longer ours."""
