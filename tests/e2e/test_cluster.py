"""The cluster of the test bed behaves as a user's cluster does."""

import os

import pytest

from redrive_testbed import clusters, network
from redrive_testbed.control_plane import API_PORT, ETCD
from redrive_testbed.dockerless import Dockerless
from redrive_testbed.node import NodeSpec
from redrive_testbed.processes import Processes
from redrive_testbed.shell import run, succeeds

SERVE = "import http.server, socketserver; http.server.test(http.server.SimpleHTTPRequestHandler, port=8080)"
FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=5).status)"


def scheduled_as(namespace, name):
    conditions = namespace.get("pod", name)["status"].get("conditions", [])
    return next((c.get("reason", c["status"]) for c in conditions if c["type"] == "PodScheduled"), None)


def test_deployment_becomes_available(namespace, pod):
    template = pod("web", labels={"app": "web"})
    namespace.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": template["metadata"] | {"name": None}, "spec": template["spec"]},
            },
        }
    )
    namespace.kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=120s")


def test_pod_reaches_another_by_its_service_name(namespace, pod):
    namespace.apply(
        pod("server", command=["python3", "-c", SERVE], labels={"app": "server"}),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
        pod("client"),
    )
    namespace.kubectl("wait", "--for=condition=Ready", "pod/server", "pod/client", "--timeout=120s")

    def fetched():
        done = namespace.try_kubectl("exec", "client", "--", "python3", "-c", FETCH, "http://web/")
        return done.stdout.strip() == "200"

    namespace.wait_for("an answer by the Service's name", fetched)


def test_exec_and_logs_reach_into_a_pod(namespace, pod):
    namespace.apply(pod("talker", command=["sh", "-c", "echo said-in-the-log; sleep 600"]))
    namespace.kubectl("wait", "--for=condition=Ready", "pod/talker", "--timeout=120s")
    assert namespace.kubectl("exec", "talker", "--", "id", "-u").strip() == "65532"
    assert namespace.kubectl("logs", "talker").strip() == "said-in-the-log"


def test_pod_asking_for_100_cpus_stays_unschedulable_and_the_scheduler_says_why(namespace, pod):
    namespace.apply(pod("huge", container={"resources": {"requests": {"cpu": "100"}}}))
    namespace.wait_for("Unschedulable", lambda: scheduled_as(namespace, "huge") == "Unschedulable")
    said = namespace.wait_for("the scheduler's event", lambda: namespace.events("FailedScheduling"))
    assert "Insufficient cpu" in said[0]["message"]


def test_namespace_enforcing_restricted_refuses_a_root_pod_and_takes_ours(namespace, pod, image):
    namespace.kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    refused = namespace.try_kubectl("run", "root", f"--image={image}")
    assert refused.returncode != 0
    assert "violates PodSecurity" in refused.stderr
    namespace.apply(pod("ours"))
    namespace.kubectl("wait", "--for=condition=Ready", "pod/ours", "--timeout=120s")


def test_container_is_killed_at_its_memory_limit(namespace, pod):
    eat = "hoard = [bytearray(2**20) for _ in range(512)]"
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    namespace.apply(pod("eater", command=["python3", "-c", eat], container=limits, restartPolicy="Never"))

    def ended():
        statuses = namespace.get("pod", "eater")["status"].get("containerStatuses", [{}])
        return statuses[0].get("state", {}).get("terminated")

    assert namespace.wait_for("the end of the container", ended)["reason"] == "OOMKilled"


def test_service_account_may_do_only_what_its_role_says(namespace):
    namespace.kubectl("create", "serviceaccount", "reader")
    namespace.kubectl("create", "role", "reader", "--verb=get", "--resource=pods")
    namespace.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace.name}:reader")
    user = f"--as=system:serviceaccount:{namespace.name}:reader"
    assert namespace.try_kubectl("auth", "can-i", "get", "pods", user).stdout.strip() == "yes"
    assert namespace.try_kubectl("auth", "can-i", "get", "secrets", user).stdout.strip() == "no"


