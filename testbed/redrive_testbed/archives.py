"""Images as files: docker-archive tars, which containerd, kind and docker all load.

A container whose whole content is one static program needs no builder: its image is one layer and two JSON files,
and the same program gives the same bytes.
"""

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

from redrive_testbed.shell import run

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def import_into_containerd(address: Path, archive: Path) -> None:
    """Give a node's containerd (by its socket) an image; one that is there already is replaced."""
    # k8s.io is the namespace in which the kubelet looks.
    run("ctr", "--address", address, "--namespace", "k8s.io", "images", "import", archive)


def single_binary_archive(binary: Path, name: str, out: Path) -> None:
    """Write an image `name` that holds and runs one static program."""
    layer = _tar({binary.name: binary.read_bytes()}, mode=0o755)
    config = _config(f"/{binary.name}", layer)
    config_name, layer_name = f"{_digest(config)}.json", f"{_digest(layer)}/layer.tar"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [layer_name]}]
    files = {config_name: config, layer_name: layer, "manifest.json": json.dumps(manifest).encode()}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(_tar(files, mode=0o644))


def _config(program: str, layer: bytes) -> bytes:
    config = {
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "config": {"Entrypoint": [program]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(layer)}"]},
    }
    return json.dumps(config).encode()


def _tar(files: dict[str, bytes], *, mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
