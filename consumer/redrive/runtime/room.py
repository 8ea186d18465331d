"""Room for others beside what the broker refuses, or says nothing about.

That stays unacknowledged in our hands, and counts among those that a consumer may have: enough of it, one where
messages are taken one by one, and nothing would come any more. A broker counts for each consumer from none. So where
all that one may have is refused or unanswered, there is to be another; until our hands are full.
"""

from collections.abc import Collection

from redrive.runtime.held import Held
from redrive.runtime.prefetch import MOST_BYTES

# As many messages as a worker keeps that the broker has not taken, before it takes nothing more.
MOST_KEPT = 100


def is_crowded(present: Collection[Held], prefetch: int) -> bool:
    """Say whether messages that are kept are all that a consumer may have, by those that it has."""
    return len(present) >= prefetch and all(held.is_kept for held in present)


def is_full(kept: Collection[Held], concurrency: int) -> bool:
    """Say whether no more messages should be kept; as many as handlers run at once may be of any size."""
    size = sum(len(held.message.body) for held in kept)
    return len(kept) >= MOST_KEPT or (len(kept) >= concurrency and size > MOST_BYTES)
