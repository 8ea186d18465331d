"""The tries of an attempt: handed to the runner, and again in place as often as the policy says.

An attempt begins with its first try and ends with the result of its last. Between two tries a message is in nobody's
hands but ours, and is in flight all the same.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import cast

from redrive.outcome import Failed, Result
from redrive.policy import RetryPolicy
from redrive.retry import try_again
from redrive.runners import Ended, Runner
from redrive.runtime.held import Held, Stage
from redrive.runtime.ports import Loop, Timer


class Tries:
    """What the runner has, and what waits for another try. `over` is told the result of an attempt."""

    def __init__(self, policy: RetryPolicy, runner: Runner, loop: Loop, over: Callable[[Held, Result], None]) -> None:
        self._policy = policy
        self._runner = runner
        self._loop = loop
        self._over = over
        self._submitted = 0
        self._between: dict[Held, Timer] = {}
        self._in_place = True

    @property
    def running(self) -> int:
        return self._submitted + len(self._between)

    def submit(self, several: list[Held]) -> None:
        for held in several:
            held.stage = Stage.RUNNING
        self._submitted += len(several)
        self._runner.submit(several)

    def take_back(self) -> list[Held]:
        """Have again what the runner has not begun. What was tried before goes on, or its last failure counts."""
        several = cast("list[Held]", self._runner.withdraw())
        self._submitted -= len(several)
        fresh = [held for held in several if held.failed is None]
        for held in fresh:
            held.stage = Stage.WAITING
        for held in several:
            if held.failed is not None and self._in_place:
                self.submit([held])
            elif held.failed is not None:
                self._over(held, held.failed)
        return fresh

    def ended(self, several: list[Ended]) -> None:
        for ended in several:
            self._submitted -= 1
            held = cast("Held", ended.job)  # what we submit is what ends
            if not held.tries:
                held.first_try_at = self._loop.now() - ended.seconds
            held.tries += 1
            held.seconds = ended.seconds
            self._after(held, ended.result)

    def stop_trying(self) -> None:
        """Try nothing in place any more: the last failure counts."""
        self._in_place = False
        between, self._between = self._between, {}
        for held, timer in between.items():
            timer.cancel()
            self._over(held, cast("Failed", held.failed))

    def _after(self, held: Held, result: Result) -> None:
        pause = self._pause(held, result) if isinstance(result, Failed) and self._in_place else None
        if pause is None:
            self._over(held, result)
            return
        held.failed = cast("Failed", result)
        self._between[held] = self._loop.later(pause.total_seconds(), partial(self._try_in_place, held))

    def _pause(self, held: Held, failed: Failed) -> timedelta | None:
        if held.tries >= self._policy.immediate.tries:
            return None  # as nearly always: nothing else needs to be known
        now = self._loop.now()
        elapsed = timedelta(seconds=now - (now if held.first_try_at is None else held.first_try_at))
        return try_again(self._policy, failed, tries=held.tries, elapsed=elapsed)

    def _try_in_place(self, held: Held) -> None:
        del self._between[held]
        self.submit([held])
