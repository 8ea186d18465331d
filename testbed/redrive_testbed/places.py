"""Where the test bed keeps things.

Two folders, because they end at different times: `state` lives as long as a running cluster or broker and is removed
by `down`; `cache` holds what took minutes to build, keyed by version, and survives so that a fresh clone need not
build again. `REDRIVE_TESTBED_STATE` and `REDRIVE_TESTBED_CACHE` move them.
"""

import os
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Places:
    """The two folders."""

    state: Path
    cache: Path

    @classmethod
    def from_environment(cls) -> "Places":
        home_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(
            # Short on purpose: Unix sockets below it must fit in 107 bytes.
            state=Path(os.environ.get("REDRIVE_TESTBED_STATE") or "/var/lib/redrive-testbed"),
            cache=Path(os.environ.get("REDRIVE_TESTBED_CACHE") or home_cache / "redrive-testbed"),
        )
