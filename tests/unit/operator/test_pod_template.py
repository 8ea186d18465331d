"""What a person asks of the pods, laid over what the operator plans."""

import pytest
from workload_bed import (
    COMMAND,
    EVERYTHING,
    HTTP,
    PYTHON,
    TMP,
    build,
    consumer,
    named,
    pod,
    template_of,
    worker_container,
)

from redrive.spec.worker import METRICS_PORT
from redrive_operator.names import LABELS
from redrive_operator.pod_template import merge_pod_template


def names(items):
    return [item["name"] for item in items]


# Containers.


def test_further_containers_come_after_the_worker():
    several = [{"name": "proxy", "image": "p"}, {"name": "worker", "tty": True}, {"name": "shipper", "image": "s"}]
    assert names(pod(spec={"containers": several})["containers"]) == ["worker", "proxy", "shipper"]


def test_further_container_is_as_it_was_written():
    proxy = {"name": "proxy", "image": "p", "command": ["proxy"], "livenessProbe": {"exec": {"command": ["true"]}}}
    assert named(pod(spec={"containers": [proxy]})["containers"], "proxy") == proxy


def test_what_is_asked_of_the_worker_leaves_the_rest_of_it():
    planned, asked = worker_container(), worker_container(asked={"workingDir": "/srv"})
    assert asked == {**planned, "workingDir": "/srv"}


def test_variable_is_added_behind_the_planned_ones():
    env = worker_container(asked={"env": [{"name": "SHOP", "value": "1"}]})["env"]
    assert (names(env), env[-1]) == (["HOSTNAME", "SHOP"], {"name": "SHOP", "value": "1"})


def test_port_is_added_to_that_of_the_metrics():
    ports = worker_container(asked={"ports": [{"name": "admin", "containerPort": 8081}]})["ports"]
    assert [port["containerPort"] for port in ports] == [METRICS_PORT, 8081]


@pytest.mark.parametrize("path", [TMP, f"{TMP}/", "tmp", f"/{TMP}"])
def test_mount_at_the_same_place_replaces_the_planned_one(path):
    asked = {"name": "scratch", "mountPath": path}
    mounts = worker_container(asked={"volumeMounts": [asked]})["volumeMounts"]
    assert mounts[2:] == [asked]


def test_mount_elsewhere_is_added():
    mounts = worker_container(asked={"volumeMounts": [{"name": "data", "mountPath": f"{TMP}/data"}]})["volumeMounts"]
    assert names(mounts) == ["redrive-config", "redrive-broker", "redrive-tmp", "data"]


def test_security_context_is_merged_field_by_field():
    asked = {"readOnlyRootFilesystem": False, "capabilities": {"add": ["NET_BIND_SERVICE"]}}
    assert worker_container(asked={"securityContext": asked})["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        "readOnlyRootFilesystem": False,
    }


def test_list_without_keys_is_replaced():
    asked = {"capabilities": {"drop": ["NET_RAW"]}}
    assert worker_container(asked={"securityContext": asked})["securityContext"]["capabilities"] == {
        "drop": ["NET_RAW"]
    }


# Resources.


def test_request_counts_more_than_the_planned_one():
    resources = worker_container(asked={"resources": {"requests": {"cpu": "2"}}})["resources"]
    assert resources == {"requests": {"cpu": "2", "memory": "64Mi"}}


def test_limit_takes_the_place_of_the_planned_request():
    # A limit below the request would be refused; without a request Kubernetes requests the limit.
    resources = worker_container(asked={"resources": {"limits": {"memory": "32Mi"}}})["resources"]
    assert resources == {"limits": {"memory": "32Mi"}, "requests": {"cpu": "50m"}}


def test_request_beside_a_limit_stays():
    asked = {"limits": {"memory": "1Gi"}, "requests": {"memory": "512Mi"}}
    resources = worker_container(asked={"resources": asked})["resources"]
    assert resources == {"limits": {"memory": "1Gi"}, "requests": {"cpu": "50m", "memory": "512Mi"}}


# Init containers, which start in the order of the list.


def test_init_containers_come_before_the_app():
    several = [{"name": "migrate", "image": "m"}, {"name": "vault", "image": "v"}]
    assert names(pod(HTTP, {"initContainers": several})["initContainers"]) == ["migrate", "vault", "app"]


