"""Watches whether letters that were put back die again.

A look through all dead letters costs something, so one looks only when there are more of them than before.
"""

import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from redrive.amqp import Amqp
from redrive.letters.letter import read_letter
from redrive.letters.looking import Clock, look
from redrive.reading import Reading

POLL_SECONDS = 0.5


def watch(
    amqp: Amqp,
    queue: str,
    ids: Collection[str],
    *,
    seconds: float,
    reading: Reading | None = None,
    keep_going: Callable[[], bool] = lambda: True,
    clock: Clock = time.monotonic,
) -> frozenset[str]:
    """Watch for so long, and return at once the ids of those that died again; none of them: they did not."""
    end = clock() + seconds
    before = 0  # so that it is looked once in any case: they may have died before we began to watch
    while keep_going():
        waiting = amqp.count_ready(queue) or 0
        if waiting > before:
            died = find_again(amqp, queue, ids, reading=reading)
            if died:
                return died
        before = waiting
        left = end - clock()
        if left <= 0:
            break
        amqp.wait(min(POLL_SECONDS, left))
    return frozenset()


def find_again(amqp: Amqp, queue: str, ids: Collection[str], *, reading: Reading | None = None) -> frozenset[str]:
    """Find which of these are dead letters after they were put back once or more."""
    wanted, found = frozenset(ids), set()
    with look(amqp, queue, reading=reading) as looked:
        for window in looked.windows():
            now = datetime.now(UTC)
            letters = (read_letter(delivery, now=now) for delivery in window)
            found |= {letter.id for letter in letters if letter.redrives > 0 and letter.id in wanted}
            if found == wanted:
                break
    return frozenset(found)
