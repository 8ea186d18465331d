"""Whether two builds are alike, and if not, in which files: for a person who has to find out why.

Alike to the byte is best. Where a builder stamps files with the time of the build, alike is what a container sees: the
same names, kinds, modes, owners and contents.
"""

import hashlib
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from redrive_release.errors import NotTheSame

# More than this nobody reads.
SHOWN = 20


@dataclass(frozen=True)
class Entry:
    """A file in an archive, as it is seen once unpacked; its time is left out."""

    kind: str
    mode: int
    owner: tuple[int, int] = (0, 0)
    link: str = ""
    content: str = ""


def differences(one: Mapping[str, Entry], other: Mapping[str, Entry]) -> list[str]:
    """Say of each name in which of two archives it is, or what of it differs."""
    found = []
    for name in sorted({*one, *other}):
        match one.get(name), other.get(name):
            case None, _:
                found.append(f"{name}: only in the second")
            case _, None:
                found.append(f"{name}: only in the first")
            case first, second if first != second:
                fields = [field for field in Entry.__annotations__ if getattr(first, field) != getattr(second, field)]
                found.append(f"{name}: other {' and '.join(fields)}")
    return found


def must_be_the_same(one: Path, other: Path) -> None:
    """Refuse two archives that differ in a single byte, and name the files that differ."""
    if one.read_bytes() == other.read_bytes():
        return
    found = differences(entries(one), entries(other)) or ["only times, order or compression differ"]
    raise NotTheSame(tell(one.name, found))


def tell(name: str, found: list[str]) -> str:
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "\n  ".join([f"two builds of {name} are not the same:", *found[:SHOWN], *more])


def entries(path: Path) -> dict[str, Entry]:
    """List what is in a wheel, a source distribution or a chart."""
    if path.suffix == ".whl":
        return _zip_entries(path)
    with path.open("rb") as file:
        return tar_entries(file)


def tar_entries(file: IO[bytes]) -> dict[str, Entry]:
    with tarfile.open(fileobj=file) as tar:
        return {member.name: _tar_entry(tar, member) for member in tar}


def _tar_entry(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    file = tar.extractfile(member) if member.isreg() else None
    content = "" if file is None else hashlib.sha256(file.read()).hexdigest()
    return Entry(member.type.decode(), member.mode, (member.uid, member.gid), member.linkname, content)


def _zip_entries(path: Path) -> dict[str, Entry]:
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: Entry("0", info.external_attr >> 16, content=hashlib.sha256(archive.read(info)).hexdigest())
            for info in archive.infolist()
        }
