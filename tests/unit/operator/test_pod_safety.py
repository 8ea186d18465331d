"""A pod template gets nothing of the node's: everything that the Baseline standard forbids is refused at its place."""

import pytest
from cluster_objects import NOON, consumer_body, owned
from lent_broker import HELD, LentBroker, lent_tools
from workload_bed import COMMAND, EVERYTHING, HTTP, PYTHON, build, consumer, pod, template_of

from redrive.errors import SpecError
from redrive_operator.care import Care, Found
from redrive_operator.crews import Crews
from redrive_operator.history import read_time
from redrive_operator.holdings import Holdings
from redrive_operator.kube import Applied
from redrive_operator.observation import BrokerSeen, TopologySeen
from redrive_operator.settings import read_settings
from redrive_operator.tending import Tending
from redrive_operator.users import UserSeen
from redrive_operator.workforce import Workforce
from redrive_operator.workload import WorkloadSettings

SPEC = "spec.worker.podTemplate.spec"
SOCKET = {"name": "docker", "hostPath": {"path": "/var/run/docker.sock"}}


def refusal(call, *arguments, **options):
    with pytest.raises(SpecError) as caught:
        call(*arguments, **options)
    return caught.value


OF_THE_POD = {
    "hostPID": {"hostPID": True},
    "hostIPC": {"hostIPC": True},
    "hostNetwork": {"hostNetwork": True},
    "volumes[0].hostPath": {"volumes": [SOCKET]},
    "volumes[1].hostPath": {"volumes": [{"name": "scratch", "emptyDir": {}}, {**SOCKET, "emptyDir": {}}]},
    "securityContext.seccompProfile.type": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "securityContext.appArmorProfile.type": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
    "securityContext.seLinuxOptions.type": {"securityContext": {"seLinuxOptions": {"type": "spc_t"}}},
    "securityContext.seLinuxOptions.role": {"securityContext": {"seLinuxOptions": {"role": "sysadm_r"}}},
    "securityContext.windowsOptions.hostProcess": {"securityContext": {"windowsOptions": {"hostProcess": True}}},
    "securityContext.sysctls[0].name": {"securityContext": {"sysctls": [{"name": "kernel.core_pattern"}]}},
    "nodeName": {"nodeName": "control-plane"},
    "priorityClassName": {"priorityClassName": "system-node-critical"},
    "volumes[0].gitRepo": {"volumes": [{"name": "a", "gitRepo": {"repository": "https://example.com/a.git"}}]},
    "volumes[0].nfs": {"volumes": [{"name": "a", "nfs": {"server": "10.0.0.1", "path": "/"}}]},
    "volumes[0].flexVolume": {"volumes": [{"name": "a", "flexVolume": {"driver": "example.com/any"}}]},
    "volumes[0].aKindOfTheFuture": {"volumes": [{"name": "a", "aKindOfTheFuture": {}}]},
}

PRIVILEGED = {"securityContext": {"privileged": True}}
OF_A_CONTAINER = {
    "securityContext.privileged": PRIVILEGED,
    "securityContext.procMount": {"securityContext": {"procMount": "Unmasked"}},
    "securityContext.capabilities.add[0]": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}},
    "securityContext.capabilities.add[1]": {"securityContext": {"capabilities": {"add": ["CHOWN", "ALL"]}}},
    "securityContext.seLinuxOptions.user": {"securityContext": {"seLinuxOptions": {"user": "system_u"}}},
    "securityContext.seccompProfile.type": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "securityContext.windowsOptions.hostProcess": {"securityContext": {"windowsOptions": {"hostProcess": True}}},
    "ports[0].hostPort": {"ports": [{"containerPort": 80, "hostPort": 80}]},
}

