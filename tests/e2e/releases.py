"""A release of the chart in the cluster: what tests do with it, and what must stay as it is meanwhile."""

from e2e.installation import VALUES

from redrive_testbed import chart
from redrive_testbed.chart import CHART, RELEASE
from redrive_testbed.operator_manifests import GROUP, KINDS, NAME, NAMESPACE

HERE = ("--namespace", NAMESPACE)
ACCOUNT = f"--as=system:serviceaccount:{NAMESPACE}:{NAME}"
CRDS = tuple(f"{kind}.{GROUP}" for kind in KINDS)


def install(helm, folder=CHART, **values):
    chart.install(helm, chart=folder, values=[VALUES, values])


def roll_back(helm, *revision):
    helm("rollback", RELEASE, *revision, *HERE, "--wait", "--timeout", "180s")


def release_objects(must, kinds):
    """Name the objects of some kinds, in the whole cluster, that are the release's."""
    words = "get", kinds, "--all-namespaces", f"--selector=app.kubernetes.io/instance={RELEASE}", "--output=name"
    return must(*words, "--ignore-not-found").split()


def begin_work(shop):
    """Have a consumer that has handled a message; see what nothing that is done to a release may change."""
    shop.apply_ready(shop.consumer(worker=shop.worker()))
    handle_one(shop, "first")
    return observe(shop)


def handle_one(shop, name):
    """Have the workers retry a message and be done with it, which takes no operator."""
    shop.publish({name: {"succeeds_on": 2}})
    shop.wait_runs([(name, 1), (name, 2)])


def serve_one(shop, name):
    """Have the operator make a consumer ready, and let it go with its queues."""
    shop.apply_ready(shop.consumer(name, deletionPolicy="Delete"))
    shop.namespace.kubectl("delete", f"rcon/{name}", "--timeout=60s")


def observe(shop):
    """See the object, its workers and its queues."""
    metadata = shop.get()["metadata"]
    return metadata["uid"], metadata["generation"], shop.uids(), shop.queues()
