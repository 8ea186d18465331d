"""What a handler may raise to say what it wants; any other exception is a failure like any other.

A delay is a timedelta or a number of seconds. One that is neither fails where it is raised, which makes it a failure of
the handler, and not of the worker that would have had to make sense of it.
"""

from datetime import timedelta
from math import isfinite


class _Wish(Exception):
    """Something asked for with a delay. The class has one too: a subclass may forget to call ours."""

    delay: timedelta | None = None

    def __init__(self, message: str = "", *, delay: timedelta | float | None = None) -> None:
        super().__init__(message)
        self.delay = _as_delay(delay)


class Retry(_Wish):
    """Try this message again, after `delay` if one is given, else as the policy says. It uses an attempt."""


class Snooze(_Wish):
    """Not now, and nobody's fault: bring this message again later. It uses no attempt."""


class Reject(Exception):
    """This message can never succeed: park it as a dead letter now, with the reason."""


def _as_delay(delay: object) -> timedelta | None:
    """Annotations bind nobody at run time, so this takes anything."""
    if delay is None or isinstance(delay, timedelta):
        return delay
    if isinstance(delay, int | float) and not isinstance(delay, bool) and isfinite(delay) and abs(delay) < 1e9:
        return timedelta(seconds=delay)
    raise TypeError(f"delay must be a timedelta or a number of seconds, got {delay!r}")
