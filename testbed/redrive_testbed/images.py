"""The project's images, and how they get from a checkout to a cluster.

Each image carries, as a label, a hash of all it was made of; building again is skipped when the label says that
nothing has changed, so there is no record beside the image that could disagree with it.
"""

import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from redrive_testbed import builders, wheelhouse
from redrive_testbed.archives import import_into_containerd, single_binary_archive
from redrive_testbed.builders import Buildah, Builder, Recipe
from redrive_testbed.errors import Refused
from redrive_testbed.files import alone
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.say import say, step

__all__ = [
    "COMPONENTS",
    "Afresh",
    "Image",
    "archive",
    "build",
    "build_dockerfile",
    "export",
    "export_afresh",
    "import_into_containerd",
    "load",
    "release",
    "single_binary_archive",
]

COMPONENTS = ("operator", "consumer")
INPUTS_LABEL = "redrive.inputs"
# A base, two images, their archives, and the same again while they are being replaced.
ROOM_BYTES = 3 * 10**9
# Longer than any loading takes, shorter than an afternoon of edits needs to fill a disk.
KEEP_SECONDS = 600


@dataclass(frozen=True)
class Image:
    """A built image: its component, the project's version, and the hash of what it was made of."""

    component: str
    version: str
    inputs: str

    @property
    def tags(self) -> tuple[str, str]:
        """Its full names; `redrive/<component>:<tag>` in a pod means the same."""
        name = f"docker.io/redrive/{self.component}"
        return (f"{name}:{self.version}", f"{name}:dev")


@dataclass(frozen=True)
class Afresh:
    """An image to release: of which wheel, as of when, with which labels, and on which base if not on the usual one."""

    component: str
    version: str
    project: Path
    epoch: int
    labels: Mapping[str, str]
    base: str | None = None

    @property
    def name(self) -> str:
        return f"docker.io/redrive/{self.component}:{self.version}"


def build(places: Places) -> list[Image]:
    """Build every image that has changed, and return them all."""
    with _builder(places) as builder:
        return _build_all(builder)


def build_dockerfile(
    places: Places, *, context: Path, dockerfile: Path, tag: str, arguments: Mapping[str, str] | None = None
) -> None:
    """Build any Dockerfile, a user's handler for one, under a full name such as docker.io/examples/hello:dev."""
    with _builder(places) as builder, step(f"building {tag} with {builder.name}"):
        builder.build(Recipe(context, dockerfile, [tag], arguments or {}))


def export(places: Places, tags: Sequence[str], out: Path) -> None:
    """Write one built image, under all its names, as a docker-archive."""
    with _builder(places) as builder:
        _export(builder, tags, out)


def export_afresh(places: Places, wanted: Afresh, out: Path) -> str:
    """Build an image whatever was built before, write it as a docker-archive, and return the base it stands on."""
    dockerfile = REPOSITORY / wanted.component / "Dockerfile"
    with _builder(places) as builder:
        # A base that somebody names is that one or none; nothing stands in for it.
        base = wanted.base or builder.base(wanted_base(dockerfile.read_text()))
        with step(f"collecting the wheels of {wanted.component}"):
            wheelhouse.fill(wanted.component, wheelhouse.requirements(wanted.component), wanted.project)
        with step(f"building {wanted.name} afresh with {builder.name}"):
            arguments = {"BASE": base, "VERSION": wanted.version}
            builder.build(
                Recipe(REPOSITORY, dockerfile, [wanted.name], arguments, wanted.labels, wanted.epoch, afresh=True)
            )
            _export(builder, [wanted.name], out)
            builder.tidy(INPUTS_LABEL)
        return base


def archive(places: Places) -> list[Path]:
    """Build what has changed and return one docker-archive for each image."""
    with _builder(places) as builder:
        return [_archive_one(builder, image, _folder(places) / "archives") for image in _build_all(builder)]


def load(places: Places, into: Callable[[Path], None]) -> None:
    """Build what has changed and give each archive to a cluster."""
    for path in archive(places):
        with step(f"loading {path.name}"):
            into(path)


def release(places: Places) -> None:
    """Unmount and remove what a killed build has left; the images stay."""
    if (_folder(places) / "store").exists():
        with alone(_folder(places) / "build.lock"):
            Buildah(_folder(places)).release()


def inputs_hash(parts: Mapping[str, bytes]) -> str:
    """Make one hash of named inputs, whatever their order; lengths tell "12" and "" from "1" and "2"."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        digest.update(f"{name}:{len(parts[name])}:".encode() + parts[name])
    return digest.hexdigest()


def wanted_base(dockerfile: str) -> str:
    """The base image that a Dockerfile asks for when it is not told another."""
    found = re.search(r"^ARG BASE=(\S+)$", dockerfile, re.MULTILINE)
    if found is None:
        raise ValueError("the Dockerfile has no line ARG BASE=…")
    return found[1]


def _build_all(builder: Builder) -> list[Image]:
    say(f"images are built with {builder.name}")
    project = wheelhouse.project_wheel()
    return [_build_component(builder, component, project) for component in COMPONENTS]


def _build_component(builder: Builder, component: str, project: Path) -> Image:
    dockerfile = REPOSITORY / component / "Dockerfile"
    locked = wheelhouse.requirements(component)
    base = builder.base(wanted_base(dockerfile.read_text()))
    parts = {"dockerfile": dockerfile.read_bytes(), "locked": locked.encode(), "project": project.read_bytes()}
    inputs = inputs_hash(parts | {"base": base.encode()})
    image = Image(component, wheelhouse.version(), inputs)
    if all(builder.label(tag, INPUTS_LABEL) == inputs for tag in image.tags):
        say(f"image {image.tags[0]}: unchanged")
        return image
    with step(f"collecting the wheels of {component}"):
        wheelhouse.fill(component, locked, project)
    with step(f"building {image.tags[0]} with {builder.name}"):
        arguments = {"BASE": base, "VERSION": image.version}
        builder.build(Recipe(REPOSITORY, dockerfile, image.tags, arguments, {INPUTS_LABEL: inputs}))
        builder.tidy(INPUTS_LABEL)
    return image


def _archive_one(builder: Builder, image: Image, folder: Path) -> Path:
    out = folder / f"{image.component}-{image.inputs[:12]}.tar"
    if not out.exists():
        with step(f"writing {out.name}"):
            _export(builder, image.tags, out)
        _forget_older(folder.glob(f"{image.component}-*.tar"))
    return out


def _export(builder: Builder, tags: Sequence[str], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    # A half-written archive must never be seen under its name.
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        partial = Path(folder, out.name)
        builder.save(tags, partial)
        partial.rename(out)


def _forget_older(archives: Iterable[Path]) -> None:
    # A young one may be on its way into the cluster of another checkout.
    for path in archives:
        if path.stat().st_mtime < time.time() - KEEP_SECONDS:
            path.unlink(missing_ok=True)


@contextmanager
def _builder(places: Places) -> Iterator[Builder]:
    """Give the builder of this machine, healed and to ourselves."""
    must_have_room(places.cache, shutil.disk_usage(_existing(places.cache)).free)
    builder = builders.choose(_folder(places))
    with alone(_folder(places) / "build.lock"):
        builder.release()
        yield builder


def _folder(places: Places) -> Path:
    return places.cache / "images"


def must_have_room(folder: Path, free: int) -> None:
    if free < ROOM_BYTES:
        raise Refused(
            f"make room on the disk of {folder}: building images needs {ROOM_BYTES / 1e9:.0f} GB, "
            f"{free / 1e9:.1f} GB are free"
        )


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())
