"""A consumer to its ConfigMap, Deployment and PodDisruptionBudget."""

import json
from dataclasses import replace

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

from redrive.config import plan_config, read_config
from redrive_operator.names import labels_of, pod_selector
from redrive_operator.subject import Key
from redrive_operator.workload import WorkloadSettings, config_digest

RUNNERS = [PYTHON, COMMAND, HTTP]
ORDERS = Key("shop", "orders")


def objects(manifests):
    return [manifests.config_map, manifests.deployment, manifests.budget]


def annotations(manifests):
    return template_of(manifests)["metadata"]["annotations"]


# The objects.


def test_objects_are_what_server_side_apply_wants():
    kinds = [(body["apiVersion"], body["kind"], body["metadata"]["name"]) for body in objects(build())]
    assert kinds == [
        ("v1", "ConfigMap", "orders-redrive"),
        ("apps/v1", "Deployment", "orders"),
        ("policy/v1", "PodDisruptionBudget", "orders"),
    ]


def test_every_object_is_controlled_by_the_consumer():
    for body in objects(build()):
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("RetryingConsumer", "orders", True)


def test_every_object_is_in_the_consumers_namespace_with_its_labels():
    for body in objects(build()):
        assert (body["metadata"]["namespace"], body["metadata"]["labels"]) == ("shop", labels_of(ORDERS))


@pytest.mark.parametrize("runner", RUNNERS)
def test_same_consumer_gives_the_same_text(runner):
    made = consumer(runner, template=EVERYTHING)
    assert json.dumps(objects(build(made))) == json.dumps(objects(build(made)))


def test_changing_what_was_built_changes_nothing_that_is_built_later():
    before = json.dumps(objects(build()))
    container = template_of(build())["spec"]["containers"][0]
    container["resources"]["requests"]["cpu"] = "64"
    container["securityContext"]["capabilities"]["drop"].clear()
    assert json.dumps(objects(build())) == before


def test_config_is_one_that_a_worker_reads():
    made = consumer(HTTP)
    assert read_config(build(made).config_map["data"]["config.json"]) == plan_config(
        made, made.worker, queue_parks=True
    )


def test_replicas_that_are_not_said_are_left_to_whoever_scales():
    assert "replicas" not in build(replicas=None).deployment["spec"]


def test_no_replicas_is_a_number_too():
    assert build(replicas=0).deployment["spec"]["replicas"] == 0


def test_deployment_and_budget_choose_the_pods_of_the_template():
    manifests = build(consumer(name=f"{'a' * 60}.{'b' * 60}"))
    chosen = manifests.deployment["spec"]["selector"]["matchLabels"]
    assert chosen == manifests.budget["spec"]["selector"]["matchLabels"]
    assert chosen.items() <= template_of(manifests)["metadata"]["labels"].items()


def test_selector_is_what_the_status_says():
    assert build().deployment["spec"]["selector"]["matchLabels"] == pod_selector(ORDERS)


def test_quarter_of_the_workers_may_be_away_at_a_time():
    manifests = build()
    assert manifests.deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert manifests.budget["spec"]["maxUnavailable"] == "25%"


def test_worker_that_does_not_work_holds_up_no_drain_of_a_node():
    assert build().budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_consumer_without_worker_has_no_workload():
    with pytest.raises(ValueError, match="shop/orders has no worker"):
        build(replace(consumer(), worker=None), config=plan_config(consumer(), consumer().worker, queue_parks=True))


# What rolls the workers.


def test_changed_config_rolls():
    one, other = build(consumer(timeout="300s")), build(consumer(timeout="299s"))
    assert annotations(one)["redrive.dev/config"] != annotations(other)["redrive.dev/config"]


def test_changed_credentials_roll():
    assert template_of(build(digest="aaaaaa")) != template_of(build(digest="bbbbbb"))


def test_changed_image_rolls():
    assert template_of(build(consumer(image="a:1"))) != template_of(build(consumer(image="a:2")))


@pytest.mark.parametrize("runner", [PYTHON, COMMAND])
def test_another_runtime_of_http_workers_rolls_no_other(runner):
    made = consumer(runner)
    settings = WorkloadSettings("redrive/consumer:2", image_pull_policy="Always")
    assert template_of(build(made)) == template_of(build(made, settings=settings))


@pytest.mark.parametrize(
    ("runner", "digest"),
    [(PYTHON, "e3080069427f5bd7"), (COMMAND, "97d24eb187ef5b44"), (HTTP, "b795e1639d92247f")],
    ids=["python", "command", "http"],
)
def test_upgrade_of_the_operator_rolls_nothing_by_accident(runner, digest):
    # A change here rolls every worker there is: if it must be, it deserves a line in the changelog.
    template = template_of(build(consumer(runner)))
    said = {field: value for field, value in template["spec"].items() if value != ""}  # an account of no name is none
    assert config_digest(json.dumps({**template, "spec": said}, sort_keys=True)) == digest


def test_scaling_rolls_nothing():
    assert template_of(build(replicas=1)) == template_of(build(replicas=20))


# The pod.


