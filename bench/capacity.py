"""How many messages a second the receiver itself can take: lateness below that rate is not its doing."""

import time

from bench.contenders import WORK, WORK_QUEUE, Entrance
from bench.declare import declare
from bench.errors import Abandoned
from bench.publisher import Letter, Publisher
from bench.receiver import Ledger, receiving

PATIENCE = 60


def measure_capacity(url: str, *, count: int, window: int) -> float:
    """Let a receiver empty a full queue; return messages a second, of the broker and the receiver together."""
    declare(url, (WORK_QUEUE,))
    ledger = Ledger(count)
    with Publisher(url, window=window, dues={}) as publisher:
        publisher.publish([Letter(number, Entrance("", WORK), 0) for number in range(count)])
    with receiving(url, WORK, ledger):
        deadline = time.monotonic() + PATIENCE
        while not ledger.complete(range(count)):
            if time.monotonic() > deadline:
                raise Abandoned(f"the receiver did not take {count} messages within {PATIENCE} s")
            time.sleep(0.05)
    first, last = min(ledger.arrivals), max(ledger.arrivals)
    return float((count - 1) / ((last - first) / 1e9))