def test_app_that_is_named_starts_where_it_is_named():
    several = [{"name": "migrate", "image": "m"}, {"name": "app", "tty": True}, {"name": "warm-up", "image": "w"}]
    assert names(pod(HTTP, {"initContainers": several})["initContainers"]) == ["migrate", "app", "warm-up"]


def test_app_is_merged_with_what_is_asked_of_it():
    asked = {"name": "app", "command": ["serve"], "securityContext": {"runAsUser": 101}}
    app = named(pod(HTTP, {"initContainers": [asked]})["initContainers"], "app")
    assert (app["image"], app["restartPolicy"], app["command"]) == ("shop/orders:1.4", "Always", ["serve"])
    assert app["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsUser": 101,
    }


def test_probe_of_the_app_is_replaced_as_a_whole():
    probe = {"httpGet": {"path": "/healthz", "port": 8000}}
    app = named(pod(HTTP, {"initContainers": [{"name": "app", "startupProbe": probe}]})["initContainers"], "app")
    assert app["startupProbe"] == probe


@pytest.mark.parametrize("runner", [PYTHON, COMMAND])
def test_where_there_is_no_sidecar_app_is_a_name_like_any_other(runner):
    app = {"name": "app", "image": "shop/admin:1"}
    assert named(pod(runner, {"containers": [app]})["containers"], "app") == app


# The pod.


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nodeSelector", {"pool": "workers"}),
        ("tolerations", [{"key": "spot", "operator": "Exists"}]),
        ("affinity", {"podAntiAffinity": {}}),
        ("topologySpreadConstraints", [{"maxSkew": 1}]),
        ("hostAliases", [{"ip": "10.0.0.1", "hostnames": ["legacy"]}]),
        ("imagePullSecrets", [{"name": "registry"}]),
        ("schedulerName", "batch"),
        ("priorityClassName", "low"),
        ("hostUsers", False),
        ("enableServiceLinks", True),
        ("shareProcessNamespace", True),
        ("hostNetwork", False),
        ("automountServiceAccountToken", False),
        ("aFieldOfTheFuture", {"a": 1}),
    ],
)
def test_field_of_the_pod_is_as_it_was_asked_for(field, value):
    assert pod(spec={field: value}) == {**pod(), field: value}


def test_security_of_the_pod_is_merged_field_by_field():
    context = pod(spec={"securityContext": {"fsGroup": 1000, "runAsNonRoot": False}})["securityContext"]
    assert context == {"fsGroup": 1000, "runAsNonRoot": False, "seccompProfile": {"type": "RuntimeDefault"}}


def test_volume_is_added_to_the_planned_ones():
    volumes = pod(spec={"volumes": [{"name": "scratch", "emptyDir": {}}]})["volumes"]
    assert names(volumes) == ["redrive-config", "redrive-broker", "redrive-tmp", "scratch"]


@pytest.mark.parametrize("field", ["tolerations", "hostAliases", "topologySpreadConstraints", "imagePullSecrets"])
def test_list_of_the_pod_is_added_to_a_planned_one(field):
    planned = {"metadata": {}, "spec": {field: [{"a": 1}]}}
    assert merge_pod_template({"spec": {field: [{"key": "b"}]}}, planned)["spec"][field] == [{"a": 1}, {"key": "b"}]


def test_labels_and_annotations_are_added():
    metadata = template_of(build(consumer(template=EVERYTHING)))["metadata"]
    assert metadata["labels"]["team"] == "shop"
    assert set(LABELS) < set(metadata["labels"])
    assert set(metadata["annotations"]) == {"redrive.dev/config", "redrive.dev/broker", "example.com/owner"}


def test_null_means_left_out():
    asked = {"tolerations": None, "containers": [{"name": "worker", "image": None, "resources": {"limits": None}}]}
    assert pod(spec=asked) == pod()


@pytest.mark.parametrize("runner", [PYTHON, COMMAND, HTTP])
def test_everything_at_once_is_taken(runner):
    merged = pod(runner, EVERYTHING["spec"])
    assert names(merged["containers"]) == ["worker", "proxy"]
    assert merged["nodeSelector"] == EVERYTHING["spec"]["nodeSelector"]
