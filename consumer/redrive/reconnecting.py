"""How long to wait before trying again to reach a broker: longer each time, and never all workers at once."""

from collections.abc import Callable

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0

# A lucky draw of the jitter must not become a loop that only tries.
SHORTEST_PAUSE = 0.02


def pause_after(failures: int, *, random: Callable[[], float], longest: float = LONGEST_PAUSE) -> float:
    """Draw the pause after so many failures in a row, in seconds: uniform up to a bound that doubles (full jitter)."""
    bound = min(longest, FIRST_PAUSE * 2.0 ** min(failures - 1, 30))
    return max(SHORTEST_PAUSE, bound * random())
