"""What a peer's task gets as its argument, for those that speak JSON, and what it does with it.

The same as `worker_handler` in text: the number of the message, how often it is to fail, and padding.
"""

import time

from bench import worker_handler as plain

NUMBER_DIGITS = 10
SHORTEST = NUMBER_DIGITS + 1


def write_payload(number: int, *, failures: int, size: int) -> str:
    return f"{number:0{NUMBER_DIGITS}d}{failures:d}".ljust(size, "Z")


def read_payload(payload: str) -> tuple[int, int]:
    """Tell the number of a message, and how often it is to fail."""
    return int(payload[:NUMBER_DIGITS]), int(payload[NUMBER_DIGITS])


def succeed(payload: str) -> None:
    if plain.seconds:
        time.sleep(plain.seconds)
    note_success(payload)


def note_success(payload: str) -> None:
    plain.ledger.note_success(int(payload[:NUMBER_DIGITS]), time.monotonic_ns())


def fail_first(payload: str, attempt: int) -> None:
    """Fail as often as the payload says, and then succeed; the first attempt is 1."""
    number, failures = read_payload(payload)
    plain.fail_or_succeed(number, attempt, failures)
