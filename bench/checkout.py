"""Which commit is measured, as a fact of the run: figures without it cannot be taken again."""

import subprocess
from pathlib import Path

from redrive_testbed.places import REPOSITORY

# What nobody runs. A bench writes its tables there, and the next of the same morning measures the same all the same.
PAGES = ":(exclude)docs"


def describe_commit(folder: Path = REPOSITORY) -> str:
    """Name the commit, `-dirty` where something was changed since; "" where there is no checkout, or no git."""
    try:
        if Path(_git(folder, "rev-parse", "--show-toplevel")).resolve() != folder.resolve():
            return ""  # some other repository that this lies in
        commit = _git(folder, "rev-parse", "--short", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".", PAGES)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}-dirty" if changed else commit


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
