"""Ends a worker whose loop does not turn because a handler keeps the interpreter to itself.

In the modes Thread and Async handlers share the interpreter with the loop. One that does not let go of it (a regular
expression that backtracks without end, a computation in C) stops the loop, the probes and its own timeout, and nothing
that is written in Python can end it: that would wait for the interpreter as well. So this is done by two timers of the
kernel and by functions of the C library, which need no interpreter:

1. The loop winds up the first, turn by turn. It counts the CPU time of this process: one that stands still, because it
   was stopped, is in a frozen container or on a node that has no time for it, uses none, and goes on afterwards. Only
   one that was using several cores at once when it was stopped, and for long, is ended.
2. When that has run down, it winds up the other, which counts seconds: many threads at work in C use much CPU time in a
   moment, and they end. A loop that turns again stops it.
3. When that has run down too, the traces of all threads are written to standard error, and the process ends.

A handler that keeps the interpreter and uses no CPU time is not noticed here, but by `/livez`.
"""

import ctypes
import faulthandler
import signal

# The loop winds the timers up as often as this.
WIND_SECONDS = 1.0

# A loop that shares the interpreter with many handlers that compute is held up for less.
CPU_SECONDS = 4.0

# What the C library calls when a signal comes it tells the signal's number. The first signal is told to `alarm`, for
# which it is the seconds until the second, together as long as a probe is patient (`health`). The second is told to
# `_exit`, for which it is the exit code.
ALARM_SECONDS = int(signal.SIGVTALRM)
EXIT_CODE = int(signal.SIGALRM)

# Not `sys.stderr`: a handler's module may have put there what has no file, such as one that writes to a log.
STANDARD_ERROR = 2


class Watchdog:
    """To be started and wound in the main thread; it does nothing before it is wound for the first time."""

    def start(self) -> None:
        library = ctypes.CDLL(None)
        library.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        library.signal.restype = ctypes.c_void_p
        library.signal(signal.SIGVTALRM, ctypes.cast(library.alarm, ctypes.c_void_p))
        # Not the default: what runs as the first process of its container is not ended by a signal of its own.
        library.signal(signal.SIGALRM, ctypes.cast(library._exit, ctypes.c_void_p))
        faulthandler.register(signal.SIGALRM, file=STANDARD_ERROR, all_threads=True, chain=True)

    def wind(self) -> None:
        """Tell it that the loop turns."""
        self._set(CPU_SECONDS)

    def stop(self) -> None:
        self._set(0.0)

    def _set(self, cpu_seconds: float) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, cpu_seconds)  # first, or it could wind up the other in between
        signal.setitimer(signal.ITIMER_REAL, 0.0)
