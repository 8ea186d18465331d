"""Whether anything is known against the locked dependencies, by pip-audit: the product's, and those of its tools.

pip-audit asks PyPI's service for advisories, which a mirror of packages does not have; it then calls what it could not
ask about "skipped", and ends well. Here that is a failure: not to know is not to be safe.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redrive_release import advisory_service
from redrive_release.advisories import Advisories
from redrive_release.errors import NotAudited, Vulnerable
from redrive_testbed.errors import CommandFailed
from redrive_testbed.places import REPOSITORY
from redrive_testbed.say import say
from redrive_testbed.shell import run, tail
from redrive_testbed.wheelhouse import PIP, PIP_SHA256, uv

# Advisories that do not matter here, each with the reason.
ACCEPTED: Mapping[str, str] = {}
_WITHOUT_SERVICE = (
    "nothing is known: no service with advisories answered for every package. "
    "Run this where PyPI itself can be asked, or with a copy of github.com/pypa/advisory-database: "
    "make audit ADVISORIES=folder"
)


@dataclass(frozen=True)
class Finding:
    """A fault of a locked version."""

    package: str
    version: str
    advisory: str
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        remedy = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "not fixed in any version"
        return f"{self.package} {self.version}: {self.advisory}, {remedy}"


def audit(advisories: Path | None = None) -> None:
    """Ask about every locked version; raises Vulnerable or NotAudited."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(locked())
        copy = Advisories.in_folder(advisories) if advisories else None
        report = ask(requirements, copy)
    found = findings(report)
    if found:
        raise Vulnerable("\n  ".join(["known faults:", *map(str, found)]))
    age = "" if copy is None else f", as of {copy.newest()}, the newest advisory in {copy.folder}"
    say(f"nothing is known against {len(report['dependencies'])} packages{age}")


def locked() -> str:
    """Every locked version with its hashes, of all extras and groups, and the pip that builds the images."""
    words = ("export", "--quiet", "--frozen", "--all-extras", "--all-groups", "--no-emit-project", "--no-header")
    exported = run(uv(), *words, "--no-annotate", cwd=REPOSITORY)
    ours = f"pip=={PIP} --hash=sha256:{PIP_SHA256}\n"
    return exported if f"\npip=={PIP} " in f"\n{exported}" else exported + ours


def ask(requirements: Path, advisories: Advisories | None) -> dict[str, Any]:
    """Have pip-audit look up each requirement, and return its report."""
    with nullcontext() if advisories is None else advisory_service.serve(advisories) as address:
        service = () if address is None else ("--vulnerability-service", "osv", "--osv-url", address)
        words = ("--requirement", requirements, "--require-hashes", "--disable-pip", "--strict", *service)
        report = requirements.with_name("report.json")
        accepted = [word for advisory in ACCEPTED for word in ("--ignore-vuln", advisory)]
        shape = ("--format", "json", "--output", report, "--progress-spinner", "off")
        try:
            run(Path(sys.executable).parent / "pip-audit", *words, *accepted, *shape)
        except CommandFailed as error:
            # It ends with 1 when it found something, and when it could not look; only a report tells the two apart.
            if not report.exists():
                raise NotAudited(f"{_WITHOUT_SERVICE}\n{tail(str(error), lines=1)}") from error
        return dict(json.loads(report.read_text()))


def findings(report: Mapping[str, Any]) -> list[Finding]:
    return [
        Finding(each["name"], each["version"], fault["id"], tuple(fault["fix_versions"]))
        for each in report["dependencies"]
        for fault in each["vulns"]
    ]
