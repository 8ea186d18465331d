"""Debian: packages on this machine, and root file systems of other releases in folders.

Folders are made once and cached under a key; a half-made one is never seen, because it is built beside its place and
renamed into it at the end.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from redrive_testbed.errors import Refused
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
