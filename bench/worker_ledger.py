"""What a worker's handler did, noted in a file that all its processes and the bench have mapped.

A handler may run in a child of a worker, which may be ended at any time; what it has noted is there all the same. For
each message, by its number, there stand five figures: how often it failed and succeeded, when it first did (of the
monotonic clock, which all processes of a machine share), and on which attempt it first succeeded, where messages fail.
Nobody else writes, so nothing is locked. Only two deliveries of one message at the same moment could count as one.

Importing this must cost a worker next to nothing: its memory is measured.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

_TIME_BYTES = 8
_ROW_BYTES = 2 * _TIME_BYTES + 3
_MOST = 255


class Ledger:
    """Notes of the messages 0 to `size` - 1; whoever opens the same file sees the same notes."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        view = memoryview(self._map)
        self.size = size = len(view) // _ROW_BYTES
        self._failed_at = view[: _TIME_BYTES * size].cast("q")
        self._succeeded_at = view[_TIME_BYTES * size : 2 * _TIME_BYTES * size].cast("q")
        self._failures = view[2 * _TIME_BYTES * size : (2 * _TIME_BYTES + 1) * size]
        self._successes = view[(2 * _TIME_BYTES + 1) * size : (2 * _TIME_BYTES + 2) * size]
        self._attempts = view[(2 * _TIME_BYTES + 2) * size :]

    @classmethod
    def create(cls, path: Path, size: int) -> "Ledger":
        path.write_bytes(bytes(_ROW_BYTES * size))
        return cls(path)

    def note_failure(self, number: int, now: int) -> None:
        if not self._failures[number]:
            self._failed_at[number] = now
        self._failures[number] = min(_MOST, self._failures[number] + 1)

    def note_success(self, number: int, now: int) -> None:
        if not self._successes[number]:
            self._succeeded_at[number] = now
        self._successes[number] = min(_MOST, self._successes[number] + 1)

    def note_attempt(self, number: int, attempt: int) -> None:
        """Note which attempt it is that succeeds; the first that does so counts."""
        if not self._attempts[number]:
            self._attempts[number] = min(_MOST, attempt)

    def failed(self, numbers: range) -> int:
        """Count those that have failed at least once."""
        return len(numbers) - _part(self._failures, numbers).count(0)

    def succeeded(self, numbers: range) -> int:
        return len(numbers) - _part(self._successes, numbers).count(0)

    def duplicated(self, numbers: range, *, failures: int) -> int:
        """Count the runs beyond one success and so many failures a message."""
        return _beyond(_part(self._successes, numbers), 1) + _beyond(_part(self._failures, numbers), failures)

    def overspent(self, numbers: range, *, failures: int) -> int:
        """Count the attempts beyond one for each failure and one more, on which the messages succeeded."""
        return _beyond(_part(self._attempts, numbers), failures + 1)

    def failed_at(self, number: int) -> int:
        """Say when a message first failed, in nanoseconds of the monotonic clock; 0: it has not."""
        return self._failed_at[number]

    def succeeded_at(self, number: int) -> int:
        return self._succeeded_at[number]

    def moments(self, numbers: range) -> Iterator[int]:
        """Give all the times that were noted, in no order."""
        for times in (self._failed_at, self._succeeded_at):
            yield from (at for at in times[numbers.start : numbers.stop] if at)


def _part(view: memoryview, numbers: range) -> bytes:
    return bytes(view[numbers.start : numbers.stop])


def _beyond(counts: bytes, expected: int) -> int:
    return sum(max(0, count - expected) for count in counts)
