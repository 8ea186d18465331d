"""How much of a list is asked for at once: so many objects, and of their answer so many bytes.

Any object may be a megabyte and a half, and up to forty when it is read; nearly all are a few kilobytes. A page of so
few objects that the former fit is thousands of requests for ten thousand of the latter, and sizes seen so far say
nothing about the next, which may be somebody else's. So a page is large, and an answer that comes to more than it
should is given up on the way, and asked for again with fewer objects, until it is one, which may be as large as it is.
"""

# A page of objects such as people write is less than a megabyte.
PAGE = 100

# Two of the largest objects: what is made of it comes to eighty megabytes at most. It is 6 KB for each of 500 objects'
# metadata, so that the lists of every minute are a request or two for a thousand.
MOST_BYTES = 3 * 1024 * 1024

_SHRINK, _GROW = 8, 2


class Portion:
    """What the next page of one list may be."""

    def __init__(self, page: int) -> None:
        self._page = page
        self.objects = page

    @property
    def most_bytes(self) -> int | None:
        return MOST_BYTES if self.objects > 1 else None

    def shrink(self) -> None:
        """Ask for fewer: these came to too many bytes."""
        self.objects = max(1, self.objects // _SHRINK)

    def see(self, size: int) -> None:
        """Take the size of a page that came; ask for more where that leaves room, as objects of a kind are alike."""
        if size * _GROW < MOST_BYTES // 2:
            self.objects = min(self._page, self.objects * _GROW)
