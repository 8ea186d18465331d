"""The source distribution and the wheel, built twice and kept if every byte is the same.

The second build is made as on somebody else's machine: in another folder, with another mask for new files, another
time zone, another language and another order of sets. The wheel is built from the source distribution, so that who
has the one can make the other.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from redrive_release import source
from redrive_release.comparing import must_be_the_same
from redrive_release.source import Source
from redrive_testbed.places import REPOSITORY
from redrive_testbed.shell import run
from redrive_testbed.wheelhouse import uv

HERE: Mapping[str, str] = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1"}
ELSEWHERE: Mapping[str, str] = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "2"}


@dataclass(frozen=True)
class Distributions:
    """What is published on a package index."""

    sdist: Path
    wheel: Path


def build(made_from: Source, out: Path, *, repository: Path = REPOSITORY) -> Distributions:
    """Build both twice; raises NotTheSame with the files that differ."""
    with tempfile.TemporaryDirectory() as folder:
        first = _build_once(repository, Path(folder, "a"), 0o022, HERE, made_from.epoch)
        second = _build_once(repository, Path(folder, "elsewhere", "b"), 0o077, ELSEWHERE, made_from.epoch)
        must_be_the_same(first.sdist, second.sdist)
        must_be_the_same(first.wheel, second.wheel)
        out.mkdir(parents=True, exist_ok=True)
        return Distributions(*(Path(shutil.copy(path, out)) for path in (first.sdist, first.wheel)))


def _build_once(
    repository: Path, folder: Path, mask: int, surroundings: Mapping[str, str], epoch: int
) -> Distributions:
    folder.mkdir(parents=True)
    before = os.umask(mask)
    try:
        source.copy(repository, folder / "source")
        told = {**surroundings, "SOURCE_DATE_EPOCH": str(epoch)}
        run(uv(), "build", "--quiet", "--out-dir", folder / "dist", cwd=folder / "source", env=told)
    finally:
        os.umask(before)
    return Distributions(next((folder / "dist").glob("*.tar.gz")), next((folder / "dist").glob("*.whl")))