OF_A_FURTHER_CONTAINER = {
    "livenessProbe.httpGet.host": {"livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}},
    "startupProbe.tcpSocket.host": {"startupProbe": {"tcpSocket": {"host": "10.0.0.1", "port": 22}}},
    "lifecycle.preStop.httpGet.host": {"lifecycle": {"preStop": {"httpGet": {"host": "10.0.0.1", "port": 80}}}},
}


@pytest.mark.parametrize("path", OF_THE_POD)
def test_what_is_the_nodes_is_refused_to_the_pod(path):
    assert refusal(pod, spec=OF_THE_POD[path]).path == f"{SPEC}.{path}"


@pytest.mark.parametrize("runner", [PYTHON, COMMAND, HTTP], ids=["python", "command", "http"])
@pytest.mark.parametrize("path", OF_A_CONTAINER)
def test_what_is_the_nodes_is_refused_to_the_worker(path, runner):
    worker = {"name": "worker", **OF_A_CONTAINER[path]}
    assert refusal(pod, runner, {"containers": [worker]}).path == f"{SPEC}.containers[0].{path}"


@pytest.mark.parametrize("field", ["containers", "initContainers"])
@pytest.mark.parametrize("path", [*OF_A_CONTAINER, *OF_A_FURTHER_CONTAINER])
def test_what_is_the_nodes_is_refused_to_any_other_container(path, field):
    other = {"name": "other", "image": "x", **{**OF_A_CONTAINER, **OF_A_FURTHER_CONTAINER}[path]}
    plain = {"name": "plain", "image": "x"}
    assert refusal(pod, PYTHON, {field: [plain, other]}).path == f"{SPEC}.{field}[1].{path}"


def test_container_that_is_attached_later_is_looked_at_too():
    other = {"name": "shell", "image": "x", "securityContext": {"privileged": True}}
    path = f"{SPEC}.ephemeralContainers[0].securityContext.privileged"
    assert refusal(pod, spec={"ephemeralContainers": [other]}).path == path


def test_sidecar_of_an_http_worker_is_looked_at_too():
    app = {"name": "app", "securityContext": {"privileged": True}}
    path = f"{SPEC}.initContainers[0].securityContext.privileged"
    assert refusal(pod, HTTP, {"initContainers": [app]}).path == path


@pytest.mark.parametrize("profile", ["unconfined", ""])
def test_apparmor_by_its_old_annotation_is_looked_at_too(profile):
    note = {"container.apparmor.security.beta.kubernetes.io/worker": profile}
    made = consumer(template={"metadata": {"annotations": note}})
    assert refusal(build, made).path == "spec.worker.podTemplate.metadata.annotations"


def annotated(name, told):
    return consumer(template={"metadata": {"annotations": {name: told}}})


OVERRIDES = '{"containers": [{"name": "istio-proxy", "securityContext": {"privileged": true}}]}'
FOR_A_MESH = {
    "sidecar.istio.io/userVolume": '[{"name": "node", "hostPath": {"path": "/"}}]',
    "sidecar.istio.io/userVolumeMount": "[]",
    "sidecar.istio.io/proxyImage": "x",
    "sidecar.istio.io/enableCoreDump": "true",
    "sidecar.istio.io/interceptionMode": "TPROXY",
    "sidecar.istio.io/bootstrapOverride": "x",
    "sidecar.istio.io/status": "{}",
    "sidecar.istio.io/ofTheFuture": "",
    "Sidecar.Istio.io/inject": "true",
    "proxy.istio.io/overrides": OVERRIDES,
    "proxy.istio.io/config": "binaryPath: /bin/sh",
    "inject.istio.io/templates": "gateway",
    "config.linkerd.io/proxy-image": "x",
    "config.linkerd.io/proxy-version": "x",
    "config.linkerd.io/init-image": "x",
    "config.linkerd.io/init-image-version": "x",
    "config.linkerd.io/debug-image": "x",
    "config.alpha.linkerd.io/any-image": "x",
    "sidecar.istio.io/proxyCPU": '1"\nsecurityContext: {privileged: true}',
    "sidecar.istio.io/proxyMemory": '1"',
    "traffic.sidecar.istio.io/includeOutboundIPRanges": "10.0.0.0/8\n",
    "status.sidecar.istio.io/port": "1\r",
    "istio.io/rev": "a b",
    "config.linkerd.io/proxy-log-level": "{{.}}",
    "linkerd.io/inject": "'",
}


@pytest.mark.parametrize("name", FOR_A_MESH)
def test_annotation_by_which_a_mesh_gives_what_is_the_nodes_is_refused(name):
    found = refusal(build, annotated(name, FOR_A_MESH[name]))
    assert found.path == "spec.worker.podTemplate.metadata.annotations"
    assert name in found.message


HARMLESS = {
    "sidecar.istio.io/inject": "false",
    "sidecar.istio.io/proxyCPU": "100m",
    "sidecar.istio.io/proxyMemoryLimit": "1Gi",
    "sidecar.istio.io/componentLogLevel": "misc:error,http:debug",
    "sidecar.istio.io/rewriteAppHTTPProbers": "true",
    "traffic.sidecar.istio.io/excludeOutboundPorts": "5672,15672",
    "traffic.sidecar.istio.io/includeOutboundIPRanges": "*",
    "prometheus.istio.io/merge-metrics": "false",
    "istio.io/rev": "1-20-1",
    "linkerd.io/inject": "enabled",
    "config.linkerd.io/proxy-cpu-request": "100m",
    "config.linkerd.io/proxy-log-level": "warn,linkerd=info",
    "example.com/istio.io": '{"a": "b"}',
    "notistio.io/overrides": '{"a": "b"}',
}


@pytest.mark.parametrize("name", HARMLESS)
def test_annotation_by_which_a_mesh_gives_nothing_of_the_nodes_is_taken(name):
    made = build(annotated(name, HARMLESS[name]))
    assert template_of(made)["metadata"]["annotations"][name] == HARMLESS[name]


@pytest.mark.parametrize("field", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize("name", ["istio-proxy", "istio-init", "istio-validation", "enable-core-dump"])
def test_container_that_a_mesh_would_merge_with_its_own_is_refused(name, field):
    found = refusal(pod, spec={field: [{"name": name, "image": "x", "command": ["sh"]}]})
    assert found.path == f"{SPEC}.{field}[0].name"


@pytest.mark.parametrize(
    "toleration", [{"operator": "Exists"}, {"key": "", "operator": "Exists", "effect": "NoSchedule"}]
)
def test_toleration_of_every_taint_is_refused(toleration):
    known = {"key": "spot", "operator": "Exists"}
    assert refusal(pod, spec={"tolerations": [known, toleration]}).path == f"{SPEC}.tolerations[1].key"


SAFE = [
    {"securityContext": {"privileged": False, "procMount": "Default", "capabilities": {"add": ["NET_BIND_SERVICE"]}}},
    {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "a"}}},
    {"securityContext": {"seLinuxOptions": {"type": "container_t", "level": "s0:c1"}}},
    {"ports": [{"containerPort": 80, "hostPort": 0}]},
]


