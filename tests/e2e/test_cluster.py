"""The cluster of the test bed behaves as a user's cluster does."""

import pytest

from redrive_testbed.dockerless import Dockerless
from redrive_testbed.node import NodeSpec

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
def second_node(cluster, load_images):
    """Boot a tainted node beside the first, and pull its plug afterwards."""
    if not isinstance(cluster, Dockerless):
        pytest.skip("nodes are added and removed on the cluster without Docker only")
    cluster.add_node(NodeSpec(5, taints=("testbed=second:NoSchedule",), labels=("testbed=second",)))
    load_images()
    yield "node5"
    cluster.remove_node(5)


def test_second_node_takes_what_tolerates_its_taint_and_is_missed_when_it_goes(namespace, pod, cluster, second_node):
    there = {"nodeSelector": {"testbed": "second"}}
    tolerations = [{"key": "testbed", "operator": "Exists"}]
    namespace.apply(pod("shy", **there), pod("bold", tolerations=tolerations, **there))
    namespace.wait_for("Unschedulable", lambda: scheduled_as(namespace, "shy") == "Unschedulable")
    namespace.kubectl("wait", "--for=condition=Ready", "pod/bold", "--timeout=120s")
    assert namespace.get("pod", "bold")["spec"]["nodeName"] == second_node

    cluster.kill_node(5)
    namespace.kubectl("wait", "--for=condition=Ready=Unknown", f"node/{second_node}", "--timeout=120s")
