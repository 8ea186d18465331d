"""What a pod template must not say: each is refused at its place, with a sentence, and is in the documentation."""

from pathlib import Path

import pytest
from workload_bed import HTTP, PYTHON, build, consumer, pod, worker_container

from redrive.errors import SpecError

TEMPLATE = "spec.worker.podTemplate"
SPEC = f"{TEMPLATE}.spec"
WORKER = f"{SPEC}.containers[0]"
APP = f"{SPEC}.initContainers[0]"
DOCUMENT = (Path(__file__).parents[3] / "docs" / "pods.md").read_text()

HIDING = ["/", "/etc", "/etc/", "etc", "", "."]
HIDING += ["/etc/redrive", "/etc/redrive/", "/etc/redrive/broker", "/etc//redrive/x", "//etc/redrive", "etc/redrive"]
HIDING += ["/etc/x/../redrive/config"]

PROBE = {"httpGet": {"path": "/", "port": 8000}}


def refusal(call, *arguments, **options):
    with pytest.raises(SpecError) as caught:
        call(*arguments, **options)
    return caught.value


OWNED_BY_THE_WORKER = {
    "image": "shop/other:1",
    "command": ["python"],
    "args": ["--verbose"],
    "startupProbe": PROBE,
    "livenessProbe": PROBE,
    "readinessProbe": PROBE,
    "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
    "restartPolicy": "Never",
    "restartPolicyRules": [],
}


@pytest.mark.parametrize("runner", [PYTHON, HTTP])
@pytest.mark.parametrize("field", OWNED_BY_THE_WORKER)
def test_field_of_the_worker_that_is_the_operators_is_refused(field, runner):
    error = refusal(worker_container, runner, {field: OWNED_BY_THE_WORKER[field]})
    assert error.path == f"{WORKER}.{field}"
    assert error.message.startswith("must be left out: ")


@pytest.mark.parametrize("field", OWNED_BY_THE_WORKER)
def test_every_owned_field_of_the_worker_is_documented(field):
    assert f"`{field}`" in DOCUMENT


@pytest.mark.parametrize(("runner", "said"), [(PYTHON, "is spec.worker.image"), (HTTP, "is Redrive's own")])
def test_image_of_the_worker_is_refused_with_where_to_write_it(runner, said):
    assert said in refusal(worker_container, runner, {"image": "a"}).message


@pytest.mark.parametrize("field", ["command", "args", "livenessProbe", "startupProbe", "lifecycle"])
def test_app_may_have_what_the_worker_may_not(field):
    app = {"name": "app", field: OWNED_BY_THE_WORKER[field]}
    assert pod(HTTP, {"initContainers": [app]})["initContainers"][0][field] == OWNED_BY_THE_WORKER[field]


@pytest.mark.parametrize("field", ["image", "restartPolicy", "restartPolicyRules"])
def test_field_of_the_app_that_is_the_operators_is_refused(field):
    error = refusal(pod, HTTP, {"initContainers": [{"name": "app", field: OWNED_BY_THE_WORKER[field]}]})
    assert (error.path, error.message.split(":")[0]) == (f"{APP}.{field}", "must be left out")


def test_app_among_the_main_containers_is_sent_to_the_init_containers():
    error = refusal(pod, HTTP, {"containers": [{"name": "app", "resources": {}}]})
    assert error.path == WORKER
    assert "write it under initContainers" in error.message


@pytest.mark.parametrize("runner", [PYTHON, HTTP])
def test_worker_among_the_init_containers_is_sent_to_the_containers(runner):
    error = refusal(pod, runner, {"initContainers": [{"name": "worker", "env": []}]})
    assert error.path == f"{APP}.name"
    assert "write it under containers" in error.message


@pytest.mark.parametrize("name", ["HOSTNAME", "REDRIVE_METRICS_PORT", "REDRIVE_", "REDRIVE_LOG_LEVELS"])
def test_variable_of_the_workers_own_is_refused(name):
    error = refusal(worker_container, asked={"env": [{"name": "A", "value": "1"}, {"name": name, "value": "1"}]})
    assert error.path == f"{WORKER}.env[1].name"


@pytest.mark.parametrize("name", ["REDRIVE_LOG_LEVEL", "REDRIVER", "hostname", "PYTHONPATH"])
def test_other_variable_is_taken(name):
    assert worker_container(asked={"env": [{"name": name, "value": "1"}]})["env"][-1]["name"] == name


@pytest.mark.parametrize("key", ["mountPath", "devicePath"])
@pytest.mark.parametrize("path", HIDING)
def test_mount_over_what_the_worker_is_told_by_is_refused(path, key):
    field = {"mountPath": "volumeMounts", "devicePath": "volumeDevices"}[key]
    error = refusal(worker_container, asked={field: [{"name": "data", key: path}]})
    assert error.path == f"{WORKER}.{field}[0].{key}"


@pytest.mark.parametrize("path", ["/etc/redriver", "/etc/ssl", "/etc/redrive.d", "/srv/etc/redrive", "/var"])
def test_mount_elsewhere_is_taken(path):
    mount = {"name": "data", "mountPath": path}
    assert mount in worker_container(asked={"volumeMounts": [mount]})["volumeMounts"]