@pytest.mark.parametrize("asked", SAFE, ids=str)
def test_what_the_standard_allows_is_taken(asked):
    [_, other] = pod(spec={"containers": [{"name": "other", "image": "x", **asked}]})["containers"]
    assert other == {"name": "other", "image": "x", **asked}


KINDS = ("configMap", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret")
OF_ANYBODY = [
    {"nodeName": ""},
    {"priorityClassName": "low"},
    {"priorityClassName": "systematic"},
    {"priorityClassName": ""},
    {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["kubernetes.default"]}]},
    {"volumes": [{"name": "plain"}, *({"name": kind.lower(), kind: {}} for kind in KINDS)]},
]


@pytest.mark.parametrize("asked", OF_ANYBODY, ids=str)
def test_what_is_nobodys_is_taken(asked):
    ((field, value),) = asked.items()
    found = pod(spec=asked)[field]
    assert found == value or found[-len(value) :] == value


@pytest.mark.parametrize("name", ["system-cluster-critical", "system-node-critical", "system-of-the-future"])
def test_priority_of_the_clusters_own_pods_is_refused_by_every_name_that_is_kept_for_them(name):
    assert "must not be" in refusal(pod, spec={"priorityClassName": name}).message


@pytest.mark.parametrize("field", ["nodeName", "priorityClassName"])
def test_name_that_is_no_text_is_refused_at_its_place(field):
    assert refusal(pod, spec={field: ["x"]}).path == f"{SPEC}.{field}"


