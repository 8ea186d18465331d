"""What the test bed tells the person watching: one timestamped line a step, on stderr, so that stdout stays data."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    stamp = time.strftime("%H:%M:%S")
    print(f"{stamp} {text}", file=sys.stderr, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a step, and how long it took once it is over."""
    say(f"{text} ...")
    began = time.monotonic()
    yield
    say(f"{text}: done in {time.monotonic() - began:.1f} s")