def test_mount_over_it_in_another_container_is_taken():
    proxy = {"name": "proxy", "image": "p", "volumeMounts": [{"name": "data", "mountPath": "/etc"}]}
    assert proxy in pod(spec={"containers": [proxy]})["containers"]


@pytest.mark.parametrize("container", ["worker", "proxy"])
def test_volume_of_the_operators_is_mounted_nowhere_else(container):
    several = [{"name": container, "volumeMounts": [{"name": "redrive-broker", "mountPath": "/x"}]}]
    assert refusal(pod, spec={"containers": several}).path == f"{WORKER}.volumeMounts[0].name"


@pytest.mark.parametrize("port", [9464, 9464.0])
@pytest.mark.parametrize(("container", "runner"), [("worker", PYTHON), ("proxy", PYTHON), ("worker", HTTP)])
def test_port_of_the_metrics_is_refused_in_any_container(container, runner, port):
    several = [{"name": container, "ports": [{"containerPort": 80}, {"containerPort": port}]}]
    assert refusal(pod, runner, {"containers": several}).path == f"{WORKER}.ports[1].containerPort"


def test_port_named_metrics_is_refused_in_the_worker():
    error = refusal(worker_container, asked={"ports": [{"name": "metrics", "containerPort": 80}]})
    assert error.path == f"{WORKER}.ports[0].name"


def test_port_named_metrics_is_taken_in_another_container():
    proxy = {"name": "proxy", "ports": [{"name": "metrics", "containerPort": 80}]}
    assert proxy in pod(spec={"containers": [proxy]})["containers"]


@pytest.mark.parametrize("field", ["containers", "initContainers", "volumes"])
def test_name_like_the_operators_own_is_refused(field):
    assert refusal(pod, spec={field: [{"name": "redrive-x"}]}).path == f"{SPEC}.{field}[0].name"


def test_network_of_the_node_is_refused_with_its_reason():
    error = refusal(pod, spec={"hostNetwork": True})
    assert error.path == f"{SPEC}.hostNetwork"
    assert "port 9464" in error.message


@pytest.mark.parametrize("label", ["app.kubernetes.io/name", "app.kubernetes.io/managed-by"])
def test_label_of_the_operators_is_refused(label):
    error = refusal(build, consumer(template={"metadata": {"labels": {label: "x"}}}))
    assert error.path == f"{TEMPLATE}.metadata.labels"


def test_other_label_of_the_same_family_is_taken():
    template = {"metadata": {"labels": {"app.kubernetes.io/part-of": "shop"}}}
    labels = build(consumer(template=template)).deployment["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/part-of"] == "shop"


@pytest.mark.parametrize(
    ("spec", "path", "said"),
    [
        ({"containers": {}}, "containers", "must be a list"),
        ({"containers": ["worker"]}, "containers[0]", "must be an object"),
        ({"containers": [{}]}, "containers[0].name", "is required"),
        ({"containers": [{"name": 7}]}, "containers[0].name", "must be a string"),
        ({"containers": [{"name": "a"}, {"name": "a"}]}, "containers[1].name", 'is "a", as in'),
        ({"volumes": [{"name": "a"}, {"name": "a"}]}, "volumes[1].name", 'is "a", as in'),
        ({"hostNetwork": "yes"}, "hostNetwork", "must be true or false"),
        ({"securityContext": []}, "securityContext", "must be an object"),
        ({"tolerations": [None]}, "tolerations[0]", "must be text"),
    ],
)
def test_malformed_field_of_the_pod_is_refused_at_its_place(spec, path, said):
    error = refusal(pod, spec=spec)
    assert error.path == f"{SPEC}.{path}"
    assert error.message.startswith(said)


@pytest.mark.parametrize(
    ("asked", "path", "said"),
    [
        ({"env": {"A": "1"}}, "env", "must be a list"),
        ({"env": [{"name": "A"}, {"name": "A"}]}, "env[1].name", 'is "A", as in'),
        ({"resources": "1Gi"}, "resources", "must be an object"),
        ({"resources": {"limits": []}}, "resources.limits", "must be an object"),
        ({"ports": [9000]}, "ports[0]", "must be an object"),
        ({"volumeMounts": [{"name": "a"}]}, "volumeMounts[0].mountPath", "is required"),
        ({"volumeMounts": [{"mountPath": "/a"}, {"mountPath": "/a/"}]}, "volumeMounts[1].mountPath", 'is "/a", as in'),
        ({"volumeMounts": [{"mountPath": "/a", "name": 1}]}, "volumeMounts[0].name", "must be a string"),
        ({"securityContext": {"capabilities": {"drop": "ALL"}}}, "securityContext.capabilities.drop", "must be a list"),
    ],
)
def test_malformed_field_of_the_worker_is_refused_at_its_place(asked, path, said):
    error = refusal(worker_container, asked=asked)
    assert error.path == f"{WORKER}.{path}"
    assert error.message.startswith(said)
