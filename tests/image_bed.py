"""Small docker-archives, made by hand."""

import hashlib
import io
import json
import tarfile


def layer(entries, *, mtime=0):
    """Make a layer of {name: content}, where content is bytes, or a link's target as text."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in entries.items():
            member = tarfile.TarInfo(name)
            member.mtime = mtime
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def write(path, layers, *, settings=None, created="2026-01-01T00:00:00Z"):
    """Write an image of layers, and return its path."""
    digests = [hashlib.sha256(content).hexdigest() for content in layers]
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]}
    config = json.dumps({"created": created, "config": settings or {}, "rootfs": rootfs}).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": ["a:1"], "Layers": [f"{digest}.tar" for digest in digests]}]
    files = {name: config, "manifest.json": json.dumps(manifest).encode()}
    files |= {f"{digest}.tar": content for digest, content in zip(digests, layers, strict=True)}
    path.write_bytes(layer(files))
    return path
