"""A cluster that has no place for a worker: the ways in which that comes about, and how each is mended.

What is done to nodes bears one name, `MARK`, by which it can be undone, also what a run that was killed has left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from redrive_operator.causes import PlacementCause
from redrive_testbed.archives import import_into_containerd
from redrive_testbed.node import NodeSpec

MARK = "redrive-e2e-place"

# Soon, and, for what a node is to find out, late enough that a slow start with a warning or two is over. Where a place
# is to be found again nobody is in a hurry.
SOON, LATER, NEVER = timedelta(seconds=3), timedelta(seconds=15), timedelta(minutes=10)


class Nodes:
    """The nodes of the cluster, and what tests do to them."""

    def __init__(self, kubectl):
        self._kubectl = kubectl

    def label(self, node="--all", key=MARK):
        self._must("label", "nodes", node, "--overwrite", f"{key}=yes")

    def has(self, node, key):
        return node in self._must("get", "nodes", f"--selector={key}=yes", "--output=name")

    def taint(self):
        """Let no further pod onto any node; those that are there stay."""
        self._must("taint", "nodes", "--all", "--overwrite", f"{MARK}=yes:NoSchedule")

    def clear(self):
        """Undo it on all of them. Where there is no such taint, that is an answer, too."""
        self._must("label", "nodes", "--all", f"{MARK}-")
        done = self._kubectl("taint", "nodes", "--all", f"{MARK}-")
        assert done.returncode == 0 or "not found" in done.stderr, done.stderr

    def _must(self, *words):
        done = self._kubectl(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout


class Spare:
    """A further node. Some workers go nowhere else, and nobody else goes there."""

    own = f"{MARK}-spare"
    spec = NodeSpec(6, taints=(f"{own}=yes:NoSchedule",))
    name = spec.name

    def __init__(self, cluster, archive, nodes):
        self._cluster, self._archive, self._nodes = cluster, archive, nodes

    def boot(self):
        """Have it, after a plug that was pulled too. Only when it has the image, it is what workers look for."""
        self._cluster.add_node(self.spec)
        if not self._nodes.has(self.name, self.own):
            (node,) = [node for node in self._cluster.nodes() if node.spec == self.spec]
            import_into_containerd(node.containerd, self._archive)
            self._nodes.label(self.name, self.own)

    def pull_the_plug(self):
        self._cluster.kill_node(self.spec.index)

    def remove(self):
        self._cluster.remove_node(self.spec.index)

    def worker(self, shop):
        """Build a worker for this node alone. It is given up as soon as the node is, and not five minutes later."""
        at_home = {"key": self.own, "operator": "Exists", "effect": "NoSchedule"}
        unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
        tolerations = [at_home, {**unreachable, "tolerationSeconds": 0}]
        return shop.worker(pod={"nodeSelector": {self.own: "yes"}, "tolerations": tolerations})


@dataclass(frozen=True)
class Trouble:
    """Why a worker has no place. Unless `mend` sees to it, the worker ceases to ask for what it cannot have."""

    cause: PlacementCause
    words: str  # of Kubernetes, that are to be repeated
    worker: Callable
    mend: Callable | None = None
    grace: timedelta = SOON


def plain(shop):
    return shop.worker()


def with_much_cpu(shop):
    return shop.worker(container={"resources": {"requests": {"cpu": "900"}}})


def with_a_label(shop):
    return shop.worker(pod={"nodeSelector": {MARK: "yes"}})


def with_no_image(shop):
    return shop.worker(image="localhost:1/shop/absent:1")  # nobody listens there, so it fails at once


def with_a_variable(shop):
    """Ask for a key of a ConfigMap by a variable: without it the container is not made."""
    worker = shop.worker()
    source = {"configMapKeyRef": {"name": "handlers", "key": "late-variable"}}
    _main(worker)["env"].append({"name": "LATE", "valueFrom": source})
    return worker


def with_a_file(shop):
    """Ask for a key of a ConfigMap by a file: the pod waits for its volume, and only its Events say why."""
    item = {"key": "late-file", "path": "late"}
    return _with_volume(shop, {"configMap": {"name": "handlers", "items": [item]}})


def with_a_claim(shop):
    return _with_volume(shop, {"persistentVolumeClaim": {"claimName": "nothing"}})


def as_root(shop):
    return shop.worker(container={"securityContext": {"runAsUser": 0}})


def with_much_storage(shop):
    return shop.worker(container={"resources": {"requests": {"ephemeral-storage": "1Gi"}}})


def set_quota(shop):
    """Have a quota that nobody exceeds who does not ask for storage."""
    spec = {"hard": {"requests.ephemeral-storage": "1Mi"}}
    shop.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": spec})


def add_variable(shop, nodes):
    shop.namespace.patch("configmap/handlers", {"data": {"late-variable": "here"}})


def label_nodes(shop, nodes):
    nodes.label()


def _main(worker):
    return worker["podTemplate"]["spec"]["containers"][0]


def _with_volume(shop, source):
    worker = shop.worker()
    worker["podTemplate"]["spec"]["volumes"].append({"name": "late", **source})
    _main(worker)["volumeMounts"].append({"name": "late", "mountPath": "/late"})
    return worker


TOO_MUCH_CPU = Trouble(PlacementCause.INSUFFICIENT_CPU, "Insufficient cpu", with_much_cpu)
TROUBLES = {
    "selector": Trouble(PlacementCause.NODE_SELECTOR, "node affinity/selector", with_a_label, mend=label_nodes),
    "image": Trouble(PlacementCause.IMAGE, "shop/absent", with_no_image, grace=LATER),
    "variable": Trouble(PlacementCause.CONFIG, "late-variable", with_a_variable, mend=add_variable, grace=LATER),
    "file": Trouble(PlacementCause.MOUNT, "late-file", with_a_file, grace=LATER),
    "claim": Trouble(PlacementCause.VOLUME, 'persistentvolumeclaim "nothing" not found', with_a_claim),
    "root": Trouble(PlacementCause.POD_SECURITY, "violates PodSecurity", as_root),
    "quota": Trouble(PlacementCause.QUOTA, "exceeded quota", with_much_storage),
}
