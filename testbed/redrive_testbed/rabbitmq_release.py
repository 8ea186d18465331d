"""Which RabbitMQ releases the tests can have, and their root file systems.

A release is named as a person would ask for it; the version comes from a Debian suite. "4" is the newest there was
when its root file system was made: remove that folder from the cache to get a newer one.
"""

from dataclasses import dataclass
from pathlib import Path

from redrive_testbed import debian
from redrive_testbed.errors import Refused
from redrive_testbed.machine import require_disk
from redrive_testbed.places import Places

# A root file system takes 350 MB, its packages as much again while it is made.
BUILD_MEGABYTES = 1500


@dataclass(frozen=True)
class Release:
    """A RabbitMQ release by its name here, and the Debian suite that has it."""

    name: str
    suite: str

    def root(self, places: Places) -> Path:
        return places.cache / f"rabbitmq-{self.suite}"


RELEASES = {
    release.name: release for release in (Release("3.10", "bookworm"), Release("4.0", "trixie"), Release("4", "sid"))
}

# What every test run proves; 4.0 is for the run before a release of Redrive.
TESTED = ("3.10", "4")


def find_release(name: str) -> Release:
    try:
        return RELEASES[name]
    except KeyError:
        raise Refused(f"RabbitMQ {name!r} is not known here: choose one of {', '.join(RELEASES)}") from None


def prepare_root(release: Release, places: Places) -> Path:
    """Return the root file system of a release; the first time it is made, which takes about a minute."""
    root = release.root(places)
    if not root.exists():
        require_disk(places.cache, BUILD_MEGABYTES)
        debian.bootstrap(release.suite, root, packages=["rabbitmq-server"])
    return root


def installed_version(root: Path) -> str:
    """Read the version from the folder that carries it, for example rabbitmq_server-3.10.8."""
    [folder] = (root / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")
    return folder.name.removeprefix("rabbitmq_server-")
