"""Results on their way from the threads that handlers run in to the loop, as many at once as there are.

Waking the loop costs more than a handler that does nothing, so it is woken only when it is not about to look anyway.
"""

from collections.abc import Callable
from functools import partial
from time import monotonic

from redrive.outcome import Result
from redrive.quickly import quickly
from redrive.runners import Ended, Report
from redrive.runners.attempts import Attempt
from redrive.runtime.ports import Loop

_ended = quickly(Ended)


class Reports:
    """Takes results from any thread and reports them in the loop, until it is closed."""

    def __init__(self, loop: Loop, report: Report, fail: Callable[[str], None]) -> None:
        self._soon = loop.soon
        self._report = report
        self._fail = fail
        self._failed = self._closed = False
        self._ended: list[Ended] = []
        self._coming = False

    def add(self, attempt: Attempt, result: Result) -> None:
        # In this order: the loop says that it has come, and then looks.
        self._ended.append(_ended(attempt.job, result, monotonic() - attempt.began))
        if not self._coming and not self._closed:
            self._coming = True
            self._soon(self.deliver)

    def deliver(self) -> None:
        self._coming = False
        several = self._ended[:]
        del self._ended[: len(several)]  # only those: others may have come meanwhile
        if several and not self._closed:
            self._report(several)

    def give_up(self, attempt: Attempt, result: Result, reason: str) -> None:
        """Tell, in the loop, what came of a try that does not end, and that this process is to be replaced."""
        self.add(attempt, result)
        self.deliver()
        self._fail_once(reason)

    def fail(self, reason: str) -> None:
        """Have it told, from any thread, that this process is to be replaced."""
        if not self._closed:
            self._soon(partial(self._fail_once, reason))

    def close(self) -> None:
        """Report nothing more."""
        self._closed = True

    def _fail_once(self, reason: str) -> None:
        if not self._failed and not self._closed:
            self._failed = True
            self._fail(reason)
