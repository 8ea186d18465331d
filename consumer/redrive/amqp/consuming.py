"""Takes from one queue, for ever, over a connection that never publishes: an alarm of the broker's blocks publishers.

What is wanted (a prefetch, or nothing while paused) and what is so are two things, and each answer of the broker brings
the second a step nearer to the first. Never more than one request of that kind is on its way, so any order of `pause`
and `resume` ends in what was asked last; but to have more at once may take until there is more.

A broker ends a consumer when its queue was deleted, and newer ones also when a delivery was not acknowledged in time,
which they then take back; they do not say which. Whoever takes must bear both.
"""

from collections.abc import Callable
from dataclasses import replace

from redrive.amqp.link import Link, Loss, Terms
from redrive.amqp.loop import EventLoop
from redrive.amqp.session import ChannelSession, Phase, bound_prefetch
from redrive.reconnecting import pause_after
from redrive.runtime.ports import Taking, Timer

# A queue that is missing is looked for more often than a broker.
LONGEST_PAUSE = 10.0


class QueueConsumer:
    """The `Consumer` of `redrive.runtime.ports`.

    A `resume` takes back the pauses before it: what they would have called is not called any more.
    """

    def __init__(self, loop: EventLoop, terms: Terms, *, queue: str) -> None:
        self._loop = loop
        self._terms = replace(terms, name=f"{terms.name} consume", doing=f"consuming from {queue!r}")
        self._queue = queue
        self._link = Link(loop, self._terms, opened=lambda _connection: self._steer(), lost=self._link_lost)
        self._taking: Taking | None = None
        self._wanted: int | None = None
        self._session: ChannelSession | None = None  # the one that takes, or is on its way to it
        self._pauses: list[Callable[[], None]] = []
        self._failures = 0
        self._timer: Timer | None = None

    def start(self, taking: Taking, *, prefetch: int) -> None:
        self._taking = taking
        self._wanted = bound_prefetch(prefetch)
        self._link.start()

    def pause(self, call: Callable[[], None]) -> None:
        self._wanted = None
        self._pauses.append(call)
        self._steer()

    def resume(self, *, prefetch: int) -> None:
        self._wanted = bound_prefetch(prefetch)
        self._pauses.clear()
        self._steer()

    def stop(self, done: Callable[[], None] | None = None) -> None:
        """Close the connection, politely if the broker answers in time; then call `done`."""
        self._taking = None
        self._cancel_timer()
        if self._link.connection is not None:
            self._link.connection.intake.tell_nobody()
        self._link.stop(done)

    def _steer(self) -> None:
        """Take the next step from what is so to what is wanted, if no other is on its way."""
        if self._taking is None:
            return
        session = self._session
        if session is None and self._wanted is not None:
            self._open(self._taking)
        elif session is not None and session.phase is Phase.TAKING and session.prefetch != self._wanted:
            if self._wanted is not None and self._wanted > session.prefetch:
                session.go_over()
            else:
                session.end_taking()
        elif session is not None and session.phase is Phase.IDLE and self._wanted is not None:
            session.begin_taking(self._wanted)
        if self._wanted is None and self._pauses:
            self._loop.soon(self._tell_paused)

    def _open(self, taking: Taking) -> None:
        connection = self._link.connection
        if connection is not None and self._timer is None:
            self._session = ChannelSession(
                connection, self._queue, loop=self._loop, keeper=self, delivered=taking.delivered
            )

    def _tell_paused(self) -> None:
        """Tell, unless somebody wants to take again, or something is still to come."""
        is_quiet = self._session is None or self._session.is_quiet()
        if self._wanted is None and self._taking is not None and is_quiet:
            pauses, self._pauses = self._pauses, []
            for call in pauses:
                call()

    # What a session tells, and the connection.

    def session_idle(self, _session: ChannelSession) -> None:
        self._steer()

    def session_taking(self, session: ChannelSession) -> None:
        self._link.worked()
        self._failures = 0
        session.is_known = True
        if self._taking is not None:
            self._taking.consuming(session)
        self._steer()

    def session_stays(self, session: ChannelSession) -> None:
        """It does not go over to more. By now nothing at all may be wanted of it, or less."""
        if self._wanted is None or self._wanted < session.prefetch:
            self._steer()

    def session_may_go_over(self, _session: ChannelSession) -> None:
        self._steer()

    def session_cancelled(self, session: ChannelSession) -> None:
        self._try_later()
        if session.is_known and self._taking is not None:
            self._taking.cancelled(session)
        self._steer()

    def session_lost(self, session: ChannelSession, error: BaseException) -> None:
        reason = self._link.explain(error)
        if session is self._session:
            self._try_later()
        if self._taking is not None and session.is_known:
            self._taking.lost(session, reason)
        elif self._taking is not None and self._link.connection is not None:
            self._terms.trouble(reason)
        self._steer()

    def session_closed(self, session: ChannelSession) -> None:
        if session is self._session:
            self._session = None
        self._steer()

    def _link_lost(self, _loss: Loss) -> None:
        """Its sessions have told already."""
        self._cancel_timer()

    def _try_later(self) -> None:
        """Open another session after a pause, on a channel of its own."""
        self._session = None
        self._failures += 1
        pause = pause_after(self._failures, random=self._terms.random, longest=LONGEST_PAUSE)
        self._timer = self._loop.later(pause, self._try_again)

    def _try_again(self) -> None:
        self._timer = None
        self._steer()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
