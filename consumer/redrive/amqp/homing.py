"""Waits for messages on their way back to their queue, so that no more are under way than it keeps in order."""

import time
from collections.abc import Callable, Sequence

from redrive.amqp.portions import GIVING_BACK_SECONDS, Flight

# Between two looks at the count; the queue has written some hundreds in that time.
NAP_SECONDS = 0.002

# Where others publish too, some of ours are still under way when as many as were sent have arrived.
REST_SECONDS = 0.05


class Homing:
    """`count` says how many are ready in the queue, `nap` lets time pass.

    When they do not arrive, somebody takes them away as they come: then nothing is waited for any more.
    """

    def __init__(
        self, count: Callable[[], int], nap: Callable[[float], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._count = count
        self._nap = nap
        self._clock = clock
        self._flight: Flight | None = None
        self._is_alone = True

    def make_room(self, sizes: Sequence[int]) -> None:
        """Return when portions of these sizes may be sent; they count as sent then."""
        if not self._is_alone:
            return
        if self._flight is not None and self._flight.is_long:
            self.wait_for_all()
        flight = self._flight = self._flight or Flight(self._count())
        clearance = flight.clearance(len(sizes))
        if clearance > flight.ready:
            self._wait_until(clearance)
        flight.send(sizes)

    def wait_for_all(self) -> None:
        flight, self._flight = self._flight, None
        if flight is not None and self._wait_until(flight.home) > flight.home:
            self._nap(REST_SECONDS)

    def _wait_until(self, enough: int) -> int:
        """Wait until so many are ready, and say how many are."""
        end = self._clock() + GIVING_BACK_SECONDS
        while (ready := self._count()) < enough and self._is_alone:
            self._is_alone = self._clock() <= end
            self._nap(NAP_SECONDS)
        return ready
