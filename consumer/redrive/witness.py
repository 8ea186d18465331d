"""Tells metrics and logs what the runtime does, each in its own words."""

from datetime import datetime

from redrive.ladder import round_up
from redrive.logs import Log
from redrive.message import Message
from redrive.metrics import Metrics
from redrive.outcome import RetryLater
from redrive.runners import Ended
from redrive.runtime.held import Held
from redrive.runtime.ports import Refusal
from redrive.settle import Disposal


class Told:
    """The `Witness` of a runtime, and of its two connections."""

    def __init__(self, metrics: Metrics, log: Log, *, queue: str) -> None:
        self._metrics = metrics
        self._log = log
        self._queue = queue
        self._is_consuming = False

    def received(self, message: Message) -> None:
        self._metrics.received(message)

    def in_flight(self, count: int) -> None:
        self._metrics.in_flight(count)

    def ended(self, ended: Ended) -> None:
        self._metrics.ended(ended.result, ended.seconds)

    def settled(self, held: Held, disposal: Disposal) -> None:
        self._metrics.settled(disposal)
        seconds = held.seconds if held.tries else None
        self._log.settled(held.message, disposal, seconds=seconds, due_at=_due_at(held, disposal))

    def refused(self, held: Held, refusal: Refusal) -> None:
        self._metrics.unconfirmed(refusal.kind)
        self._log.warning("unsettled", refusal.reason, id=held.message.id, attempt=held.message.attempt)

    def consuming(self, prefetch: int) -> None:
        self._metrics.prefetch(prefetch)
        # After a suspect, or with another prefetch, it begins anew without having been away.
        level = "debug" if self._is_consuming else "info"
        self._is_consuming = True
        self._log.tell(level, "consuming", {"queue": self._queue, "prefetch": prefetch})

    def lost(self, reason: str) -> None:
        self._is_consuming = False
        self._log.warning("lost", reason)

    def cancelled(self) -> None:
        self._is_consuming = False
        self._log.warning("cancelled", f"the broker ended the consumer of queue {self._queue!r}: was it deleted?")

    def failed(self, reason: str) -> None:
        self._log.error("failed", reason)

    def trouble(self, reason: str) -> None:
        """Be told what is wrong with a connection."""
        self._log.warning("broker", reason)

    def stands(self, connection: str, is_so: bool) -> None:
        """Be told whether one of the two connections is there."""
        (self._metrics.connected if is_so else self._metrics.disconnected)(connection)


def _due_at(held: Held, disposal: Disposal) -> datetime | None:
    if not isinstance(disposal, RetryLater) or held.planned_at is None:
        return None
    return held.planned_at + round_up(disposal.delay)
