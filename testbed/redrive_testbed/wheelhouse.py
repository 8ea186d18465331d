"""The wheels that an image is made of: the locked dependencies of one component, the project itself, and pip.

They are for the image's Python and C library, whatever this machine runs, and each is checked against the hash in
uv.lock. pip chooses wheels by the flags given here but reads environment markers from the Python that runs it, hence
it runs on the image's version too. Indexes and certificates are those of the person's own pip and uv settings.
"""

import os
import platform
import shutil
import tomllib
from pathlib import Path

from redrive_testbed.places import REPOSITORY
from redrive_testbed.shell import run

PYTHON = "3.11"
# Debian bookworm's C library; it runs wheels made for any older one.
GLIBC_MINOR = 36
PIP = "26.3"
PIP_SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"
# The Dockerfiles copy from here, and .dockerignore lets nothing else through.
WHEELS = REPOSITORY / "build" / "wheels"
EXTRAS = {"operator": ("operator",), "consumer": ()}


def uv() -> str:
    """The uv that runs us, which need not be on the PATH."""
    return os.environ.get("UV", "uv")


def version() -> str:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    return str(project["project"]["version"])


def requirements(component: str) -> str:
    """The locked dependencies of a component with their hashes, and pip, as a requirements file."""
    extras = [word for extra in EXTRAS[component] for word in ("--extra", extra)]
    locked = run(
        *(uv(), "export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--no-header", "--no-annotate"),
        *extras,
        cwd=REPOSITORY,
    )
    return f"{locked}pip=={PIP} --hash=sha256:{PIP_SHA256}\n"


def project_wheel() -> Path:
    """Build the project's own wheel; the same sources give the same bytes."""
    out = WHEELS / "project"
    shutil.rmtree(out, ignore_errors=True)
    run(uv(), "build", "--quiet", "--wheel", "--out-dir", out, cwd=REPOSITORY)
    return next(out.glob("*.whl"))


def fill(component: str, locked: str, project: Path) -> None:
    """Put exactly the wheels of a component into its folder."""
    folder = WHEELS / component
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listed = WHEELS / f"{component}.txt"
    listed.write_text(locked)
    tags = [word for tag in platform_tags(machine()) for word in ("--platform", tag)]
    run(
        *(uv(), "tool", "run", "--quiet", "--python", PYTHON, "--from", f"pip=={PIP}", "pip", "download", "--quiet"),
        *("--no-deps", "--require-hashes", "--only-binary=:all:", "--python-version", PYTHON, *tags),
        *("--requirement", listed, "--dest", folder),
    )
    shutil.copy(project, folder)


def platform_tags(machine: str) -> list[str]:
    """Every platform tag whose wheels run on the image's C library."""
    # pip widens manylinux2014 to the older names by itself, but not one manylinux_2_N to the next.
    return [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC_MINOR, 16, -1)] + [f"manylinux2014_{machine}"]


def machine() -> str:
    """This machine's processor by the name that wheels use."""
    return platform.machine().replace("arm64", "aarch64")
