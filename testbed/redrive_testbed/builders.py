"""The two programs that build an image from a Dockerfile: docker where an engine answers, else buildah.

buildah keeps its images in a store of its own in the cache folder, never in the machine's. Where no registry answers
it has no base to start from; it then makes one from Debian packages, with a Python of the same minor version.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from redrive_testbed import debian
from redrive_testbed.errors import Refused
from redrive_testbed.machine import docker_answers
from redrive_testbed.say import step
from redrive_testbed.shell import run, succeeds

# A date inside images must not tell two builds of the same files apart; this one is what hatchling gives to wheels.
EPOCH = 1580601600
SUITE = "bookworm"
PACKAGES = ("ca-certificates", "python3", "tzdata")
# What no program in a container reads, and what debootstrap copied from this machine; `*` keeps the folder itself.
# Of the documentation the files named copyright stay: who passes an image on has to pass them on.
LEFT_OUT = (
    *(
        "usr/share/doc/*/[!c]*",
        "usr/share/doc/*/c[!o]*",
        "usr/share/info/*",
        "usr/share/lintian/*",
        "usr/share/locale/*",
        "usr/share/man/*",
    ),
    *("var/cache/*/*", "var/lib/apt/lists/*", "var/log/*", "usr/sbin/policy-rc.d", "etc/apt/apt.conf.d/99testbed"),
    *("etc/apt/sources.list", "etc/hostname", "etc/resolv.conf", "dev/*", "proc/*", "run/*", "tmp/*"),
)


@dataclass(frozen=True)
class Recipe:
    """One image to build: where from, under which names, with which arguments and labels, as of when."""

    context: Path
    dockerfile: Path
    tags: Sequence[str]
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    epoch: int = EPOCH
    afresh: bool = False

    def flags(self) -> list[str | Path]:
        """The words after `build`, which docker and buildah spell alike."""
        words: list[str | Path] = ["--file", self.dockerfile]
        for flag, values in (
            ("--tag", self.tags),
            ("--build-arg", [f"{name}={value}" for name, value in self.arguments.items()]),
            ("--label", [f"{name}={value}" for name, value in self.labels.items()]),
        ):
            words += [word for value in values for word in (flag, value)]
        return [*words, *(["--no-cache"] if self.afresh else []), self.context]


class Builder(Protocol):
    """A program that builds, labels and saves images."""

    @property
    def name(self) -> str: ...

    def base(self, wanted: str) -> str:
        """Return the base image to build on: the wanted one, or what stands in for it here."""

    def build(self, recipe: Recipe) -> None: ...

    def label(self, image: str, key: str) -> str | None:
        """Return a label of an image; None when there is no such image."""

    def save(self, tags: Sequence[str], out: Path) -> None:
        """Write one image, under all its names, as a docker-archive."""

    def tidy(self, label: str) -> None:
        """Remove images with that label that have lost their names to newer ones."""

    def release(self) -> None:
        """Unmount and remove what a killed build has left; only for who is alone with the builder."""


class Docker:
    """The engine of the person's machine; its other images are none of our business."""

    name = "docker"

    def base(self, wanted: str) -> str:
        return wanted

    def build(self, recipe: Recipe) -> None:
        run("docker", "build", *recipe.flags(), env={"SOURCE_DATE_EPOCH": str(recipe.epoch)}, timeout=1800)

    def label(self, image: str, key: str) -> str | None:
        template = f'{{{{index .Config.Labels "{key}"}}}}'
        if not succeeds("docker", "image", "inspect", image):
            return None
        return run("docker", "image", "inspect", "--format", template, image).strip()

    def save(self, tags: Sequence[str], out: Path) -> None:
        run("docker", "save", "--output", out, *tags)

    def tidy(self, label: str) -> None:
        run("docker", "image", "prune", "--force", "--filter", f"label={label}")

    def release(self) -> None:
        """Leave it to the engine, which outlives a killed client."""


class Buildah:
    """Debian's buildah, as root, with a store below `folder`."""

    name = "buildah"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._command = (
            *("buildah", "--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "overlay"),
            # Otherwise the store stays mounted on itself after each call.
            *("--storage-opt", "overlay.skip_mount_home=true"),
        )

    def base(self, wanted: str) -> str:
        local = f"localhost/redrive-base:{SUITE}-{_base_key()}"
        if self._has(local):
            return local
        if self._has(wanted) or succeeds(*self._command, "pull", wanted, timeout=300):
            return wanted
        self._make_base(local)
        return local

    def build(self, recipe: Recipe) -> None:
        run(
            # The docker format would write a random container id into each image.
            *(*self._command, "build", "--isolation", "chroot", "--format", "oci", "--pull=false"),
            *("--timestamp", str(recipe.epoch), *recipe.flags()),
            timeout=1800,
        )

    def label(self, image: str, key: str) -> str | None:
        template = f'{{{{index .OCIv1.Config.Labels "{key}"}}}}'
        if not self._has(image):
            return None
        return run(*self._command, "inspect", "--type", "image", "--format", template, image).strip()

    def save(self, tags: Sequence[str], out: Path) -> None:
        # buildah writes two names at most: that of the source and that of the destination.
        run(*self._command, "push", "--quiet", tags[-1], f"docker-archive:{out}:{tags[0]}")

    def tidy(self, label: str) -> None:
        # The store holds nothing but our own images, so the label need not be asked for.
        del label
        run(*self._command, "rmi", "--prune", "--force")

    def release(self) -> None:
        run(*self._command, "rm", "--all")

    def _has(self, image: str) -> bool:
        return succeeds(*self._command, "inspect", "--type", "image", image)

    def _make_base(self, tag: str) -> None:
        # It stays: another checkout may be reading it, and a lost store is filled from it in seconds.
        root = self._folder / "-".join(("root", SUITE, *PACKAGES))
        debian.bootstrap(SUITE, root, packages=PACKAGES)
        with step("making the base image"), tempfile.TemporaryDirectory(dir=self._folder) as context:
            excluded = [f"--exclude=./{path}" for path in LEFT_OUT]
            run("tar", "--create", "--file", f"{context}/root.tar", "--directory", root, "--sort=name", *excluded, ".")
            dockerfile = Path(context, "Dockerfile")
            dockerfile.write_text("FROM scratch\nADD root.tar /\n")
            self.build(Recipe(Path(context), dockerfile, [tag]))


def choose(folder: Path) -> Builder:
    """Pick the builder of this machine; `folder` is where buildah may keep its store."""
    name = pick(docker=docker_answers(), buildah=_present("buildah"), apt=_present("apt-get"), root=os.geteuid() == 0)
    if name == "docker":
        return Docker()
    debian.install(["buildah"])
    return Buildah(folder)


def pick(*, docker: bool, buildah: bool, apt: bool, root: bool) -> Literal["docker", "buildah"]:
    """Decide from what the machine has, or refuse with what it lacks."""
    if docker:
        return "docker"
    if not buildah and not apt:
        raise Refused("start a Docker engine or install buildah: images cannot be built without one of them")
    if not root:
        raise Refused("start a Docker engine or run this command with sudo: without Docker, building images needs root")
    return "buildah"


def _base_key() -> str:
    return hashlib.sha256(repr((SUITE, PACKAGES, LEFT_OUT)).encode()).hexdigest()[:12]


def _present(program: str) -> bool:
    return shutil.which(program) is not None
