"""An image in a docker-archive, read without an engine: its configuration, its layers, and what a container sees."""

import json
import shutil
import tarfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from redrive_release.comparing import Entry, differences, tar_entries

# What an image's configuration says of when it was built, and of its layers, which are compared by what is in them.
_OF_THE_BUILD = ("created", "history", "rootfs")
_WHITEOUT = ".wh."


@dataclass(frozen=True)
class ImageArchive:
    """An image in a file."""

    path: Path

    @property
    def config(self) -> dict[str, Any]:
        with tarfile.open(self.path) as tar:
            return dict(_json(tar, _manifest(tar)["Config"]))

    @property
    def config_digest(self) -> str:
        """The image's own name: the hash of its configuration, which names the hash of every layer."""
        with tarfile.open(self.path) as tar:
            name = PurePosixPath(_manifest(tar)["Config"]).name.removesuffix(".json")
        return f"sha256:{name}"

    @property
    def names(self) -> list[str]:
        with tarfile.open(self.path) as tar:
            return sorted(set(_manifest(tar)["RepoTags"]))

    def layers(self) -> list[str]:
        """The hash of each layer's files, the lowest first."""
        return [str(digest) for digest in self.config["rootfs"]["diff_ids"]]

    def layer_entries(self, index: int) -> dict[str, Entry]:
        with tarfile.open(self.path) as tar, _open(tar, _manifest(tar)["Layers"][index]) as layer:
            return tar_entries(layer)

    def extract(self, wanted: Callable[[str], bool], into: Path) -> None:
        """Write the wanted files, and links among them, below a folder; what a later layer removes is not there."""
        with tarfile.open(self.path) as tar:
            for name in _manifest(tar)["Layers"]:
                with _open(tar, name) as layer:
                    _extract_layer(layer, wanted, into)


def compare(one: ImageArchive, other: ImageArchive) -> list[str]:
    """Say in what a container of the one would differ from a container of the other."""
    first, second = (_lasting(image.config) for image in (one, other))
    found = [
        f"{key} of the configuration differs" for key in sorted({*first, *second}) if first.get(key) != second.get(key)
    ]
    if len(one.layers()) != len(other.layers()):
        return [*found, f"{len(one.layers())} layers in the first, {len(other.layers())} in the second"]
    for index, (left, right) in enumerate(zip(one.layers(), other.layers(), strict=True)):
        if left != right:
            found += differences(one.layer_entries(index), other.layer_entries(index))
    return found


def _lasting(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _OF_THE_BUILD}


def _extract_layer(layer: IO[bytes], wanted: Callable[[str], bool], into: Path) -> None:
    with tarfile.open(fileobj=layer) as files:
        for member in files:
            path = PurePosixPath(member.name.removeprefix("./"))
            if path.name.startswith(_WHITEOUT):
                _remove(into / path.parent / path.name.removeprefix(_WHITEOUT))
            elif wanted(str(path)) and (member.isreg() or member.issym()):
                member.name = str(path)
                _remove(into / path)
                # A link out of the image shows nothing of it, and must not lead to this machine's files.
                with suppress(tarfile.FilterError):
                    files.extract(member, into, set_attrs=False, filter="data")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _manifest(tar: tarfile.TarFile) -> dict[str, Any]:
    [manifest] = _json(tar, "manifest.json")
    return dict(manifest)


def _json(tar: tarfile.TarFile, name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    with _open(tar, name) as file:
        return json.load(file)


def _open(tar: tarfile.TarFile, name: str) -> "closing[IO[bytes]]":
    file = tar.extractfile(name)
    if file is None:
        raise ValueError(f"{name} of the image is no file")
    return closing(file)
