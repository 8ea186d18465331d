"""A cluster of kind, where a Docker engine answers; kind itself is used from the PATH.

Its kubeconfig is written to the state folder and nowhere else, so the person's own contexts stay as they are.
"""

import shutil
from pathlib import Path

from redrive_testbed.errors import Refused
from redrive_testbed.files import write_whole
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.say import say, step
from redrive_testbed.shell import run

NAME = "redrive"
CONFIG = REPOSITORY / "kind-config.yaml"


class Kind:
    """The kind cluster named in kind-config.yaml."""

    kind = "kind, on this machine's Docker engine"

    def __init__(self, places: Places) -> None:
        self._folder = places.state / "kind"

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "admin.kubeconfig"

    kubectl = "kubectl"
    reaches_this_machine = False

    def up(self, nodes: int = 1) -> None:
        """Make the cluster unless it is there; how many nodes it has is said in kind-config.yaml."""
        self._refuse_what_cannot_work(nodes)
        if NAME not in self._clusters():
            write_whole(self._ours, "made by the test bed")  # before it is made, so that a half-made one is ours too
            with step(f"making the kind cluster {NAME}"):
                self._kind("create", "cluster", "--config", str(CONFIG), "--wait", "180s")
        self._kind("export", "kubeconfig", "--name", NAME)
        say(f"the cluster is up: export KUBECONFIG={self.kubeconfig}")

    def _refuse_what_cannot_work(self, nodes: int) -> None:
        missing = [tool for tool in ("kind", "kubectl") if shutil.which(tool) is None]
        if missing:
            raise Refused(f"a Docker engine answers, but {' and '.join(missing)} must be installed and on the PATH")
        if nodes != 1:
            raise Refused("how many nodes a kind cluster has is said in kind-config.yaml: leave NODES out")
        if NAME in self._clusters() and not self._ours.exists():
            raise Refused(
                f"there is a kind cluster {NAME} that the test bed did not make: use it with CONTEXT=kind-{NAME}, "
                f"or remove it with: kind delete cluster --name {NAME}"
            )

    @property
    def _ours(self) -> Path:
        return self._folder / "ours"

    def down(self) -> None:
        """Delete the cluster, if it is one that `up` made."""
        if self._ours.exists() and NAME in self._clusters():
            self._kind("delete", "cluster", "--name", NAME)
        shutil.rmtree(self._folder, ignore_errors=True)

    def is_dead(self) -> bool:
        """Say whether it is gone; one that was stopped is Docker's to start again."""
        return NAME not in self._clusters()

    def load(self, archive: Path) -> None:
        self._kind("load", "image-archive", str(archive), "--name", NAME)

    def status(self) -> str:
        return "running" if NAME in self._clusters() else "down"

    def _clusters(self) -> list[str]:
        return run("kind", "get", "clusters").split()

    def _kind(self, *words: str) -> str:
        return run("kind", *words, env={"KUBECONFIG": str(self.kubeconfig)}, timeout=900)
