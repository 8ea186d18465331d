"""A cluster that the person named: used as it is, never made, changed or removed by the test bed.

A copy of that one context is written to the state folder, so that everything else reads one kubeconfig, wherever the
cluster came from, and can reach no other.
"""

import shutil
from pathlib import Path

from redrive_testbed.errors import CommandFailed, Refused, TestbedError
from redrive_testbed.files import write_whole
from redrive_testbed.places import Places
from redrive_testbed.say import say
from redrive_testbed.shell import run, succeeds


class NamedContext:
    """A context of the person's own kubeconfig."""

    def __init__(self, places: Places, context: str) -> None:
        self._folder = places.state / "context"
        self._context = context
        self.kind = f"the context {context} that you named"

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "admin.kubeconfig"

    kubectl = "kubectl"
    reaches_this_machine = False

    def up(self, nodes: int = 1) -> None:
        del nodes
        if shutil.which("kubectl") is None:
            raise Refused(f"kubectl is needed to use the context {self._context}: install it")
        own = self._own_kubeconfig()
        write_whole(self.kubeconfig, own, mode=0o600)
        if not self._answers():
            raise TestbedError(f"the cluster of the context {self._context} does not answer: is it running?")
        say(f"the cluster is up: export KUBECONFIG={self.kubeconfig}")

    def down(self) -> None:
        """Forget the copy of the context; the cluster itself is not ours to end."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def is_dead(self) -> bool:
        """It is not ours to say so."""
        return False

    def load(self, archive: Path) -> None:
        """Say what only the person can do: we have no way into the nodes of a cluster that is not ours."""
        say(f"push the image in {archive} to a registry that the cluster of {self._context} pulls from")

    def status(self) -> str:
        return "running" if self._answers() else "SILENT"

    def _answers(self) -> bool:
        return succeeds("kubectl", "--kubeconfig", self.kubeconfig, "get", "--raw", "/readyz")

    def _own_kubeconfig(self) -> str:
        try:
            return run("kubectl", "config", "view", "--raw", "--flatten", "--minify", "--context", self._context)
        except CommandFailed as error:
            known = run("kubectl", "config", "get-contexts", "--output", "name").split()
            raise Refused(f"there is no context {self._context}; known are: {', '.join(known) or 'none'}") from error
