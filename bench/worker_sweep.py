"""Where the success path bends: handlers that take a while, bodies that are large, more or less at once.

Handlers are crossed with concurrency, because one makes up for the other; bodies are varied alone. A hand-written
consumer has no concurrency, so it stands once for each handler.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from bench.worker_contenders import Contender
from bench.worker_peers import Peer
from bench.worker_success import Load
from bench.worker_trial import USUAL_BODY

MOST_BYTES = 64 * 2**20  # of a queue
SLOW_SECONDS = 4  # that they may take, with as many at a time as there can be


def plan_sweep(
    messages: int, *, usual: int, handlers: Sequence[float], bodies: Sequence[int], concurrencies: Sequence[int]
) -> list[Load]:
    crossed = [(handler, USUAL_BODY, concurrency) for handler, concurrency in product(handlers, concurrencies)]
    large = [(0.0, size, usual) for size in bodies]
    return [
        Load(_count(messages, handler, size, concurrency), concurrency, size, handler)
        for handler, size, concurrency in dict.fromkeys([*crossed, *large])
    ]


def loads_of(contender: Contender | Peer, loads: Sequence[Load]) -> Iterator[Load]:
    """Give each its own: without concurrency, those that differ by nothing else are one."""
    seen = set()
    for load in loads:
        kind = (load.handler_ms, load.body_bytes, load.concurrency if contender.concurrent else None)
        if kind not in seen:
            seen.add(kind)
            yield load


def _count(messages: int, handler_ms: float, size: int, concurrency: int) -> int:
    """Take fewer where they are slow or large: nobody waits for an hour to learn that ten milliseconds are ten."""
    slow = concurrency * SLOW_SECONDS * 1000 / handler_ms if handler_ms else messages
    return max(10, min(messages, int(slow), MOST_BYTES // size))
