"""How fast messages come and go, from what a broker has counted at two moments: pure."""

from dataclasses import dataclass

from redrive.reading import FoundQueue


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages a second: those that came into a queue, retries too, and those that were acknowledged. None: unknown."""

    come: float | None
    go: float | None


def rate_between(before: FoundQueue | None, now: FoundQueue | None, seconds: float) -> Rates | None:
    """Compare two readings of a queue; None where there are no two."""
    if before is None or now is None or seconds <= 0:
        return None
    return Rates(_rate(before.published, now.published, seconds), _rate(before.acked, now.acked, seconds))


def _rate(before: int | None, now: int | None, seconds: float) -> float | None:
    """A broker that was started anew counts from nothing; then nothing can be said until the next reading."""
    if now is None or (before is not None and now < before):
        return None
    return (now - (before or 0)) / seconds if before is not None else None
