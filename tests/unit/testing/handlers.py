"""Handlers and a policy that several tests begin with."""

from datetime import timedelta

FIXED = {"maxAttempts": 3, "backoff": {"strategy": "Fixed", "base": "10s"}}
TEN = timedelta(seconds=10)


def fail(body: bytes) -> None:
    raise ConnectionError("no answer")


def succeed(body: bytes) -> None:
    pass