@pytest.mark.parametrize("runner", RUNNERS)
def test_pod_is_as_the_restricted_standard_wants_it(runner):
    planned = pod(runner)
    assert planned["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    for container in [*planned["containers"], *planned.get("initContainers", [])]:
        context = container["securityContext"]
        assert (context["allowPrivilegeEscalation"], context["capabilities"]) == (False, {"drop": ["ALL"]})


@pytest.mark.parametrize("runner", RUNNERS)
def test_pod_has_no_token_and_no_links_to_services(runner):
    planned = pod(runner)
    assert (planned["automountServiceAccountToken"], planned["enableServiceLinks"]) == (False, False)


@pytest.mark.parametrize("runner", RUNNERS)
def test_worker_writes_to_its_temporary_folder_alone(runner):
    worker = worker_container(runner)
    writable = [mount["mountPath"] for mount in worker["volumeMounts"] if not mount.get("readOnly")]
    assert (worker["securityContext"]["readOnlyRootFilesystem"], writable) == (True, [TMP])


@pytest.mark.parametrize("runner", RUNNERS)
def test_every_mount_has_its_volume(runner):
    planned = pod(runner)
    mounted = {mount["name"] for mount in named(planned["containers"], "worker")["volumeMounts"]}
    assert mounted == {volume["name"] for volume in planned["volumes"]}


def test_config_and_credentials_are_mounted_where_the_worker_is_told_of_them():
    planned, worker = pod(), worker_container()
    folders = {mount["name"]: mount["mountPath"] for mount in worker["volumeMounts"]}
    config, broker = (volume["name"] for volume in planned["volumes"][:2])
    assert worker["command"][:3] == ["redrive-worker", "--config", f"{folders[config]}/config.json"]
    assert folders[broker] == "/etc/redrive/broker"
    assert named(planned["volumes"], config)["configMap"] == {"name": "orders-redrive"}
    assert named(planned["volumes"], broker)["secret"] == {"secretName": "rabbitmq"}


def test_probes_ask_the_port_of_the_metrics():
    worker = worker_container()
    probes = [worker[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert [probe["path"] for probe in probes] == ["/livez", "/livez", "/readyz"]
    assert {probe["port"] for probe in probes} == {worker["ports"][0]["name"]}
    assert worker["command"][3:] == ["--port", str(worker["ports"][0]["containerPort"])]


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe"])
def test_worker_that_fails_its_probe_is_not_waited_for_as_long_as_its_handlers(probe):
    assert worker_container(timeout="24h")[probe]["terminationGracePeriodSeconds"] == 10


def test_start_may_take_longer_than_an_import_may():
    probe = worker_container()["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] > 300


def test_worker_is_named_after_its_pod():
    assert worker_container()["env"] == [
        {"name": "HOSTNAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    ]


@pytest.mark.parametrize("runner", RUNNERS)
def test_log_level_of_the_operators_settings_reaches_the_worker(runner):
    manifests = build(consumer(runner), settings=WorkloadSettings("c", log_level="warning"))
    worker = template_of(manifests)["spec"]["containers"][0]
    assert worker["env"][1:] == [{"name": "REDRIVE_LOG_LEVEL", "value": "warning"}]


def test_log_level_of_the_template_counts_more():
    level = {"name": "REDRIVE_LOG_LEVEL", "value": "debug"}
    made = consumer(template={"spec": {"containers": [{"name": "worker", "env": [level]}]}})
    worker = template_of(build(made, settings=WorkloadSettings("c", log_level="warning")))["spec"]["containers"][0]
    assert worker["env"][1:] == [level]


# How long a pod may take to end.


@pytest.mark.parametrize(
    ("runner", "timeout", "immediate", "seconds"),
    [
        (PYTHON, "300s", {}, 360),
        (PYTHON, "100ms", {}, 61),
        (COMMAND, "24h", {}, 86_460),
        (PYTHON, "300s", {"tries": 5, "within": "10m"}, 360),  # one that is told to stop begins no further try
        (HTTP, "300s", {"within": "60s"}, 420),  # its server may not listen yet
    ],
)
def test_pod_has_the_time_of_a_try_and_some_more(runner, timeout, immediate, seconds):
    planned = pod(runner, timeout=timeout, immediate=immediate)
    assert planned["terminationGracePeriodSeconds"] == seconds


# http.


@pytest.mark.parametrize("runner", [PYTHON, COMMAND])
def test_worker_runs_in_the_users_image(runner):
    planned = pod(runner)
    assert named(planned["containers"], "worker")["image"] == "shop/orders:1.4"
    assert "initContainers" not in planned


def test_http_worker_is_the_runtime_beside_the_users_server():
    settings = WorkloadSettings("redrive/consumer:2", image_pull_policy="Never")
    planned = template_of(build(consumer(HTTP), settings=settings))["spec"]
    (worker,), (app,) = planned["containers"], planned["initContainers"]
    assert (worker["image"], worker["imagePullPolicy"]) == ("redrive/consumer:2", "Never")
    assert (app["name"], app["image"], app["restartPolicy"]) == ("app", "shop/orders:1.4", "Always")


def test_http_worker_starts_when_the_server_listens():
    (app,) = pod(HTTP)["initContainers"]
    assert app["startupProbe"]["tcpSocket"] == {"port": 8000}
