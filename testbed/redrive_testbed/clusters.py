"""Which cluster: one that the person names, else kind where a Docker engine answers, else the Docker-less one.

The choice is recorded before anything is started and forgotten after `down`, so that `down`, `load` and the tests act
on the cluster that `up` made, even if `up` was killed in the middle or a Docker engine was started meanwhile.
"""

from pathlib import Path
from typing import Protocol

from redrive_testbed.dockerless import Dockerless
from redrive_testbed.errors import Refused
from redrive_testbed.files import alone, write_whole
from redrive_testbed.kind import Kind
from redrive_testbed.machine import docker_answers
from redrive_testbed.named_context import NamedContext
from redrive_testbed.places import Places
from redrive_testbed.say import say


class Cluster(Protocol):
    """What every kind of cluster can do for the test bed."""

    @property
    def kind(self) -> str: ...
    @property
    def kubeconfig(self) -> Path: ...
    @property
    def kubectl(self) -> str: ...
    @property
    def reaches_this_machine(self) -> bool: ...
    def up(self, nodes: int = 1) -> None: ...
    def down(self) -> None: ...
    def is_dead(self) -> bool: ...
    def load(self, archive: Path) -> None: ...
    def status(self) -> str: ...


DOCKERLESS, KIND, NAMED = "dockerless", "kind", "context:"


def up(places: Places, *, context: str | None = None, nodes: int = 1) -> Cluster:
    """Bring up the cluster that is recorded, or else choose one, say which, and record it."""
    with alone(_lock(places)):
        recorded = _recorded(places)
        choice = f"{NAMED}{context}" if context else recorded or (KIND if docker_answers() else DOCKERLESS)
        if recorded not in (None, choice):
            raise Refused(f"{_cluster(places, str(recorded)).kind} is up: take it down first (make cluster-down)")
        cluster = _cluster(places, choice)
        say(f"using {cluster.kind}")
        _write_record(places, choice)
        try:
            cluster.up(nodes)
        except Refused:
            if recorded is None:
                _forget(places)
            raise
        return cluster


def down(places: Places) -> None:
    """Take down the cluster that is recorded; without one, say so."""
    with alone(_lock(places)):
        cluster = current(places)
        if cluster is None:
            say("no cluster is up")
            return
        cluster.down()
        _forget(places)
        say("the cluster is down")


def current(places: Places) -> Cluster | None:
    """The cluster that `up` made and `down` has not removed."""
    choice = _recorded(places)
    return _cluster(places, choice) if choice else None


def is_ruin(places: Places) -> bool:
    """Say whether a cluster that nobody has taken down is dead: its machine was started anew, or everything killed."""
    cluster = current(places)
    return cluster is not None and cluster.is_dead()


def _cluster(places: Places, choice: str) -> Cluster:
    if choice.startswith(NAMED):
        return NamedContext(places, choice.removeprefix(NAMED))
    return Kind(places) if choice == KIND else Dockerless(places)


def _recorded(places: Places) -> str | None:
    record = places.state / "choice"
    return (record.read_text() if record.exists() else "") or None


def _write_record(places: Places, choice: str) -> None:
    try:
        write_whole(places.state / "choice", choice)
    except PermissionError as error:
        raise Refused(f"{places.state} cannot be written: run this with sudo, or set REDRIVE_TESTBED_STATE") from error


def _forget(places: Places) -> None:
    (places.state / "choice").unlink()
    if not any(places.state.iterdir()):
        places.state.rmdir()


def _lock(places: Places) -> Path:
    """A second `up` or `down` waits for the first; this lies in the cache, because `down` removes the state."""
    return places.cache / "cluster.lock"
