"""How many letters may go now: pure, the clock is an argument.

A rate is kept as an average from the first letter on, without making up in a burst for a time in which nothing went.
"""

from dataclasses import dataclass

# A portion for about so long: short enough to be stopped between, long enough that its confirms are few.
PORTION_SECONDS = 0.25


@dataclass(slots=True)
class Pace:
    """Lets through `rate` a second; None is as fast as it goes. `due` is when the next may go."""

    rate: float | None
    due: float | None = None

    def portion(self, most: int) -> int:
        """Say how many go at once."""
        return most if self.rate is None else max(1, min(most, int(self.rate * PORTION_SECONDS)))

    def wait(self, now: float) -> float:
        """Say for how many seconds nothing may go."""
        return 0.0 if self.rate is None or self.due is None else max(0.0, self.due - now)

    def went(self, count: int, now: float) -> None:
        """Note that so many went just now."""
        if self.rate is not None:
            self.due = max(now, self.due or now) + count / self.rate
