"""Files that are there whole or not at all, and locks: what two commands at once, or a killed one, must not break."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a file beside its place, with its mode from the first byte on, and rename it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Wait until nobody else holds this lock; the kernel frees it even when its holder is killed."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
