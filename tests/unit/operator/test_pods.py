"""Pods that have no place or cannot be started, as a real cluster shows them, read."""

import pytest
from pod_bed import at, container, ended, pod, real, running, waiting

from redrive_operator.causes import PlacementCause
from redrive_operator.pods import UNKNOWN, Hindrance, read_pod
from redrive_operator.subject import Key

PULL = (
    'Back-off pulling image "localhost:1/nothing/here:1": ErrImagePull: failed to pull and unpack image '
    '"localhost:1/nothing/here:1": failed to resolve reference "localhost:1/nothing/here:1": failed to do request: '
    'Head "http://localhost:1/v2/nothing/here/manifests/1": dial tcp 127.0.0.1:1: connect: connection refused'
)


@pytest.mark.parametrize(
    ("name", "cause", "clock", "message"),
    [
        ("cpu", PlacementCause.INSUFFICIENT_CPU, "15:53:25", "0/1 nodes are available: 1 Insufficient cpu."),
        ("memory", PlacementCause.INSUFFICIENT_MEMORY, "15:53:25", "0/1 nodes are available: 1 Insufficient memory."),
        (
            "cpu-and-memory",
            PlacementCause.INSUFFICIENT_CPU,
            "15:53:25",
            "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
        ),
        (
            "gpu",
            PlacementCause.INSUFFICIENT_RESOURCES,
            "15:53:25",
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        ),
        (
            "node-selector",
            PlacementCause.NODE_SELECTOR,
            "15:53:29",
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
        ),
        (
            "taint",
            PlacementCause.TAINT,
            "15:54:30",
            "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
        ),
        (
            "cordoned",
            PlacementCause.NO_NODES,
            "15:54:18",
            "0/1 nodes are available: 1 node(s) were unschedulable.",
        ),
        (
            "pvc-missing",
            PlacementCause.VOLUME,
            "15:53:35",
            '0/1 nodes are available: persistentvolumeclaim "data" not found.',
        ),
        (
            "pvc-no-class",
            PlacementCause.VOLUME,
            "15:53:36",
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
        ),
        (
            "pod-affinity",
            PlacementCause.UNSCHEDULABLE,
            "15:53:30",
            "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.",
        ),
        (
            "scheduling-gate",
            PlacementCause.UNSCHEDULABLE,
            "15:53:35",
            "Scheduling is blocked due to non-empty scheduling gates",
        ),
        ("no-scheduler", PlacementCause.NOT_SCHEDULED, "15:53:30", "it waits for the scheduler nobody"),
        ("image-backoff", PlacementCause.IMAGE, "15:53:52", f"ImagePullBackOff: {PULL}"),
        ("init-image", PlacementCause.IMAGE, "15:54:34", f"container app: ImagePullBackOff: {PULL}"),
        (
            "image-invalid-name",
            PlacementCause.IMAGE,
            "15:53:53",
            'InvalidImageName: Failed to apply default image tag "Shop/ORDERS:1:2": couldn\'t parse image name '
            '"Shop/ORDERS:1:2": invalid reference format: repository name (ORDERS) must be lowercase',
        ),
        (
            "image-never",
            PlacementCause.IMAGE,
            "15:53:54",
            'ErrImageNeverPull: Container image "shop/orders:none" is not present with pull policy of Never',
        ),
        (
            "secret-missing",
            PlacementCause.CONFIG,
            "15:54:33",
            'CreateContainerConfigError: secret "ghost" not found',
        ),
        (
            "config-key",
            PlacementCause.CONFIG,
            "15:54:34",
            "CreateContainerConfigError: couldn't find key absent in ConfigMap shop/settings",
        ),
        (
            "run-as-root",
            PlacementCause.CONFIG,
            "15:54:38",
            "CreateContainerConfigError: container's runAsUser breaks non-root policy (container: worker)",
        ),
        ("mount-secret-missing", None, "15:54:42", "its node is setting it up"),
        ("sandbox", None, "15:57:10", "its node is setting it up"),
    ],
)
def test_pod_that_has_no_place_or_cannot_be_started_says_why_and_since_when(name, cause, clock, message):
    seen = read_pod(real(name))
    assert seen.hindrance == Hindrance(cause, message, at(clock))
    assert seen.crash is None


def test_pod_that_is_well_is_read_whole():
    seen = read_pod(real("healthy"))
    assert (seen.consumer, seen.key.namespace, seen.uid) == (
        Key("shop", "orders"),
        "shop",
        real("healthy")["metadata"]["uid"],
    )
    assert seen.key.name == real("healthy")["metadata"]["name"]
    assert seen.ip == real("healthy")["status"]["podIP"]
    assert (seen.ready, seen.deleting, seen.ended, seen.restarts) == (True, False, False, 0)
    assert (seen.hindrance, seen.crash) == (None, None)


