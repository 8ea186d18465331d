"""Who is gone for good, by uid: what was sent before the end of an object may arrive after it.

A watch tells of the end. The answer to a write of ours, or a list that began earlier, still shows what was there, and
would bring it back for as long as nobody looks again.
"""

MOST = 10_000


class Departed:
    """The last so many. Whoever uses it sees to it that one thread does so at a time."""

    def __init__(self) -> None:
        self._uids: dict[str, None] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def add(self, uid: str) -> None:
        self._uids[uid] = None
        while len(self._uids) > MOST:
            del self._uids[next(iter(self._uids))]
