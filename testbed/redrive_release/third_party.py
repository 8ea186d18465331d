"""THIRD-PARTY.md: everything of others that a release carries or asks for, and under which licence."""

from collections.abc import Mapping
from dataclasses import dataclass

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType

from redrive_release.licences import declared

_INTRODUCTION = """\
# What Redrive {version} is made of

Redrive is under the Apache License 2.0. This is what it brings along from others, and under which licences, as their
authors declare them. The bills of materials (`*.cdx.json`) say the same to programs.

Where a package names several licences, they hold for parts of it. Their texts are in the images, as their authors ship
them: of Python packages in the folder `*.dist-info` of each, of Debian packages in
`/usr/share/doc/<package>/copyright`. The sources of a Debian package, by the name and the version below, are kept on
<https://snapshot.debian.org>.
"""
_UNKNOWN = "see its copyright file"


@dataclass(frozen=True)
class _Row:
    name: str
    version: str
    licence: str
    where: str


def render(version: str, boms: Mapping[str, Bom]) -> str:
    """Write the list from the bills, each under the name of what it is a bill of."""
    sections = [_INTRODUCTION.format(version=version)]
    for title, kind in (("Python packages", "pypi"), ("Debian packages", "deb"), ("Other programs", "generic")):
        rows = _rows(kind, boms)
        if rows:
            lines = ["| name | version | licence | in |", "|---|---|---|---|"]
            lines += [f"| {row.name} | {row.version} | {row.licence} | {row.where} |" for row in rows]
            sections.append("\n".join([f"## {title}\n", *lines, ""]))
    return "\n".join(sections)


def _rows(kind: str, boms: Mapping[str, Bom]) -> list[_Row]:
    where: dict[tuple[str, str, str], list[str]] = {}
    for title, bom in boms.items():
        for component in bom.components:
            if _is(kind, component):
                licence = "; ".join(declared(component)).replace("|", "/") or _UNKNOWN
                where.setdefault((component.name, component.version or "", licence), []).append(title)
    return [_Row(*key, ", ".join(sorted(titles))) for key, titles in sorted(where.items(), key=_by_name)]


def _is(kind: str, component: Component) -> bool:
    ours = component.name == "redrive"
    return (
        component.type == ComponentType.LIBRARY
        and component.purl is not None
        and component.purl.type == kind
        and not ours
    )


def _by_name(item: tuple[tuple[str, str, str], list[str]]) -> tuple[str, str]:
    (name, version, _), _ = item
    return (name.lower(), version)