@pytest.mark.parametrize(
    ("owner", "consumer"),
    [
        ("orders-7f8d", "orders"),
        ("eu.orders-2-7f8d", "eu.orders-2"),
        ("orders", None),
        ("-7f8d", None),
        ("orders-", None),
    ],
)
def test_consumer_is_named_as_the_replica_set_without_its_hash(owner, consumer):
    seen = read_pod(pod(owner=owner))
    assert (seen and seen.consumer.name) == consumer


@pytest.mark.parametrize(
    "owners",
    [
        [],
        [{"kind": "ReplicaSet", "name": "orders-7f8d"}],
        [{"kind": "Job", "name": "orders-7f8d", "controller": True}],
    ],
    ids=["none", "no controller", "another kind"],
)
def test_pod_that_no_deployment_controls_is_not_read(owners):
    body = pod()
    body["metadata"]["ownerReferences"] = owners
    assert read_pod(body) is None


def test_pod_that_is_being_deleted_says_so():
    body = pod()
    body["metadata"]["deletionTimestamp"] = "2026-11-16T12:01:00Z"
    assert read_pod(body).deleting


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pod_that_will_not_run_again_is_neither_hindered_nor_crashing(phase):
    seen = read_pod(pod(phase=phase, containers=[container(waiting("ErrImagePull"), ended(1))]))
    assert (seen.ended, seen.hindrance, seen.crash) == (True, None, None)


def test_pod_that_is_ready_is_not_hindered_whatever_is_said_of_its_containers():
    assert read_pod(pod(conditions=[("Ready", "True", "12:00:05")])).hindrance is None


def test_pod_that_a_node_has_taken_and_said_nothing_of_is_being_set_up():
    seen = read_pod(pod(conditions=[("PodScheduled", "True", "12:00:03")]))
    assert seen.hindrance == Hindrance(None, "its node is setting it up", at("12:00:03"))


def test_pod_whose_sandbox_stands_pulls_an_image_and_is_not_hindered():
    conditions = [("PodScheduled", "True", "12:00:03"), ("PodReadyToStartContainers", "True", "12:00:04")]
    assert read_pod(pod(conditions=conditions, containers=[container(waiting("ContainerCreating"))])).hindrance is None


def test_pod_whose_init_container_runs_is_not_hindered():
    inits = [container(running(), name="app")]
    assert read_pod(pod(inits=inits, containers=[container(waiting("PodInitializing"))])).hindrance is None


def test_pod_that_is_set_up_again_is_hindered_since_it_ended():
    containers = [container(waiting("ContainerCreating"), ended(137, finished="13:00:00"), restarts=1)]
    seen = read_pod(pod(conditions=[("PodScheduled", "True", "12:00:03")], containers=containers))
    assert (seen.hindrance.cause, seen.hindrance.since) == (None, at("13:00:00"))


def test_container_that_ran_and_cannot_be_started_again_is_hindered_since_its_end():
    containers = [
        container(running(), name="other"),
        container(waiting("ImagePullBackOff", "gone"), ended(1, finished="13:00:00"), restarts=1),
    ]
    seen = read_pod(pod(phase="Running", conditions=[("PodScheduled", "True", "12:00:03")], containers=containers))
    assert seen.hindrance == Hindrance(PlacementCause.IMAGE, "ImagePullBackOff: gone", at("13:00:00"))


def test_container_that_waited_for_the_init_containers_is_hindered_since_they_were_done():
    conditions = [("PodScheduled", "True", "12:00:03"), ("Initialized", "True", "12:08:00")]
    inits = [container(ended(0, "Completed"), name="migrate")]
    seen = read_pod(pod(conditions=conditions, inits=inits, containers=[container(waiting("ErrImagePull"))]))
    assert seen.hindrance == Hindrance(PlacementCause.IMAGE, "ErrImagePull", at("12:08:00"))


def test_init_container_is_hindered_since_the_pod_got_its_node():
    conditions = [("PodScheduled", "True", "12:00:03"), ("Initialized", "False", "12:08:00")]
    inits = [container(waiting("ErrImagePull"), name="app")]
    seen = read_pod(pod(conditions=conditions, inits=inits, containers=[container(waiting("PodInitializing"))]))
    assert seen.hindrance == Hindrance(PlacementCause.IMAGE, "container app: ErrImagePull", at("12:00:03"))


@pytest.mark.parametrize("moment", [None, "", "yesterday", "2026-02-31T12:00:00Z", 7])
def test_time_that_cannot_be_read_is_that_of_the_creation_and_without_that_no_time(moment):
    body = pod(node=None)
    body["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "lastTransitionTime": moment}]
    assert read_pod(body).hindrance.since == at("12:00:00")
    body["metadata"]["creationTimestamp"] = moment
    assert read_pod(body).hindrance.since == UNKNOWN
