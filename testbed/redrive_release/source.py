"""What a release is made from: one commit, its version, and its date, which every file of the release bears.

Whatever keeps this from being a release is said and nothing is refused: the same command rehearses one at any time.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from redrive_testbed.places import REPOSITORY
from redrive_testbed.shell import run


@dataclass(frozen=True)
class Source:
    """A checkout: its version, commit and the commit's time in seconds, and why it is no release yet."""

    version: str
    commit: str
    epoch: int
    shortcomings: tuple[str, ...]

    @property
    def is_release(self) -> bool:
        return not self.shortcomings


def read(repository: Path = REPOSITORY) -> Source:
    version = str(tomllib.loads((repository / "pyproject.toml").read_text())["project"]["version"])
    return Source(
        version,
        commit=_git(repository, "rev-parse", "HEAD"),
        epoch=int(_git(repository, "log", "-1", "--format=%ct")),
        shortcomings=find_shortcomings(
            version,
            changed=_git(repository, "status", "--porcelain").splitlines(),
            tags=_git(repository, "tag", "--points-at", "HEAD").splitlines(),
            changelog=(repository / "CHANGELOG.md").read_text(),
            chart=yaml.safe_load((repository / "charts/redrive/Chart.yaml").read_text()),
        ),
    )


def find_shortcomings(
    version: str, *, changed: Collection[str], tags: Collection[str], changelog: str, chart: Mapping[str, Any]
) -> tuple[str, ...]:
    """Say what must be done before this is the release of that version."""
    found = []
    if changed:
        found.append(f"commit the {len(changed)} changed files")
    if f"v{version}" not in tags:
        found.append(f"tag the commit v{version}")
    headings = [line.split()[1] for line in changelog.splitlines() if line.startswith("## ")]
    if version not in headings:
        found.append(f"write the section {version} of CHANGELOG.md")
    said = {field: str(chart.get(field)) for field in ("version", "appVersion")}
    wrong = [field for field in said if said[field] != version]
    found += [f"set {field} of charts/redrive/Chart.yaml to {version}: it is {said[field]}" for field in wrong]
    return tuple(found)


def copy(repository: Path, into: Path, *, under: str = ".") -> None:
    """Copy the files that are the project's, as they are now: none that git ignores, and not its history."""
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", under)
    names = _git(repository, *words).split("\0")
    for name in filter(None, names):
        if (repository / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            (into / name).write_bytes((repository / name).read_bytes())


def _git(repository: Path, *words: str) -> str:
    return run("git", "-C", repository, *words).strip()
