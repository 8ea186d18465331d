"""Debian: packages on this machine, packages unpacked beside it, and root file systems of other releases in folders.

Folders are made once and cached under a key; a half-made one is never seen, because it is built beside its place and
renamed into it at the end.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from redrive_testbed.errors import CommandFailed, Refused
from redrive_testbed.files import alone
from redrive_testbed.say import step
from redrive_testbed.shell import run, succeeds

# Whatever is mounted while a root file system is made is seen, and undone, with the command that mounted it.
_OWN_MOUNTS = ("unshare", "--mount", "--propagation", "private")
_ENTER = 'mount --bind /proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"'

QUIET = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "TERM": "dumb"}


def missing(packages: Sequence[str]) -> list[str]:
    return [name for name in packages if not _installed(name)]


def install(packages: Sequence[str]) -> None:
    """Install what is missing; nothing is upgraded."""
    absent = missing(packages)
    if not absent:
        return
    if shutil.which("apt-get") is None:
        raise Refused(f"install {', '.join(absent)} by hand: this machine has no apt-get")
    if os.geteuid() != 0:
        raise Refused(f"installing {', '.join(absent)} needs root: run this command with sudo")
    with step(f"installing {' '.join(absent)}"):
        # No time limit: apt killed in the middle leaves a broken machine. Somebody else's apt is waited for.
        patient = ("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", "--no-install-recommends")
        run(*patient, "update", env=QUIET, timeout=None)
        run(*patient, "install", *absent, env=QUIET, timeout=None)


def bootstrap(suite: str, root: Path, *, packages: Sequence[str]) -> None:
    """Make a minimal root file system of a Debian release in `root`, with packages in it, unless it is there."""
    if root.exists():
        return
    install(["debootstrap"])
    root.parent.mkdir(parents=True, exist_ok=True)
    with alone(root.with_name(f"{root.name}.lock")):
        if root.exists():  # another clone asked at the same time and has made it
            return
        building = root.with_name(f"{root.name}.building")
        shutil.rmtree(building, ignore_errors=True)  # a half-made one of a command that was killed
        with step(f"making a Debian {suite} root file system with {' '.join(packages)}"):
            _build(suite, building, packages)
        building.rename(root)


def unpack(packages: Sequence[str], folder: Path, *, if_any: Sequence[str] = ()) -> None:
    """Unpack packages of this machine's own release into `folder`, unless it is there; nothing is installed.

    `if_any` names parts of them that some releases have as packages of their own. What they depend on is not unpacked:
    this is for programs that need no more than the C library.
    """
    if folder.exists():
        return
    absent = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if absent:
        raise Refused(f"{', '.join(packages)} cannot be fetched: this machine has no {' and no '.join(absent)}")
    with alone(folder.with_name(f"{folder.name}.lock")):
        if folder.exists():  # another clone asked at the same time and has fetched them
            return
        building = folder.with_name(f"{folder.name}.building")
        shutil.rmtree(building, ignore_errors=True)  # a half-made one of a command that was killed
        with step(f"fetching {' '.join(packages)}"):
            _fetch(packages, if_any, building)
        building.rename(folder)


def _fetch(packages: Sequence[str], if_any: Sequence[str], building: Path) -> None:
    """Download packages, which apt checks by the signatures of its archive, and unpack them."""
    downloads = building / "downloads"
    downloads.mkdir(parents=True)
    # Its own user for downloads cannot write below the cache of another one.
    download = ("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download")
    try:
        run(*download, *packages, cwd=downloads, env=QUIET)
    except CommandFailed:
        if os.geteuid() != 0:
            raise
        # The lists are missing, or name a version that the archive does not have any more.
        run("apt-get", "-q", "update", env=QUIET)
        run(*download, *packages, cwd=downloads, env=QUIET)
    for name in if_any:
        with suppress(CommandFailed):
            run(*download, name, cwd=downloads, env=QUIET)
    for package in downloads.glob("*.deb"):
        run("dpkg-deb", "--extract", package, building)
    shutil.rmtree(downloads)


def _build(suite: str, building: Path, packages: Sequence[str]) -> None:
    run(*_OWN_MOUNTS, "debootstrap", "--variant=minbase", suite, building, timeout=1200)
    # A mirror may be frozen at a date; packages of sid are then "expired" but right.
    (building / "etc/apt/apt.conf.d/99testbed").write_text('Acquire::Check-Valid-Until "false";\n')
    # Without it localhost has no address inside.
    (building / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    # Nothing may start inside: packages that bring a service would start it during their installation.
    policy = building / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    for words in (("update",), ("install", *packages), ("clean",)):
        inside = ("apt-get", "-q", "-y", "--no-install-recommends", *words)
        run(*_OWN_MOUNTS, "sh", "-euc", _ENTER, building, *inside, env=QUIET, timeout=1200)


def _installed(package: str) -> bool:
    return (
        succeeds("dpkg-query", "-W", "-f", "${db:Status-Status}", package)
        and run("dpkg-query", "-W", "-f", "${db:Status-Status}", package) == "installed"
    )
