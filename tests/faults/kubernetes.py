"""The cluster of trials whose workers are pods: two nodes, the images, and the operator as the chart installs it."""

import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from e2e.installation import Installation

from redrive_testbed import chart, clusters, images
from redrive_testbed.chart import Helm
from redrive_testbed.dockerless import Dockerless
from redrive_testbed.errors import Refused
from redrive_testbed.operator_manifests import NAMESPACE

NODES = 2

# Who waits for five minutes, as is usual, does not show within a trial that pods come up on another node.
SOON = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    for what in ("unreachable", "not-ready")
]

# What kubectl says when there is no API server, or when one is about to go or to come.
AWAY = ("refused", "EOF", "connection reset", "Unable to connect", "TLS handshake", "connection lost", "not yet ready")
AWAY_SECONDS = 240


@dataclass(frozen=True)
class Kubernetes:
    """A cluster with an operator. `kubectl` waits while no API server answers, and gives what kubectl gave."""

    machine: Dockerless
    kubectl: object
    operator: Installation


@contextmanager
def brought_up(places):
    """Bring up a cluster of two nodes, or use the one that is up; one that was not up is removed."""
    standing = clusters.current(places)
    try:
        machine = clusters.up(places, nodes=NODES)
        if not isinstance(machine, Dockerless):
            raise Refused("nodes and API servers of the cluster without Docker only are killed: name no context")
        images.load(places, machine.load)
        kubectl = partial(call, machine)
        operator = Installation(partial(must, kubectl), Helm.of(places, machine))
        operator.install({"tolerations": SOON})
        yield Kubernetes(machine, kubectl, operator)
        chart.uninstall(operator.helm)
        kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")
    finally:
        if standing is None:
            clusters.down(places)


def call(cluster, *words, stdin=None):
    """Call kubectl, again and again while no API server answers."""
    deadline = time.monotonic() + AWAY_SECONDS
    command = [cluster.kubectl, "--kubeconfig", str(cluster.kubeconfig), *words]
    while True:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300, check=False)
        away = done.returncode and any(sign in done.stderr for sign in AWAY)
        if not away or time.monotonic() > deadline:
            return done
        time.sleep(1)


def must(kubectl, *words, stdin=None):
    """Call kubectl, and fail with its own words if it fails."""
    done = kubectl(*words, stdin=stdin)
    assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
    return done.stdout
