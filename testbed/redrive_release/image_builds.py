"""The two images, each built twice from nothing, and kept if a container could not tell the two apart.

buildah gives the same bytes. docker stamps files with the time of the build unless it is told otherwise, so there the
layers' hashes differ while what is in them does not; what was compared, and how far it agreed, is in the record.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redrive_release.comparing import tell
from redrive_release.errors import NotTheSame
from redrive_release.image_archive import ImageArchive, compare
from redrive_release.source import Source
from redrive_testbed import images
from redrive_testbed.images import Afresh
from redrive_testbed.places import REPOSITORY, Places


@dataclass(frozen=True)
class BuiltImage:
    """An image of the release, on which base it stands, and whether its second build had the same bytes."""

    component: str
    archive: ImageArchive
    base: str
    same_bytes: bool

    def record(self) -> Mapping[str, Any]:
        """What somebody who builds it again compares with."""
        return {
            "names": self.archive.names,
            "config": self.archive.config_digest,
            "layers": self.archive.layers(),
            "base": self.base,
            "two builds": "same bytes" if self.same_bytes else "same files, other times",
        }


def build(made_from: Source, wheel: Path, places: Places, out: Path, *, base: str | None = None) -> list[BuiltImage]:
    """Build every image twice; raises NotTheSame with the files that differ."""
    return [_build_twice(_wanted(component, made_from, wheel, base), places, out) for component in images.COMPONENTS]


def find_shortcomings(built: BuiltImage) -> list[str]:
    """Say why an image must not be published."""
    wanted = images.wanted_base((REPOSITORY / built.component / "Dockerfile").read_text())
    if built.base.startswith("localhost/"):
        return [f"build the {built.component}'s image where {wanted} can be pulled: it stands on a stand-in"]
    if "@sha256:" not in built.base:
        return [f"name the base of the {built.component}'s image by its digest, BASE={wanted}@sha256:…: a tag can move"]
    return []


def _build_twice(wanted: Afresh, places: Places, out: Path) -> BuiltImage:
    out.mkdir(parents=True, exist_ok=True)
    kept = out / f"redrive-{wanted.component}-{wanted.version}.tar"
    with tempfile.TemporaryDirectory(dir=out) as folder:
        first, second = (Path(folder, f"{name}.tar") for name in ("first", "second"))
        base = images.export_afresh(places, wanted, first)
        images.export_afresh(places, wanted, second)
        one, other = ImageArchive(first), ImageArchive(second)
        found = compare(one, other)
        if found:
            raise NotTheSame(tell(wanted.name, found))
        same_bytes = one.config_digest == other.config_digest
        first.rename(kept)
    return BuiltImage(wanted.component, ImageArchive(kept), base, same_bytes)


def _wanted(component: str, made_from: Source, wheel: Path, base: str | None) -> Afresh:
    labels = {"org.opencontainers.image.revision": made_from.commit}
    return Afresh(component, made_from.version, wheel, made_from.epoch, labels, base)
