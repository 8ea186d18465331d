"""A cluster of kind, where a Docker engine answers; kind itself is used from the PATH.

Its kubeconfig is written to the state folder and nowhere else, so the person's own contexts stay as they are.
"""

import os
import shutil
from pathlib import Path

from redrive_testbed.errors import Refused
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.say import say, step
from redrive_testbed.shell import run, succeeds

NAME = "redrive"
CONFIG = REPOSITORY / "kind-config.yaml"


def docker_answers() -> bool:
    return succeeds("docker", "version", "--format", "{{.Server.Version}}", timeout=10)


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
        del nodes
        if shutil.which("kind") is None:
            raise Refused("a Docker engine answers but kind is missing: install kind and put it on the PATH")
        self._folder.mkdir(parents=True, exist_ok=True)
        if NAME not in self._clusters():
            with step(f"making the kind cluster {NAME}"):
                self._kind("create", "cluster", "--config", str(CONFIG), "--wait", "180s")
        self._kind("export", "kubeconfig", "--name", NAME)
        say(f"the cluster is up: export KUBECONFIG={self.kubeconfig}")

    def down(self) -> None:
        if NAME in self._clusters():
            self._kind("delete", "cluster", "--name", NAME)
        shutil.rmtree(self._folder, ignore_errors=True)

    def load(self, archive: Path) -> None:
        self._kind("load", "image-archive", str(archive), "--name", NAME)

    def status(self) -> str:
        return "running" if NAME in self._clusters() else "down"

    def _clusters(self) -> list[str]:
        return run("kind", "get", "clusters").split()

    def _kind(self, *words: str) -> str:
        return run("kind", *words, env={**os.environ, "KUBECONFIG": str(self.kubeconfig)}, timeout=900)
