"""Looks whether a queue is there, and how many messages wait in it.

On a channel of its own: a broker that does not find the queue closes the channel, with all that was delivered on it.
"""

from collections.abc import Callable
from typing import Any

from pika import exceptions as foreign

from redrive.amqp.loop import unswallowed

_NOT_FOUND = 404


def look_for(connection: Any, queue: str, answered: Callable[[int | None], None]) -> None:  # noqa: ANN401
    """Ask; `answered` is told how many messages are ready, or None when there is no such queue.

    A queue that may not be looked at is there, and taken for empty. Nothing is told when the connection is lost or
    closed meanwhile: its channels are closing then, and the library refuses to use them. To ask needs no permission.
    """

    def on_open(channel: Any) -> None:  # noqa: ANN401
        if channel.is_open and connection.is_open:
            channel.queue_declare(queue, passive=True, callback=unswallowed(on_found))

    def on_found(frame: Any) -> None:  # noqa: ANN401
        if channel.is_open and connection.is_open:
            channel.close()
            answered(int(frame.method.message_count))

    def on_close(_channel: Any, error: BaseException) -> None:  # noqa: ANN401
        if isinstance(error, foreign.ChannelClosedByBroker):
            answered(None if error.reply_code == _NOT_FOUND else 0)

    if connection.is_open:
        channel = connection.channel(on_open_callback=unswallowed(on_open))
        channel.add_on_close_callback(unswallowed(on_close))
