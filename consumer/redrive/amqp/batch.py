"""Publishes many messages at once by a blocking connection: one window is on its way while its confirms come in.

One by one, each message would wait for the broker's disk. The verdicts are the same as one by one: a message that makes
the broker close the channel is found out by sending its neighbours again, each alone, so some may be there twice.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pika import exceptions as foreign
from pika import spec

from redrive.amqp.frames import CannotEncode, encode_publish
from redrive.confirms import Confirms, Outgoing, Verdict
from redrive.properties import Properties
from redrive.refusal import Refusal

Sending = tuple[str, str, bytes, Properties]

# What the broker closes the channel with over one message alone: it is larger than it takes, or makes no sense to it.
_TOO_MUCH = 406
_EVERYBODYS = frozenset({403, 404})  # no permission, no such exchange: nobody else would fare better


class BatchPublisher:
    """Publishes by a channel of its own on somebody's blocking connection."""

    def __init__(self, connection: Any, *, frame_max: int) -> None:  # noqa: ANN401 - the library's own type
        self._connection = connection
        self._frame_max = frame_max
        self._book = Confirms()
        self._channel: Any = None
        self._heard = False

    def publish(self, several: Sequence[Sending]) -> list[Refusal | None]:
        """Return when each has its verdict: None where a queue has taken it for good.

        Raises what ended the channel when none of them would fare better. What was not confirmed until then is their
        publisher's still, and may be there already.
        """
        verdicts: list[Refusal | None] = [None] * len(several)
        for place, (exchange, routing_key, body, properties) in enumerate(several):
            told = partial(verdicts.__setitem__, place)
            self._book.add(Outgoing(exchange, routing_key, body, properties, told))
        try:
            while not self._book.is_idle:
                self._go_on()
        except BaseException:
            self._book = Confirms()  # and another channel, whose numbers begin anew
            self._leave_channel()
            raise
        return verdicts

    def _go_on(self) -> None:
        """Send what may be on its way, and wait until something is heard of it."""
        channel = self._open_channel()
        self._pump(channel)
        if self._book.is_settled:
            return
        self._heard = False
        self._connection._flush_output(lambda: self._heard or channel.is_closed)
        if channel.is_closed:
            self._after_close(channel._closing_reason)

    def _open_channel(self) -> Any:  # noqa: ANN401
        if self._channel is None or self._channel.is_closed:
            self._book.begin_anew()
            channel = self._connection.channel()
            channel._impl.add_on_return_callback(self._on_return)
            agreed: list[object] = []
            channel._impl.confirm_delivery(self._on_confirm, callback=agreed.append)
            self._connection._flush_output(lambda: bool(agreed) or channel.is_closed)
            self._channel = channel
        return self._channel

    def _leave_channel(self) -> None:
        channel, self._channel = self._channel, None
        with suppress(foreign.AMQPError):
            if channel is not None and channel.is_open:
                channel.close()

    def _pump(self, channel: Any) -> None:  # noqa: ANN401
        pieces: list[bytes] = []
        while (outgoing := self._book.take()) is not None:
            try:
                pieces += encode_publish(channel.channel_number, outgoing, self._frame_max)
            except CannotEncode as error:
                outgoing.confirmed(Refusal(str(error), hopeless=True))
            else:
                self._book.sent(outgoing)
        if pieces:
            self._connection._impl._output_marshaled_frames([b"".join(pieces)])

    def _after_close(self, error: BaseException) -> None:
        """Blame one for it, if only one was on its way; else all of them go again, one at a time."""
        code = error.reply_code if isinstance(error, foreign.ChannelClosedByBroker) else None
        if code is None or code in _EVERYBODYS:
            raise error
        reason = f"the broker closed the channel: {getattr(error, 'reply_text', error)}"
        self._tell(self._book.channel_closed(Refusal(reason, hopeless=code == _TOO_MUCH)))

    def _on_confirm(self, frame: Any) -> None:  # noqa: ANN401
        self._heard = True
        answer = frame.method
        taken = isinstance(answer, spec.Basic.Ack)
        self._tell(self._book.settle(answer.delivery_tag, multiple=answer.multiple, taken=taken))

    def _on_return(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:  # noqa: ANN401
        self._book.note_returned(method.exchange, method.routing_key, properties.message_id, body)

    def _tell(self, verdicts: list[Verdict]) -> None:
        for outgoing, refusal in verdicts:
            outgoing.confirmed(refusal)
