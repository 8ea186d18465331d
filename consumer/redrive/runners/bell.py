"""Tells another process that there is something for it, apart from the thing itself.

Whoever waits for a message is woken by the first of several, and is back asleep before the second is there. Whoever
waits for the bell finds all of them. A bell holds nothing that could be lost: it only says when to look.

It is a pipe, and not one file that both sides have. Whether a file may be waited for is set for all who have it, and a
handler that sets it for whatever files it finds would have the worker wait. Each side has an end of its own.
"""

import os

_MOST = 512  # bytes that are hushed at once; when there are more, it still rings


class Bell:
    """Rings until it is hushed, however often it was rung. Nobody ever waits in here."""

    __slots__ = ("descriptor", "rope")

    def __init__(self, *, descriptor: int = -1, rope: int = -1) -> None:
        """Take the end of one that another process has made, to listen or to ring; or make one."""
        is_made = descriptor < 0 and rope < 0
        self.descriptor, self.rope = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if is_made else (descriptor, rope)

    def ring(self) -> None:
        try:  # noqa: SIM105 - on the way of every few messages, where `suppress` takes longer than this
            os.write(self.rope, b"\0")
        except BlockingIOError:  # it was rung as often as it can hold
            pass

    def hush(self) -> None:
        try:  # noqa: SIM105
            os.read(self.descriptor, _MOST)
        except BlockingIOError:  # it does not ring
            pass

    def close(self) -> None:
        """Let go of it; what is done to it after that fails, and hits nobody else."""
        ends, self.descriptor, self.rope = (self.descriptor, self.rope), -1, -1
        for end in ends:
            if end >= 0:
                os.close(end)
