"""Lines on their way out of the worker: gathered, written many at a time, and never waited for.

Who reads them may be slow, or gone, and a worker that waited for that would lose its heartbeats. So what cannot be
written now is kept for the next time, up to a limit; past it the oldest lines are dropped and counted.

A write has whole lines and at most PIPE_BUF bytes. A pipe that can be written to takes so many without waiting, and
takes them in one piece: handlers print to the same pipe from their own processes, and no line may end up in another.
"""

import os
import select
import threading
import time

STDOUT = 1
GATHERED = 256  # lines that are written without being asked to; a pipe holds some 500
MOST_KEPT = 1_048_576  # characters


class Stdout:
    """Takes lines, each ending in a newline. Any thread may add one."""

    def __init__(self, fd: int = STDOUT) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._lines: list[str] = []
        self._begun = b""  # what is left of a batch that did not go out whole
        self._write_at = GATHERED
        self._writing = threading.Lock()
        self._broken = False
        self._dropped = 0

    def add(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) >= self._write_at:
            self.flush()

    def flush(self, patience: float = 0.0) -> bool:
        """Write what can be written, within so many seconds; say whether that was all."""
        # Somebody who is at it already may be us, interrupted by a signal: waiting could be for ever.
        if not self._writing.acquire(blocking=False):
            return False
        try:
            return self._write_all(time.monotonic() + patience)
        finally:
            self._drop_oldest()
            # Where nobody reads, not every single line is a reason to try again.
            self._write_at = len(self._lines) + GATHERED
            self._writing.release()

    def take_dropped(self) -> int:
        """Say how many lines were lost since this was asked last; none as long as nobody could read the answer."""
        if self._broken:
            return 0
        dropped, self._dropped = self._dropped, 0
        return dropped

    def _write_all(self, deadline: float) -> bool:
        while self._begun or self._begin():
            patience = max(0.0, deadline - time.monotonic())
            if not self._poll.poll(patience * 1000) or not self._write():
                return False
        return True

    def _begin(self) -> bool:
        """Take the next lines, as many as go out in one piece, be it only one that does not."""
        batch, count = bytearray(), 0
        for line in self._lines:
            data = line.encode(errors="backslashreplace")
            if batch and len(batch) + len(data) > select.PIPE_BUF:
                break
            batch += data
            count += 1
        del self._lines[:count]  # others only add at the end
        self._begun = bytes(batch)
        return count > 0

    def _write(self) -> bool:
        """Write some; say whether to go on."""
        try:
            written = os.write(self._fd, self._begun[: select.PIPE_BUF])
        except BlockingIOError:  # another process may have made the pipe non-blocking for all of us
            return False
        except OSError:  # nobody reads any more, or the disk is full
            self._dropped += self._begun.count(b"\n") + len(self._lines)
            self._begun = b""
            self._lines.clear()
            self._broken = True
            return False
        self._broken = False
        self._begun = self._begun[written:]
        return True

    def _drop_oldest(self) -> None:
        while sum(map(len, self._lines)) > MOST_KEPT:
            half = (len(self._lines) + 1) // 2
            del self._lines[:half]
            self._dropped += half
