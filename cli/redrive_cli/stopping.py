"""Ctrl-C, for commands that hold letters: the first asks to stop where nothing is half done, the second ends at once.

At once is safe too: what is held is given back by the broker. But asked politely it keeps its order.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # the exit code of who was stopped, as shells have it

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether to go on."""
    stops = 0

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stops
        stops += 1
        if stops > 1:
            raise KeyboardInterrupt

    before = {one: signal.signal(one, stop) for one in _SIGNALS}
    try:
        yield lambda: stops == 0
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
