"""Making a release: everything that is published, in one folder, with what somebody needs to check it.

The folder is there whole or not at all. Nothing is published from here: that takes a person, and keys.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from cyclonedx.model.bom import Bom

from redrive_release import chart_package, distributions, image_builds, licences, sboms, source, third_party
from redrive_release.errors import NotAllowed
from redrive_release.image_builds import BuiltImage
from redrive_release.source import Source
from redrive_testbed.places import Places
from redrive_testbed.say import say, step


def make(places: Places, out: Path, *, base: str | None = None) -> None:
    """Build everything twice, compare, list what is in it, and put it into a folder in place of what was there."""
    made_from = source.read()
    unfinished = out.with_name(f"{out.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        built = _fill(unfinished, made_from, places, base)
        shutil.rmtree(out, ignore_errors=True)
        unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    _conclude(
        out, [*made_from.shortcomings, *(lack for image in built for lack in image_builds.find_shortcomings(image))]
    )


def checksums(paths: Iterable[Path]) -> str:
    """Write what `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(paths))


def must_be_allowed(boms: Mapping[str, Bom]) -> None:
    found = sorted({sentence for bom in boms.values() for sentence in licences.refused(bom)})
    if found:
        raise NotAllowed("\n  ".join(["licences to be read by somebody first:", *found]))


def _fill(out: Path, made_from: Source, places: Places, base: str | None) -> list[BuiltImage]:
    with step("building the source distribution and the wheel, twice"):
        packages = distributions.build(made_from, out)
    with step("listing what the wheel needs"):
        boms = {"wheel": sboms.of_wheel(made_from, packages.wheel)}
        must_be_allowed(boms)
    with step("packing the chart, twice"):
        chart_package.build(made_from, places, out)
    built = image_builds.build(made_from, packages.wheel, places, out, base=base)
    with step("listing what is in the images"):
        boms |= {f"{image.component} image": sboms.of_image(made_from, image) for image in built}
        must_be_allowed(boms)
    _describe(out, made_from, built, boms)
    return built


def _describe(out: Path, made_from: Source, built: Iterable[BuiltImage], boms: Mapping[str, Bom]) -> None:
    for title, bom in boms.items():
        sboms.write(bom, out / f"redrive-{title.replace(' ', '-')}-{made_from.version}.cdx.json")
    (out / "THIRD-PARTY.md").write_text(third_party.render(made_from.version, boms))
    record = {
        "version": made_from.version,
        "commit": made_from.commit,
        "epoch": made_from.epoch,
        "images": {image.component: image.record() for image in built},
    }
    (out / "release.json").write_text(f"{json.dumps(record, indent=2)}\n")
    (out / "SHA256SUMS").write_text(checksums(out.iterdir()))


def _conclude(out: Path, shortcomings: Iterable[str]) -> None:
    say(f"made {', '.join(sorted(path.name for path in out.iterdir()))} in {out}")
    lacks = list(shortcomings)
    if lacks:
        say("\n  ".join(["a rehearsal, not to be published; before a release:", *lacks]))
