"""Which events have been told, so that one that goes on being true is one Event that is counted, not a thousand.

The clock is an argument, and nothing is written from here. What is remembered is bounded: of each object and reason
so many messages, and of these pairs the ones that were told last.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

# As long as the API server keeps an Event after its last change, unless it was told otherwise.
LIFETIME = timedelta(hours=1)
INTERVAL = timedelta(minutes=5)
MOST_MESSAGES = 20
MOST_PAIRS = 2000


@dataclass(slots=True)
class Line:
    """One message about one object. `written` is None until its Event is known to exist as it stands here."""

    message: str
    first: datetime
    last: datetime
    count: int = 0
    written: datetime | None = None


class Ledger:
    """Counts what is told. Not made for threads: whoever has it has a lock as well."""

    def __init__(self) -> None:
        self._pairs: OrderedDict[tuple[str, str], dict[str, Line]] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(lines) for lines in self._pairs.values())

    def count(self, uid: str, reason: str, message: str, now: datetime) -> Line:
        """Note that this was told about the object; what is too much to be told one by one shares a line."""
        lines = self._recent(uid, reason, now)
        if message not in lines and sum(other != and_more(reason) for other in lines) >= MOST_MESSAGES:
            message = and_more(reason)
        line = lines.setdefault(message, Line(message, first=now, last=now))
        line.count += 1
        line.last = now
        return line

    def _recent(self, uid: str, reason: str, now: datetime) -> dict[str, Line]:
        known = self._pairs.pop((uid, reason), {})
        lines = {message: line for message, line in known.items() if now - line.last < LIFETIME}
        self._pairs[uid, reason] = lines
        while len(self._pairs) > MOST_PAIRS:
            self._pairs.popitem(last=False)
        return lines


def is_due(line: Line, now: datetime) -> bool:
    """Say whether the Event is to be written: at once if it is new, and not too often while it repeats."""
    return line.written is None or now - line.written >= INTERVAL


def and_more(reason: str) -> str:
    return f"and more: {reason} came with other details as well, too many for an Event each"
