"""The Debian packages of an image: which, of which version, and the licences that their copyright files name.

Debian has a format for copyright files that programs can read, and most packages use it. Of the others nothing is said
rather than something wrong. Either way the file itself is in the image, and it is what counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# dpkg's list, or, where each package has a file of its own (distroless), the folder of them.
_STATUS, _STATUS_FOLDER = Path("var/lib/dpkg/status"), Path("var/lib/dpkg/status.d")
_DOCUMENTATION = Path("usr/share/doc")
# A folder may be a link to that of another package, and so may a file.
_WANTED = re.compile(
    r"var/lib/dpkg/status(\.d/[^/]+)?|etc/os-release|usr/lib/os-release|usr/share/doc/[^/]+(/copyright)?"
)


@dataclass(frozen=True)
class DebianPackage:
    """An installed package."""

    name: str
    version: str
    architecture: str
    source: str
    licences: tuple[str, ...]


@dataclass(frozen=True)
class Release:
    """The release of Debian that an image says it is."""

    id: str
    version: str
    title: str


def is_wanted(path: str) -> bool:
    """Say whether a file of an image tells something of its packages."""
    return _WANTED.fullmatch(path) is not None


def read(root: Path) -> list[DebianPackage]:
    """Read the packages of a root file system, sorted by name; none where it has no dpkg."""
    files = [root / _STATUS, *sorted((root / _STATUS_FOLDER).glob("*[!s]"))]
    texts = [file.read_text() for file in files if file.is_file()]
    found = [_package(root, stanza) for text in texts for stanza in _stanzas(text)]
    return sorted((package for package in found if package), key=lambda package: package.name)


def read_release(root: Path) -> Release | None:
    for place in ("etc/os-release", "usr/lib/os-release"):
        if (root / place).is_file():
            pairs = (line.partition("=") for line in (root / place).read_text().splitlines())
            told = {name: value.strip('"') for name, _, value in pairs}
            return Release(told.get("ID", "linux"), told.get("VERSION_ID", ""), told.get("PRETTY_NAME", ""))
    return None


def name_licences(copyright_file: str) -> tuple[str, ...]:
    """Name the licences of a copyright file, sorted; none if only a person can read it."""
    if not re.search(r"^Format:.*copyright-format", copyright_file, re.MULTILINE):
        return ()
    named = re.findall(r"^License:[ \t]*(\S.*?)[ \t]*$", copyright_file, re.MULTILINE | re.IGNORECASE)
    return tuple(sorted(set(named)))


def _package(root: Path, fields: dict[str, str]) -> DebianPackage | None:
    # A file of status.d has no Status: that it is there says enough.
    if not fields.get("Status", "install ok installed").endswith(" installed"):
        return None
    name = fields["Package"]
    file = root / _DOCUMENTATION / name / "copyright"
    licences = name_licences(file.read_text(errors="replace")) if file.is_file() else ()
    source = fields.get("Source", name).split()[0]
    return DebianPackage(name, fields["Version"], fields["Architecture"], source, licences)


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    for stanza in re.split(r"\n\s*\n", text.strip()):
        # Lines that go on begin with a space; none of the fields we read has any.
        lines = (line.partition(":") for line in stanza.splitlines() if not line[:1].isspace())
        fields = {name: value.strip() for name, _, value in lines}
        if "Package" in fields:
            yield fields
