"""Tells another process that there is something for it, apart from the thing itself.

Whoever waits for a message is woken by the first of several, and is back asleep before the second is there. Whoever
waits for the bell finds all of them. A bell holds nothing that could be lost: it only says when to look.
"""

import os


class Bell:
    """Rings until it is hushed, however often it was rung. Nobody ever waits in here."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int | None = None) -> None:
        """Take one that another process has made, or make one."""
        made = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) if descriptor is None else descriptor
        self.descriptor = made

    def ring(self) -> None:
        try:  # noqa: SIM105 - on the way of every few messages, where `suppress` takes longer than this
            os.eventfd_write(self.descriptor, 1)
        except BlockingIOError:  # somebody has rung it as often as it can count
            pass

    def hush(self) -> None:
        try:  # noqa: SIM105
            os.eventfd_read(self.descriptor)
        except BlockingIOError:  # it does not ring
            pass

    def close(self) -> None:
        """Let go of it; what is done to it after that fails, and hits nobody else."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