@pytest.fixture
def dockerless(cluster):
    if not isinstance(cluster, Dockerless):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("this is about the cluster without Docker")
    return cluster


@pytest.fixture
def second_node(dockerless, load_images):
    """Boot a small and tainted node beside the first, and pull its plug afterwards."""
    spec = NodeSpec(5, taints=("testbed=second:NoSchedule",), labels=("testbed=second",), reserved_cpu="1500m")
    try:
        dockerless.add_node(spec)
        load_images()
        yield spec
    finally:
        dockerless.remove_node(spec.index)


THERE = {"nodeSelector": {"testbed": "second"}}
TOLERANT = {"tolerations": [{"key": "testbed", "operator": "Exists"}], **THERE}
HALF_A_CPU = {"resources": {"requests": {"cpu": "400m"}}}


def test_second_node_takes_what_tolerates_it_and_fits_is_missed_when_it_goes_and_comes_back(
    namespace, pod, dockerless, second_node
):
    node = f"node/{second_node.name}"
    namespace.apply(pod("shy", **THERE), pod("bold", container=HALF_A_CPU, **TOLERANT))
    namespace.wait_for("Unschedulable", lambda: scheduled_as(namespace, "shy") == "Unschedulable")
    namespace.kubectl("wait", "--for=condition=Ready", "pod/bold", "--timeout=120s")
    assert namespace.get("pod", "bold")["spec"]["nodeName"] == second_node.name

    namespace.apply(pod("late", container=HALF_A_CPU, **TOLERANT))  # the node is full now
    namespace.wait_for("Unschedulable", lambda: scheduled_as(namespace, "late") == "Unschedulable")

    dockerless.kill_node(second_node.index)
    namespace.kubectl("wait", "--for=condition=Ready=Unknown", node, "--timeout=120s")
    dockerless.add_node(second_node)
    namespace.kubectl("wait", "--for=condition=Ready", node, "--timeout=120s")


def test_second_up_starts_nothing_and_one_after_a_crash_starts_what_died(dockerless, machine_places):
    processes = Processes(machine_places.state / "cluster")
    before = {name: processes.find(name) for name in processes.names()}
    clusters.up(machine_places)
    assert {name: processes.find(name) for name in processes.names()} == before

    died = {"kube-scheduler", "coredns", "node0"}
    for name in died:
        processes.kill(name)
    clusters.up(machine_places)
    after = {name: processes.find(name) for name in processes.names()}
    assert {name for name in before if after[name] != before[name]} == died
    assert all(after.values())


def test_neighbour_on_another_interface_does_not_reach_the_cluster(dockerless):
    """A network namespace stands for a neighbour: it sends packets for the bridge's address by a cable of its own."""
    neighbour = "redrive-neighbour"
    inside = ("ip", "netns", "exec", neighbour)
    ask = ("curl", "--insecure", "--silent", "--max-time", "3", f"https://{network.HOST}:{API_PORT}/version")
    run("ip", "netns", "add", neighbour)
    try:
        run("ip", "link", "add", "rdneighbour", "type", "veth", "peer", "name", "eth0", "netns", neighbour)
        run("ip", "addr", "add", "10.241.0.1/30", "dev", "rdneighbour")
        run("ip", "link", "set", "rdneighbour", "up")
        run(*inside, "ip", "addr", "add", "10.241.0.2/30", "dev", "eth0")
        run(*inside, "ip", "link", "set", "eth0", "up")
        run(*inside, "ip", "route", "add", str(network.NODES), "via", "10.241.0.1")
        assert not succeeds(*inside, *ask)
        run("nft", "delete", "table", "inet", network.WALL)
        assert succeeds(*inside, *ask), "without the wall it is reached, so the wall is what keeps it out"
    finally:
        network.raise_bridge()
        run("ip", "netns", "delete", neighbour)


def test_etcd_answers_nobody_without_our_certificate(dockerless):
    assert succeeds("curl", "--version")
    assert not succeeds("curl", "--insecure", "--silent", "--fail", f"{ETCD}/version")
