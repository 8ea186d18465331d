"""The operator as the chart installs it in the cluster, and what tests do to it."""

import json
import os
import time

from redrive_testbed import chart
from redrive_testbed.operator_manifests import NAME, NAMESPACE

# Brokers are read three times as often as usual, so that tests wait a third as long for what is found by reading.
# Of the accounts that a worker may name, `till` is one.
VALUES = {"interval": 5, "workerServiceAccounts": ["till"]}


class Installation:
    """One operator in its namespace; `kubectl` and `helm` raise when they fail."""

    def __init__(self, kubectl, helm):
        self.kubectl, self.helm = kubectl, helm

    def install(self, *values):
        """Have an operator of the images that are loaded now: they keep their name when they are built anew."""
        chart.clear(self.helm, self.kubectl)
        chart.install(self.helm, values=[VALUES, *values])

    def uninstall(self):
        chart.uninstall(self.helm)

    def pods(self, name=NAME):
        words = "get", "pods", "--namespace", NAMESPACE, f"--selector={selector(name)}", "--output=json"
        return json.loads(self.kubectl(*words))["items"]

    def restarts(self, name=NAME):
        return [status["restartCount"] for pod in self.pods(name) for status in pod["status"]["containerStatuses"]]

    def fetch(self, path, name=NAME):
        """Ask the operator's port by way of the API server."""
        (pod,) = self.pods(name)
        return self.kubectl(
            "get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}:8080/proxy{path}"
        )

    def logs(self, *words, name=NAME):
        return self.kubectl("logs", f"deployment/{name}", "--namespace", NAMESPACE, *words)

    def visible(self):
        """Give all that others see of it: its log, its metrics, its processes with their words and variables."""
        (pod,) = self.pods()
        shown = 'for file in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do tr "\\0" "\\n" < $file; done; true'
        processes = self.kubectl("exec", pod["metadata"]["name"], "--namespace", NAMESPACE, "--", "sh", "-c", shown)
        assert "redrive-operator" in processes, "nothing was looked at"
        assert "REDRIVE_NAMESPACE=" in processes, "nothing was looked at"
        return {"log": self.logs(), "metrics": self.fetch("/metrics"), "processes": processes}

    def second(self, name):
        """Build a second operator like the one that is installed, with another name and pods of its own."""
        body = json.loads(self.kubectl("get", f"deployment/{NAME}", "--namespace", NAMESPACE, "--output=json"))
        labels = {"app.kubernetes.io/name": name}
        template = {**body["spec"]["template"], "metadata": {"labels": labels}}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
            "spec": {**body["spec"], "selector": {"matchLabels": labels}, "template": template},
        }

    def stop(self):
        """Have no operator at all, until `start`."""
        self._scale(0)
        self._wait("the operator is still there", lambda: not self.pods())

    def start(self):
        self._scale(1)
        self.kubectl("rollout", "status", f"deployment/{NAME}", "--namespace", NAMESPACE, "--timeout=120s")

    def kill(self):
        """End the operator without a word; the Deployment makes another."""
        must_be_alone()
        chosen = f"--selector={selector(NAME)}"
        self.kubectl("delete", "pod", "--namespace", NAMESPACE, chosen, "--force", "--grace-period=0")

    def restart(self):
        self.stop()
        self.start()

    def _scale(self, replicas):
        must_be_alone()
        self.kubectl("scale", f"deployment/{NAME}", "--namespace", NAMESPACE, f"--replicas={replicas}")

    @staticmethod
    def _wait(what, ready, within=60):
        deadline = time.monotonic() + within
        while not ready():
            assert time.monotonic() < deadline, f"{what} after {within} s"
            time.sleep(0.3)


def must_be_alone():
    """Fail where other tests go beside this one, and have the same operator."""
    assert "PYTEST_XDIST_WORKER" not in os.environ, "others use this operator: the test needs the marker `alone`"


def selector(name):
    """Say by which labels the pods of an operator are known: the chart's, or those of a second one."""
    chosen = "app.kubernetes.io/name=redrive,app.kubernetes.io/component=operator"
    return chosen if name == NAME else f"app.kubernetes.io/name={name}"
