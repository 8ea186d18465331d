"""A namespace of one test, and kubectl in it. When a test fails, what was in it is printed: it is gone afterwards."""

import json
import secrets
import time
from contextlib import contextmanager


class Namespace:
    """A namespace of one test, with the calls that tests make in it."""

    def __init__(self, name, kubectl):
        self.name = name
        self._kubectl = kubectl

    def kubectl(self, *words, stdin=None):
        """Call kubectl in this namespace, and fail with its own words if it fails."""
        done = self.try_kubectl(*words, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
        return done.stdout

    def try_kubectl(self, *words, stdin=None):
        return self._kubectl("--namespace", self.name, *words, stdin=stdin)

    def apply(self, *objects):
        items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", stdin=items)

    def patch(self, what, change):
        self.kubectl("patch", what, "--type=merge", "--patch", json.dumps(change))

    def get(self, *what):
        return json.loads(self.kubectl("get", *what, "--output", "json"))

    def has(self, what):
        return self.try_kubectl("get", what).returncode == 0

    def events(self, reason):
        return [event for event in self.get("events")["items"] if event["reason"] == reason]

    def wait_for(self, what, ready, within=90):
        """Wait until `ready` returns something true, and return it; `what` may be asked for only when it did not."""
        deadline = time.monotonic() + within
        while not (found := ready()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what if isinstance(what, str) else what()} did not come within {within} s")
            time.sleep(0.3)
        return found


@contextmanager
def made_namespace(kubectl):
    """Make a namespace that goes with the block."""
    namespace = Namespace(f"e2e-{secrets.token_hex(4)}", kubectl)
    namespace.kubectl("create", "namespace", namespace.name)
    # Pods need the account that a controller makes for each namespace a moment later.
    namespace.wait_for("the service account", lambda: namespace.has("sa/default"))
    try:
        yield namespace
    finally:
        kubectl("delete", "namespace", namespace.name, "--wait=false")


def describe(namespace):
    """Tell what is in a namespace, with the logs of its pods."""
    words = [
        ("get", "all,configmaps,poddisruptionbudgets", "--output", "wide"),
        ("get", "rcon", "--output", "yaml"),
        ("get", "events"),
        ("describe", "pods"),
    ]
    pods = [pod["metadata"]["name"] for pod in namespace.get("pods")["items"]]
    words.extend(("logs", pod, "--all-containers", "--tail", "100") for pod in pods)
    return "\n".join(f"--- kubectl {' '.join(call)}\n{namespace.try_kubectl(*call).stdout}" for call in words)
