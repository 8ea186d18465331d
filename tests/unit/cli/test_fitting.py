"""How many more pods fit, counted as the scheduler counts."""

from decimal import Decimal

import pytest

from redrive_cli.fitting import find_bar, measure
from redrive_cli.pod_needs import count_requests, read_needs

READY = [{"type": "Ready", "status": "True"}]


def container(cpu=None, memory=None, **fields):
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"resources": {"requests": requests}, **fields}


def node(name="n1", *, cpu="4", memory="8Gi", pods="110", labels=None, taints=(), conditions=READY, **spec):
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": list(taints), **spec},
        "status": {"allocatable": allocatable, "conditions": conditions},
    }


def pod(node_name, *containers, phase="Running"):
    return {"spec": {"nodeName": node_name, "containers": list(containers)}, "status": {"phase": phase}}


WORKER = {"containers": [container("500m", "512Mi")]}


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        ({"containers": [container("100m"), container("200m", "1Gi")]}, {"cpu": "0.3", "memory": 1024**3}),
        # An init container runs before the others, so the larger of both counts.
        ({"initContainers": [container("1")], "containers": [container("300m")]}, {"cpu": "1"}),
        # A sidecar runs beside them, and before the init containers that follow it.
        (
            {
                "initContainers": [container("200m", restartPolicy="Always"), container("900m")],
                "containers": [container("300m")],
            },
            {"cpu": "1.1"},
        ),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, {"cpu": "2"}),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, {"cpu": "1.25"}),
        ({"containers": [{}]}, {}),
        ({}, {}),
    ],
)
def test_requests_are_summed_up_as_the_scheduler_does(spec, requests):
    wanted = {name: Decimal(amount) for name, amount in requests.items()}
    assert count_requests(spec) == {**wanted, "pods": 1}


def test_what_runs_out_first_limits_each_node_and_the_rest_is_added_up():
    nodes = [node("big"), node("small", cpu="1", memory="512Mi"), node("crowded", pods="3")]
    pods = [pod("big", container("1")), *[pod("crowded", container("10m"))] * 3]
    found = measure(read_needs(WORKER), nodes, pods)
    assert [(room.node, room.fits, room.limit) for room in found.rooms] == [
        ("big", 6, "cpu"),
        ("small", 1, "memory"),
        ("crowded", 0, "pods"),
    ]
    assert found.fits == 7


def test_pods_that_are_over_take_no_room():
    pods = [pod("n1", container("4"), phase=phase) for phase in ("Succeeded", "Failed")]
    assert measure(read_needs(WORKER), [node()], pods).fits == 8


def test_an_overcommitted_node_has_room_for_none_and_not_for_less():
    assert measure(read_needs(WORKER), [node(cpu="1")], [pod("n1", container("2"))]).fits == 0


def test_pods_that_ask_for_nothing_are_limited_by_their_number():
    found = measure(read_needs({"containers": [{}]}), [node(pods="110")], [])
    assert (found.fits, found.first) == (110, "pods")


def needs(**spec):
    return read_needs({**WORKER, **spec})


GPU_TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def affine(key, operator, *values):
    expression = {"key": key, "operator": operator, "values": list(values)}
    term = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}}


@pytest.mark.parametrize(
    ("spec", "there", "bar"),
    [
        ({}, node(), ""),
        ({}, node(conditions=[{"type": "Ready", "status": "Unknown"}]), "the node is not ready"),
        ({}, node(unschedulable=True), "cordoned"),
        ({}, node(taints=[GPU_TAINT]), "taint gpu=yes:NoSchedule, not tolerated"),
        ({}, node(taints=[{**GPU_TAINT, "effect": "PreferNoSchedule"}]), ""),
        ({"tolerations": [{"key": "gpu", "value": "yes"}]}, node(taints=[GPU_TAINT]), ""),
        ({"tolerations": [{"operator": "Exists"}]}, node(taints=[GPU_TAINT]), ""),
        (
            {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]},
            node(taints=[GPU_TAINT]),
            "gpu",
        ),
        ({"nodeSelector": {"disk": "ssd"}}, node(labels={"disk": "hdd"}), "nodeSelector disk=ssd does not match"),
        ({"nodeSelector": {"disk": "ssd"}}, node(labels={"disk": "ssd"}), ""),
        (affine("zone", "In", "a", "b"), node(labels={"zone": "b"}), ""),
        (affine("zone", "In", "a"), node(labels={"zone": "b"}), "its node affinity does not match"),
        (affine("zone", "NotIn", "a"), node(), ""),
        (affine("zone", "Exists"), node(), "affinity"),
        (affine("zone", "DoesNotExist"), node(), ""),
        (affine("cores", "Gt", "8"), node(labels={"cores": "16"}), ""),
        (affine("cores", "Gt", "8"), node(labels={"cores": "few"}), "affinity"),
        (affine("cores", "Lt", "8"), node(labels={"cores": "16"}), "affinity"),
    ],
)
def test_what_keeps_a_pod_off_a_node_is_said(spec, there, bar):
    found = find_bar(needs(**spec), there)
    assert bar in found
    assert bool(bar) == bool(found)


def test_a_barred_node_has_room_for_none_and_comes_last():
    found = measure(needs(), [node("a", unschedulable=True), node("b")], [])
    assert [(room.node, room.fits) for room in found.rooms] == [("b", 8), ("a", 0)]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"affinity": {"podAntiAffinity": {"x": 1}}}, "anti-affinity to other pods"),
        ({"topologySpreadConstraints": [{}]}, "topology spread constraints"),
        ({"volumes": [{"persistentVolumeClaim": {}}]}, "volumes that only some nodes can have"),
        ({"containers": [{"ports": [{"hostPort": 80}]}]}, "ports of the host"),
        ({"schedulerName": "batch"}, "a scheduler of its own"),
    ],
)
def test_what_is_not_worked_out_is_named(spec, named):
    assert needs(**spec).uncounted == (named,)


def test_the_usual_pod_leaves_nothing_unsaid():
    assert needs(schedulerName="default-scheduler", volumes=[{"configMap": {}}]).uncounted == ()
