"""How a program is put on a leash, so that it never outlives us: see `leash`.

The leash is a session of its own: what is typed at the terminal reaches us alone, and we say who is to end.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from redrive_cli import leash


def put_on_leash(command: Sequence[str], *, patience: float, folder: Path) -> list[str]:
    """Return the command that runs this one; its standard input must be a pipe that nobody else has."""
    return [sys.executable, "-I", "-S", leash.__file__, str(patience), str(folder), *command]


def describe_end(code: int) -> str:
    """Say how a program on a leash ended, by the exit code of its leash."""
    if code < 0:
        return f"was ended by signal {-code}"
    return f"was ended by signal {code - 128}" if code > 128 else f"ended with exit code {code}"
