"""One connection, for ever: whenever it is gone it is made again, with growing pauses and fresh credentials.

Nothing here waits: names are looked up in a thread, and the rest of connecting is the loop's. Each step is timed out by
the library, except the look-up, which the system's resolver ends.
"""

import random
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pika import exceptions as foreign

from redrive.amqp.connection import Connection
from redrive.amqp.loop import EventLoop, unswallowed
from redrive.amqp.wire import connection_parameters, explain
from redrive.endpoints import Endpoint
from redrive.errors import RedriveError
from redrive.reconnecting import pause_after
from redrive.runtime.ports import Timer

HEARTBEAT_SECONDS = 20
GOODBYE_SECONDS = 5.0

ConnectTo = Callable[[], tuple[Endpoint, ssl.SSLContext | None]]
Trouble = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Terms:
    """How to connect, and what for.

    `to` is asked each time, since a Secret changes. `trouble` hears what fails, in words that are the same each time;
    `stands` hears whether there is a connection.
    """

    to: ConnectTo
    name: str
    trouble: Trouble
    stands: Callable[[bool], None] = lambda _stands: None
    doing: str = "connected"
    heartbeat: int = HEARTBEAT_SECONDS
    blocked: float | None = None
    random: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Loss:
    """Why a connection that stood is gone. `code` is the broker's, if it said anything."""

    reason: str
    code: int | None = None


class Link:
    """Keeps one connection. `opened` is told of each, and `lost` of the end of each that was opened."""

    def __init__(
        self, loop: EventLoop, terms: Terms, *, opened: Callable[[Any], None], lost: Callable[[Loss], None]
    ) -> None:
        self._loop = loop
        self._terms = terms
        self._opened = opened
        self._lost = lost
        self._where = self._vhost = ""
        self._connection: Any = None
        self._failures = 0
        self._timer: Timer | None = None
        self._is_stopping = False
        self._goodbyes: list[Callable[[], None]] = []

    @property
    def connection(self) -> Any:  # noqa: ANN401 - the library's own type
        """The connection, while it is open; else None."""
        return self._connection if self._connection is not None and self._connection.is_open else None

    def start(self) -> None:
        try:
            parameters = self._parameters()
        except (RedriveError, OSError) as error:
            self._try_again(str(error))
            return
        self._connection = Connection(
            parameters,
            on_open_callback=unswallowed(self._on_open),
            on_open_error_callback=unswallowed(self._on_open_error),
            on_close_callback=unswallowed(self._on_close),
            custom_ioloop=self._loop.services,
        )

    def worked(self) -> None:
        """Be told that the connection was good for something: the next pause is a short one."""
        self._failures = 0

    def stop(self, done: Callable[[], None] | None = None) -> None:
        """Close politely, but not for ever; then call. Nothing else is told any more."""
        if done is not None:
            self._goodbyes.append(done)
        if self._is_stopping:
            return
        self._is_stopping = True
        self._cancel_timer()
        if self.connection is not None:
            self._timer = self._loop.later(GOODBYE_SECONDS, self._abort)
            self._connection.close()
        else:
            self._loop.soon(self._abort)

    def _parameters(self) -> Any:  # noqa: ANN401
        terms = self._terms
        endpoint, tls = terms.to()
        self._where, self._vhost = str(endpoint), endpoint.vhost
        return connection_parameters(endpoint, tls, terms.name, heartbeat=terms.heartbeat, blocked=terms.blocked)

    def _on_open(self, connection: Any) -> None:  # noqa: ANN401
        connection.read_more_at_once()
        if not self._is_stopping:
            self._terms.stands(True)
            self._opened(connection)

    def _on_open_error(self, _connection: Any, error: BaseException) -> None:  # noqa: ANN401
        self._connection = None
        self._end_or_try_again(self.explain(error, "connecting"))

    def _on_close(self, _connection: Any, error: BaseException) -> None:  # noqa: ANN401
        self._connection = None
        reason = self.explain(error)
        self._terms.stands(False)
        if not self._is_stopping:
            self._lost(Loss(reason, getattr(error, "reply_code", None)))
        self._end_or_try_again(reason)

    def explain(self, error: BaseException, doing: str = "") -> str:
        """Say why the connection is gone."""
        return str(explain(error, doing=doing or self._terms.doing, where=self._where, vhost=self._vhost))

    def _end_or_try_again(self, reason: str) -> None:
        if self._is_stopping:
            self._end()
        else:
            self._try_again(reason)

    def _try_again(self, reason: str) -> None:
        self._failures += 1
        pause = pause_after(self._failures, random=self._terms.random)
        self._timer = self._loop.later(pause, self.start)
        self._terms.trouble(f"{reason}; trying again")

    def _abort(self) -> None:
        """End a connection that does not close, or that is being opened; the library's `close` fails in a handshake."""
        if self._connection is not None and not self._connection.is_closed:
            self._connection._terminate_stream(foreign.StreamLostError("stopped"))
        self._loop.soon(self._end)

    def _end(self) -> None:
        self._cancel_timer()
        goodbyes, self._goodbyes = self._goodbyes, []
        for call in goodbyes:
            call()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
