"""A worker's loop between doors that lead nowhere: what the loop itself costs for a message, and nothing else.

The loop is the real one. The queue hands out messages by the batch, as one reading of a socket does; the runner ends
every job at once, as it was told; the publisher confirms what it was given when the loop turns. There is no thread, no
socket and no waiting, and time stands still for timers, and for everybody but whoever moves the clock.
"""

from collections import deque
from collections.abc import Callable, Iterable

from redrive.delivery import Delivery
from redrive.outcome import Result
from redrive.properties import Properties
from redrive.runners import Ended, Job, Report
from redrive.runtime.ports import Confirmed, Session, Taking

SECONDS = 0.000_1  # that a handler is said to have run


class StillTimer:
    """A timer that nothing ever comes of."""

    def cancel(self) -> None:
        pass


class TurningLoop:
    """Calls what was asked for soon, when it is turned. `at` is what its clock says."""

    def __init__(self) -> None:
        self.at = 0.0
        self._soon: deque[Callable[[], None]] = deque()
        self._timer = StillTimer()

    def now(self) -> float:
        return self.at

    def later(self, _seconds: float, _call: Callable[[], None]) -> StillTimer:
        return self._timer

    def soon(self, call: Callable[[], None]) -> None:
        self._soon.append(call)

    def watch(self, fd: int, call: Callable[[], None]) -> None:
        pass

    def unwatch(self, fd: int) -> None:
        pass

    def turn(self) -> None:
        """Call all, also what is asked for meanwhile."""
        while self._soon:
            self._soon.popleft()()


class EndlessQueue:
    """A consumer, and its only session: hands out copies of one delivery, with tags that rise."""

    hold: object = None  # it never holds anything back

    def __init__(self, delivery: Delivery) -> None:
        self._taking: Taking | None = None
        self._delivery = delivery
        self._tag = 0
        self.acknowledged = 0

    def start(self, taking: Taking, *, prefetch: int) -> None:  # noqa: ARG002 - whoever turns the loop sets the pace
        self._taking = taking
        session: Session = self
        taking.consuming(session)

    def deliver(self, count: int) -> None:
        one, taking = self._delivery, self._taking
        if taking is None:
            return
        for _ in range(count):
            self._tag += 1
            delivery = Delivery(self._tag, one.exchange, one.routing_key, one.redelivered, one.body, one.properties)
            taking.delivered(self, delivery)

    def ack(self, tag: int, *, multiple: bool) -> None:
        self.acknowledged = tag if multiple else self.acknowledged + 1

    def pause(self, call: Callable[[], None]) -> None:
        pass

    def resume(self, *, prefetch: int) -> None:
        pass

    def stop(self) -> None:
        pass

    def reject(self, tag: int, *, requeue: bool) -> None:
        pass

    def barrier(self, call: Callable[[], None]) -> None:
        pass

    def close(self) -> None:
        pass


class ConfirmingPublisher:
    """Says that a queue has it, the next time that the loop turns."""

    frame_max = 131_072
    connected = True

    def __init__(self, loop: TurningLoop) -> None:
        self._loop = loop

    def start(self) -> None:
        pass

    def send(self, _exchange: str, _key: str, _body: bytes, _properties: Properties, confirmed: Confirmed) -> None:
        self._loop.soon(lambda: confirmed(None))

    def stop(self) -> None:
        pass


class InstantRunner:
    """Ends every job with the same result, the next time that the loop turns."""

    def __init__(self, loop: TurningLoop, result: Result) -> None:
        self._loop = loop
        self._result = result
        self._report: Report = lambda _several: None

    def start(self, report: Report, _fail: Callable[[str], None]) -> None:
        self._report = report

    def submit(self, jobs: Iterable[Job]) -> None:
        ended = [Ended(job, self._result, SECONDS) for job in jobs]
        self._loop.soon(lambda: self._report(ended))

    def withdraw(self) -> list[Job]:
        return []

    def stop(self) -> None:
        pass
