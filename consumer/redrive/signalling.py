"""Signals, told to a loop in its own time.

A Python signal handler runs between any two steps of the main thread, also while that holds a lock which the handler
would want. So the interpreter only writes the signal's number into a socket, and the loop reads it like anything else.
"""

import signal
import socket
from collections.abc import Callable

from redrive.runtime.ports import Loop


def on_signals(loop: Loop, call: Callable[[], None], *numbers: signal.Signals) -> None:
    """Call in the loop for each of these signals that comes. From the main thread, for the life of the process."""
    ours, interpreters = socket.socketpair()
    for end in (ours, interpreters):
        end.setblocking(False)
    for number in numbers:
        signal.signal(number, lambda *_: None)  # without one, the interpreter would not write anything
    signal.set_wakeup_fd(interpreters.detach(), warn_on_full_buffer=False)

    def read() -> None:
        for number in ours.recv(4096):
            if number in numbers:
                call()

    loop.watch(ours.fileno(), read)
