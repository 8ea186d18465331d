"""What a handler may raise to say what it wants; any other exception is a failure like any other."""

from datetime import timedelta


class Retry(Exception):
    """Try this message again, after `delay` if one is given, else as the policy says. It uses an attempt."""

    def __init__(self, message: str = "", *, delay: timedelta | None = None) -> None:
        super().__init__(message)
        self.delay = delay


class Snooze(Exception):
    """Not now, and nobody's fault: bring this message again later. It uses no attempt."""

    def __init__(self, message: str = "", *, delay: timedelta | None = None) -> None:
        super().__init__(message)
        self.delay = delay


class Reject(Exception):
    """This message can never succeed: park it as a dead letter now, with the reason."""
