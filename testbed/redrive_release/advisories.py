"""Advisories on Python packages in a folder, and which of them speak of a version.

The folder is a copy of PyPA's advisory database (github.com/pypa/advisory-database): files of the OSV format, by
package. It is for machines that cannot ask a service, and is as old as it is: whoever copied it knows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from redrive_release.errors import NotAudited

# What pip-audit reads of an advisory; times are left out, because YAML and JSON write them differently.
_FIELDS = ("id", "aliases", "summary", "details", "affected", "withdrawn")


@dataclass(frozen=True)
class Advisories:
    """A copy of the database."""

    folder: Path

    @classmethod
    def in_folder(cls, folder: Path) -> "Advisories":
        if not any((folder / "vulns").glob("*/*.yaml")):
            raise NotAudited(f"{folder} is no copy of github.com/pypa/advisory-database: it has no vulns/*/*.yaml")
        return cls(folder)

    def newest(self) -> str:
        """The id of the newest advisory, which says how old the copy is: PYSEC-2026-31."""
        names = (file.stem for file in self.folder.glob("vulns/*/PYSEC-*-*.yaml"))
        return max(
            names, key=lambda name: [int(part) for part in name.split("-")[1:] if part.isdigit()], default="none"
        )

    def about(self, name: str, version: str) -> list[dict[str, Any]]:
        """Read the advisories that speak of a version of a package."""
        files = sorted((self.folder / "vulns" / canonicalize_name(name)).glob("*.yaml"))
        read = (yaml.safe_load(file.read_text()) for file in files)
        return [_shortened(advisory) for advisory in read if speaks_of(advisory, name, version)]


def speaks_of(advisory: Mapping[str, Any], name: str, version: str) -> bool:
    """Say whether an advisory names a version, or a range that it is in."""
    return any(
        _is_package(affected["package"], name)
        and (version in affected.get("versions", ()) or _in_ranges(affected.get("ranges", ()), version))
        for affected in advisory.get("affected", ())
    )


def _is_package(package: Mapping[str, str], name: str) -> bool:
    return package["ecosystem"] == "PyPI" and canonicalize_name(package["name"]) == canonicalize_name(name)


def _in_ranges(ranges: Iterable[Mapping[str, Any]], version: str) -> bool:
    return any(_in_range(each["events"], Version(version)) for each in ranges if each["type"] == "ECOSYSTEM")


def _in_range(events: Iterable[Mapping[str, str]], version: Version) -> bool:
    """Go through what happened up to a version: it is affected if a fault came in and has not gone since."""
    affected = False
    for what, when in sorted(_happenings(events), key=lambda happening: (happening[1], happening[0] == "introduced")):
        if what == "last_affected":
            affected = affected and version <= when
        elif version >= when:
            affected = what == "introduced"
    return affected


def _happenings(events: Iterable[Mapping[str, str]]) -> list[tuple[str, Version]]:
    found = []
    for event in events:
        for what, when in event.items():
            if what in ("introduced", "fixed", "last_affected"):
                try:
                    found.append((what, Version(str(when))))
                except InvalidVersion:
                    # A fault whose beginning or end cannot be read counts from the first version, and has no end.
                    found += [("introduced", Version("0"))] if what == "introduced" else []
    return found


def _shortened(advisory: Mapping[str, Any]) -> dict[str, Any]:
    return {
        field: str(value) if field == "withdrawn" else value for field, value in advisory.items() if field in _FIELDS
    }
