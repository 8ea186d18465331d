"""Where the success path bends: handlers that take a while, bodies that are large, more or less at once.

Handlers are crossed with concurrency, because one makes up for the other; bodies are varied alone. A hand-written
consumer has no concurrency, so it stands once for each handler. Each gets as many messages as it has work with for a
second or two, by how many it runs at once: with the same number for all, who runs a hundred would be done before
anything could be seen, and who runs one would take minutes to show that ten milliseconds are ten.
"""

from collections.abc import Sequence
from itertools import product

from bench.worker_contenders import Contender
from bench.worker_peers import Peer
from bench.worker_success import Load
from bench.worker_trial import USUAL_BODY

WORK_SECONDS = 1.5  # by what is known of each; a machine that is faster by half still looks for a second
MOST_BYTES = 256 * 2**20  # of a queue: its broker holds them in memory, and is to be far from its alarm
LEAST = 10  # messages


def plan_sweep(
    contender: Contender | Peer,
    *,
    seconds: float,
    usual: int,
    handlers: Sequence[float],
    bodies: Sequence[int],
    concurrencies: Sequence[int],
) -> list[Load]:
    """Give the loads of one contender: without concurrency, those that differ by nothing else are one."""
    crossed = [(handler, USUAL_BODY, concurrency) for handler, concurrency in product(handlers, concurrencies)]
    large = [(0.0, size, usual) for size in bodies]
    loads: dict[tuple[float, int, int | None], Load] = {}
    for handler, size, concurrency in (*crossed, *large):
        count = _count(contender, seconds, handler, size, concurrency)
        kind = (handler, size, concurrency if contender.concurrent else None)
        loads.setdefault(kind, Load(count, concurrency, size, handler))
    return list(loads.values())


def _count(contender: Contender | Peer, seconds: float, handler_ms: float, size: int, concurrency: int) -> int:
    """Count what it handles in so many seconds, by itself and by its handlers, as far as there is room."""
    handled = float(contender.per_second)
    if handler_ms:
        handled = min(handled, contender.runs_at_once(concurrency) * 1000 / handler_ms)
    return max(LEAST, min(int(seconds * handled), MOST_BYTES // size))
