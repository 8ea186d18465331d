"""What the runtime stands on, as it sees it: a loop, a queue that it takes from, and a way to publish.

`redrive.amqp` has the real ones; `redrive.testing` has ones in memory, with a time of their own. All of it happens in
one thread, that of the loop; only `Loop.soon` may be called from any other.
"""

from collections.abc import Callable
from typing import Protocol

from redrive.delivery import Delivery
from redrive.properties import Properties
from redrive.refusal import Confirmed as Confirmed
from redrive.refusal import Refusal as Refusal


class Timer(Protocol):
    """Something that will be called."""

    def cancel(self) -> None:
        """Have it not called; nothing happens when it was already."""


class Loop(Protocol):
    """Calls what is due, in one thread, one after the other."""

    def now(self) -> float:
        """Seconds of a clock that only goes forward."""

    def later(self, seconds: float, call: Callable[[], None]) -> Timer: ...

    def soon(self, call: Callable[[], None]) -> None:
        """Call it in the loop, after what is being done there. From any thread."""

    def watch(self, fd: int, call: Callable[[], None]) -> None:
        """Call it whenever there is something to read."""

    def unwatch(self, fd: int) -> None: ...


class Session(Protocol):
    """One channel's worth of deliveries: their tags mean something here, and nowhere else.

    Commands to a session that is lost do nothing.
    """

    @property
    def hold(self) -> object:
        """What there is while acknowledgements are held back, another each time, and still when it is lost; else None.

        They are passed on when that is over, and never if it is lost before.
        """

    def ack(self, tag: int, *, multiple: bool) -> None: ...

    def reject(self, tag: int, *, requeue: bool) -> None: ...

    def barrier(self, call: Callable[[], None]) -> None:
        """Call when the broker has done all that was asked of this session before. Never, if it is lost meanwhile."""

    def close(self) -> None:
        """Have no more of it: what is unacknowledged goes back to the queue. `lost` is not told of it."""


class Taking(Protocol):
    """Who is told what comes from the queue."""

    def delivered(self, session: Session, delivery: Delivery) -> None: ...

    def cancelled(self, session: Session) -> None:
        """The broker ended the consumer: its queue was deleted, or it was too slow and its deliveries are taken back.

        Nobody can say which, so the tags may mean something still, or nothing. Another session is opened; this one
        stays until it is closed.
        """

    def lost(self, session: Session, reason: str) -> None:
        """The channel or connection is gone. The broker has taken back what was unacknowledged."""

    def consuming(self, session: Session) -> None:
        """The broker has agreed to deliver; told each time that it does."""


class Consumer(Protocol):
    """Takes from one queue, for ever: whenever the broker goes away, it opens another session, with jitter."""

    def start(self, taking: Taking, *, prefetch: int) -> None: ...

    def pause(self, call: Callable[[], None]) -> None:
        """Take nothing more, and call when nothing more can come. It stays so over reconnecting, until `resume`."""

    def resume(self, *, prefetch: int) -> None:
        """Take again, at most `prefetch` unacknowledged. While taking: go over to another prefetch.

        To more than before it goes over when there is more than it may have, and that may be never.
        """

    def stop(self) -> None:
        """Close the connection. Nothing is told any more."""


class Publisher(Protocol):
    """Publishes, mandatory, and says of each message that the broker has it for good, or why not.

    A connection that breaks is not told: what was not confirmed is sent again when there is another.
    """

    @property
    def frame_max(self) -> int: ...

    @property
    def connected(self) -> bool: ...

    def start(self) -> None: ...

    def send(self, exchange: str, routing_key: str, body: bytes, properties: Properties, confirmed: Confirmed) -> None:
        """Publish; `confirmed` is told None when a queue has it for good, else why none took it.

        It is told exactly once, later, never from inside of `send`.
        """

    def stop(self) -> None: ...