@pytest.mark.parametrize("runner", [PYTHON, COMMAND, HTTP], ids=["python", "command", "http"])
def test_everything_that_a_person_usually_asks_for_is_taken(runner):
    build(consumer(runner, template=EVERYTHING))


@pytest.mark.parametrize("path", [path for path in OF_THE_POD if path != "hostNetwork"])
def test_platforms_team_may_lift_it(path):
    made = consumer(template={"spec": OF_THE_POD[path]})
    settings = WorkloadSettings("redrive/consumer:1", trusts_templates=True)
    assert template_of(build(made, settings=settings))["spec"]


@pytest.mark.parametrize(
    ("words", "trusted"), [([], False), (["--pod-security=baseline"], False), (["--pod-security=privileged"], True)]
)
def test_templates_are_trusted_only_by_a_setting(words, trusted):
    assert read_settings(words, {}).trusts_templates is trusted


# What an operator that was given these words makes of a consumer, all the way from its settings


def tell_and_write(asked, words=()):
    """Have an operator see to a consumer with this pod spec; give its condition Ready, and what was written for it."""
    worker = {"image": "shop/orders:1", **PYTHON, "podTemplate": {"spec": asked}}
    tools = lent_tools(consumer_body(connection="main", spec={"worker": worker}, **HELD), settings=words)
    written, statuses, holdings = [], [], Holdings()

    def apply(manifest, **_):
        written.append(manifest)
        return Applied(owned(manifest["kind"], manifest["metadata"]["name"]), "created")

    tools.kube.apply = apply
    tools.kube.patch_status = lambda _kind, _key, patch: statuses.append(patch)
    tools.now, tools.consumer_written = lambda: read_time(NOON), None
    tools.tending = Tending(tools.kube, holdings)
    tools.workforce = Workforce(tools.kube, Crews(), holdings, ask=lambda _: {}, clock=tools.clock, now=tools.now)
    (entry,) = tools.registry.consumers()
    user = UserSeen("user", "secret", "digest")
    found = Found(BrokerSeen("/", "Connection"), LentBroker().access(), TopologySeen(), user=user)
    Care(tools).see_to(entry, entry.consumer, found)
    (ready,) = [each for each in statuses[0]["conditions"] if each["type"] == "Ready"]
    return (ready["reason"], ready["message"]), [manifest["kind"] for manifest in written]


ASKED = {
    **OF_THE_POD,
    "containers[0].securityContext.privileged": {"containers": [{"name": "worker", **PRIVILEGED}]},
    "initContainers[0].securityContext.privileged": {"initContainers": [{"name": "a", "image": "x", **PRIVILEGED}]},
    "serviceAccountName": {"serviceAccountName": "admin"},
}


@pytest.mark.parametrize("path", ASKED)
def test_operator_that_was_told_nothing_refuses_it_and_writes_nothing(path):
    (reason, message), written = tell_and_write(ASKED[path])
    assert (reason, written) == ("InvalidSpec", [])
    assert message.startswith(f"{SPEC}.{path}: ")


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("--pod-security=privileged", "volumes[0].hostPath"),
        ("--pod-security=privileged", "initContainers[0].securityContext.privileged"),
        ("--worker-service-accounts=mail,admin", "serviceAccountName"),
    ],
)
def test_operator_that_was_told_so_writes_it(words, path):
    (reason, _), written = tell_and_write(ASKED[path], [words])
    assert (reason, written) == ("RollingOut", ["ConfigMap", "Deployment", "PodDisruptionBudget"])
