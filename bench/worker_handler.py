"""The handlers that every contender runs, written for the worker's bench: they do nothing but say that they ran.

A body begins with the number of its message, and then how often it is to fail. Where to note what, and how long to
take, stands in the environment, because a handler has no other way to be told.
"""

import os
import time
from pathlib import Path
from typing import Any

from bench.worker_ledger import Ledger

LEDGER = "REDRIVE_BENCH_LEDGER"  # the file to note in
SECONDS = "REDRIVE_BENCH_SECONDS"  # how long a handler takes

NUMBER_BYTES = 8


class NotYet(Exception):
    """The failure that was ordered."""


def write_body(number: int, *, failures: int, size: int) -> bytes:
    return (number.to_bytes(NUMBER_BYTES) + failures.to_bytes(1)).ljust(size, b"\x5a")


def succeed(body: bytes) -> None:
    if seconds:
        time.sleep(seconds)
    note_success(body)


def note_success(body: bytes) -> None:
    ledger.note_success(int.from_bytes(body[:NUMBER_BYTES]), time.monotonic_ns())


def fail_first(body: bytes, message: Any) -> None:  # noqa: ANN401 - Redrive's, or what a hand-written one has for it
    """Fail as often as the body says, and then succeed."""
    fail_or_succeed(*read_body(body, message.attempt))


def run(body: bytes, attempt: int) -> None:
    """Do all that a message may ask for, where one handler serves every workload."""
    if seconds:
        time.sleep(seconds)
    fail_or_succeed(*read_body(body, attempt))


def read_body(body: bytes, attempt: int) -> tuple[int, int, int]:
    """Give the number of a message, its attempt, and how often it is to fail."""
    return int.from_bytes(body[:NUMBER_BYTES]), attempt, body[NUMBER_BYTES]


def fail_or_succeed(number: int, attempt: int, failures: int) -> None:
    if attempt <= failures:
        ledger.note_failure(number, time.monotonic_ns())
        raise NotYet(f"attempt {attempt} is to fail")
    ledger.note_attempt(number, attempt)
    ledger.note_success(number, time.monotonic_ns())


seconds = float(os.environ.get(SECONDS, "0"))
if LEDGER in os.environ:
    ledger = Ledger(Path(os.environ[LEDGER]))
