"""Two folders of the same release, made on two machines: whether who trusts the one may trust the other."""

from dataclasses import dataclass
from pathlib import Path

from redrive_release import comparing
from redrive_release.errors import NotTheSame
from redrive_release.image_archive import ImageArchive, compare
from redrive_testbed.say import say

# These follow from the others: what is told of a checksum is told of its file.
_DERIVED = ("SHA256SUMS", "release.json")


@dataclass(frozen=True)
class Comparison:
    """A file of both folders: the same to the byte, the same to a container, or in which files it differs."""

    name: str
    same_bytes: bool
    differences: tuple[str, ...]

    def __str__(self) -> str:
        if self.same_bytes:
            return f"{self.name}: same bytes"
        if not self.differences:
            return f"{self.name}: same files, other times"
        return comparing.tell(self.name, list(self.differences))


def must_be_alike(one: Path, other: Path) -> None:
    """Say of each file how far two folders agree; raises NotTheSame with the files that differ."""
    compared = compare_folders(one, other)
    for each in compared:
        if not each.differences:
            say(str(each))
    differing = [str(each) for each in compared if each.differences]
    if differing:
        raise NotTheSame("\n".join(differing))


def compare_folders(one: Path, other: Path) -> list[Comparison]:
    names = {path.name for folder in (one, other) for path in folder.iterdir()} - {*_DERIVED}
    return [_compare_file(one / name, other / name) for name in sorted(names)]


def _compare_file(one: Path, other: Path) -> Comparison:
    missing = [path.parent for path in (one, other) if not path.exists()]
    if missing:
        return Comparison(one.name, same_bytes=False, differences=(f"not in {missing[0]}",))
    if one.read_bytes() == other.read_bytes():
        return Comparison(one.name, same_bytes=True, differences=())
    return Comparison(one.name, same_bytes=False, differences=tuple(_differences(one, other)))


def _differences(one: Path, other: Path) -> list[str]:
    if one.suffix == ".tar":
        return compare(ImageArchive(one), ImageArchive(other))
    if one.suffix in (".whl", ".gz", ".tgz"):
        return comparing.differences(comparing.entries(one), comparing.entries(other))
    return ["the text differs"]
