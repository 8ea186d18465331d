"""The file that a run goes into, and comes back from."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_run(path: Path, **kinds: Callable[..., object]) -> dict[str, Any]:
    """Read what a run has found: its fields by name, with a value of its kind for each row of those that have rows.

    An older file has no rows of what was not measured then.
    """
    raw: dict[str, Any] = json.loads(path.read_text())
    return {**raw, **{name: [kind(**row) for row in raw.get(name, [])] for name, kind in kinds.items()}}
