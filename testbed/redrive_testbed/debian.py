"""Debian: packages on this machine, and root file systems of other releases in folders.

Folders are made once and cached under a key; a half-made one is never seen, because it is built beside its place and
renamed into it at the end.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from redrive_testbed.errors import Refused
from redrive_testbed.say import step
from redrive_testbed.shell import run, succeeds

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
        run("apt-get", "update", "-q", env=QUIET)
        run("apt-get", "install", "-q", "-y", "--no-install-recommends", *absent, env=QUIET)


def bootstrap(suite: str, root: Path, *, packages: Sequence[str]) -> None:
    """Make a minimal root file system of a Debian release in `root`, with packages in it, unless it is there."""
    if root.exists():
        return
    install(["debootstrap"])
    root.parent.mkdir(parents=True, exist_ok=True)
    with _alone(root.with_name(f"{root.name}.lock")):
        if root.exists():  # another clone asked at the same time and has made it
            return
        building = root.with_name(f"{root.name}.building")
        _discard(building)
        with step(f"making a Debian {suite} root file system with {' '.join(packages)}"):
            _build(suite, building, packages)
        building.rename(root)


def _build(suite: str, building: Path, packages: Sequence[str]) -> None:
    run("debootstrap", "--variant=minbase", suite, building, timeout=1200)
    # A mirror may be frozen at a date; packages of sid are then "expired" but right.
    (building / "etc/apt/apt.conf.d/99testbed").write_text('Acquire::Check-Valid-Until "false";\n')
    # Without it localhost has no address inside.
    (building / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    # Nothing may start inside: packages that bring a service would start it during their installation.
    policy = building / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    with kernel_mounts(building):
        inside = ("chroot", building, "apt-get", "-q", "-y", "--no-install-recommends")
        run(*inside, "update", env=QUIET)
        run(*inside, "install", *packages, env=QUIET)
        run(*inside, "clean", env=QUIET)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock that the kernel frees even when its holder is killed."""
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def kernel_mounts(root: Path) -> Iterator[None]:
    """Give a root file system /proc and /dev for as long as something runs in it."""
    mount_kernel(root)
    try:
        yield
    finally:
        unmount_kernel(root)


def mount_kernel(root: Path) -> None:
    for name in ("proc", "dev"):
        if not os.path.ismount(root / name):
            run("mount", "--bind", f"/{name}", root / name)


def unmount_kernel(root: Path) -> None:
    for name in ("dev", "proc"):
        if os.path.ismount(root / name):
            run("umount", root / name)


def _discard(root: Path) -> None:
    if root.exists():
        unmount_kernel(root)  # never delete through a bind mount of the machine's own /dev
        shutil.rmtree(root)


def _installed(package: str) -> bool:
    return (
        succeeds("dpkg-query", "-W", "-f", "${db:Status-Status}", package)
        and run("dpkg-query", "-W", "-f", "${db:Status-Status}", package) == "installed"
    )
