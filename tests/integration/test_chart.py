"""The chart as the real Helm renders it, without a cluster: what each value does, and what is refused by which name."""

import json

import pytest
import yaml

from redrive_operator.settings import read_settings
from redrive_testbed import operator_manifests
from redrive_testbed.chart import CHART, Helm
from redrive_testbed.operator_manifests import NAME, NAMESPACE
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.pod_security import RESTRICTED

DIGEST = f"sha256:{'a' * 64}"
SOME = {"watchNamespaces": ["shop", "mail"], "identity": "east"}
EVERYTHING = {
    "monitoring": {"prometheusOperator": True, "dashboard": {"enabled": True}},
    "networkPolicy": {"enabled": True},
    "commonLabels": {"team": "platform"},
}


@pytest.fixture(scope="module")
def helm():
    return Helm.of(Places.from_environment())


@pytest.fixture(scope="module")
def render(helm):
    """Render the chart with some values; give the objects, or those of one kind."""

    def render(kind=None, /, **values):
        return [body for body in helm.render(values=values) if kind in (None, body["kind"])]

    return render


@pytest.fixture(scope="module")
def render_pod(render):
    """Render the operator's pod with some values."""

    def render_pod(**values):
        (deployment,) = render("Deployment", **values)
        return deployment["spec"]["template"]["spec"]

    return render_pod


# The whole


@pytest.mark.parametrize("values", [{}, EVERYTHING, SOME], ids=["defaults", "everything", "some-namespaces"])
def test_lint_finds_nothing_to_complain_of(helm, values):
    assert "0 chart(s) failed" in helm("lint", str(CHART), "--strict", values=values)


def test_every_object_of_a_full_chart_is_labelled_and_none_is_taken_for_a_worker(render):
    labels = [body["metadata"]["labels"] for body in render(**EVERYTHING)]
    assert {each["app.kubernetes.io/managed-by"] for each in labels} == {"Helm"}
    assert {each["team"] for each in labels} == {"platform"}


def test_defaults_need_no_kind_that_a_cluster_might_not_have(render):
    own = (
        "v1",
        "apps/v1",
        "rbac.authorization.k8s.io/v1",
        "admissionregistration.k8s.io/v1",
        "apiextensions.k8s.io/v1",
    )
    assert {body["apiVersion"] for body in render()} == set(own)


@pytest.mark.parametrize(
    ("called", "name"),
    [("redrive", NAME), ("east", "east-redrive-operator"), ("x" * 53, f"{'x' * 38}-redrive-operator")],
    ids=["usual", "another", "longest"],
)
def test_name_of_everything_has_that_of_the_release_and_what_it_is(helm, called, name):
    text = helm("template", called, str(CHART), "--show-only", "templates/deployment.yaml")
    assert yaml.safe_load(text)["metadata"]["name"] == name


# The kinds


def test_rendered_kinds_are_those_of_the_repository(render):
    wanted = [yaml.safe_load(path.read_text()) for path in sorted((REPOSITORY / "crds").glob("*.yaml"))]
    rendered = render("CustomResourceDefinition")
    assert specs(rendered) == specs(wanted)
    assert {body["metadata"]["annotations"]["helm.sh/resource-policy"] for body in rendered} == {"keep"}


def specs(kinds):
    return {kind["metadata"]["name"]: kind["spec"] for kind in kinds}


def test_kinds_can_be_left_to_somebody_else_or_go_with_the_release(render):
    assert not render("CustomResourceDefinition", crds={"enabled": False})
    kinds = render("CustomResourceDefinition", crds={"keep": False})
    assert not any("annotations" in kind["metadata"] for kind in kinds)


# The rights


def test_rights_are_those_of_the_test_beds_account(render):
    (role,), (binding,) = render("ClusterRole"), render("ClusterRoleBinding")
    known = {body["kind"]: body for body in operator_manifests.rights()}
    assert role["rules"] == known["ClusterRole"]["rules"]
    assert (binding["roleRef"], binding["subjects"]) == tuple(
        known["ClusterRoleBinding"][part] for part in ("roleRef", "subjects")
    )


def test_install_for_some_namespaces_has_nothing_of_the_whole_cluster(render):
    objects = render(**SOME, crds={"enabled": False})
    assert {body["metadata"]["namespace"] for body in objects} == {"shop", "mail", NAMESPACE}
    roles = [body for body in objects if body["kind"] == "Role"]
    assert {role["metadata"]["namespace"] for role in roles} == {"shop", "mail"}
    assert all(role["rules"] == operator_manifests.read_rules("redrive.rules") for role in roles)


def test_monitor_of_some_namespaces_looks_at_no_others(render):
    (monitor,) = render("PodMonitor", **SOME, monitoring={"prometheusOperator": True})
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["shop", "mail"]}


def test_rights_can_be_left_to_somebody_else(render):
    values = {"rbac": {"create": False}, "serviceAccount": {"create": False, "name": "mine"}}
    kinds = {body["kind"] for body in render(**values)}
    assert kinds.isdisjoint({"ClusterRole", "ClusterRoleBinding", "ServiceAccount"})
    (deployment,) = render("Deployment", **values)
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def test_policy_of_pods_is_about_the_account_that_the_operator_has(render):
    (policy,) = render("ValidatingAdmissionPolicy", serviceAccount={"name": "mine"})
    (condition,) = policy["spec"]["matchConditions"]
    assert condition["expression"].endswith(f"'system:serviceaccount:{NAMESPACE}:mine'")
    assert not render("ValidatingAdmissionPolicy", podPolicy={"enabled": False})


# The pod


def test_operator_is_one_and_never_two_on_purpose(render):
    (deployment,) = render("Deployment")
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})


def test_pod_meets_the_restricted_standard_with_a_file_system_that_is_read_only(render_pod):
    pod = render_pod()
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == RESTRICTED


def test_image_is_named_by_tag_or_by_digest(render_pod):
    def image(**said):
        return render_pod(image=said)["containers"][0]["image"]

    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert image() == f"redrive/operator:{version}"
    assert image(repository="registry.example:5000/a/b", tag="1.2") == "registry.example:5000/a/b:1.2"
    assert image(digest=DIGEST) == f"redrive/operator@{DIGEST}"
    assert image(tag="1.2", digest=DIGEST) == f"redrive/operator:1.2@{DIGEST}"


def test_settings_of_the_operator_are_what_the_values_say(render_pod):
    pod = render_pod(
        **SOME,
        interval=2.5,
        threads=16,
        logLevel="debug",
        podSecurity="privileged",
        workerServiceAccounts=["orders", "mail.shop"],
        consumerImage={"digest": DIGEST},
        extraEnv=[{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    )
    told = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    settings = read_settings([], {name: value for name, value in told.items() if value})
    assert (settings.interval, settings.threads, settings.log_level) == (2.5, 16, "debug")
    assert (settings.watch_namespaces, settings.identity) == (("shop", "mail"), "east")
    assert settings.trusts_templates
    assert settings.worker_service_accounts == ("orders", "mail.shop")
    assert settings.consumer_image == f"redrive/consumer@{DIGEST}"
    assert told["HTTPS_PROXY"] == "http://proxy:3128"


def test_no_worker_gets_anything_of_its_node_or_an_account_unless_the_values_say_so(render_pod):
    told = {each["name"]: each.get("value") for each in render_pod()["containers"][0]["env"]}
    settings = read_settings([], {name: value for name, value in told.items() if value})
    assert (settings.trusts_templates, settings.worker_service_accounts) == (False, ())


AS_GIVEN = {
    "imagePullSecrets": [{"name": "registry"}],
    "priorityClassName": "platform",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
}


@pytest.mark.parametrize("name", AS_GIVEN)
def test_what_kubernetes_knows_of_a_pod_is_handed_on_as_it_is(render_pod, name):
    assert name not in render_pod()
    assert render_pod(**AS_GIVEN)[name] == AS_GIVEN[name]


def test_container_gets_its_resources_and_pull_policy(render_pod):
    resources = {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    (container,) = render_pod(resources=resources, image={"pullPolicy": "Always"})["containers"]
    assert (container["resources"], container["imagePullPolicy"]) == (resources, "Always")


def test_pod_is_labelled_and_annotated_and_still_known_by_its_selector(render):
    (deployment,) = render(
        "Deployment", podLabels={"a": "b", "team": "own"}, podAnnotations={"c": "d"}, commonLabels={"team": "platform"}
    )
    metadata, chosen = deployment["spec"]["template"]["metadata"], deployment["spec"]["selector"]["matchLabels"]
    assert metadata["annotations"] == {"c": "d"}
    assert metadata["labels"] == {**chosen, "a": "b", "team": "own"}
    (service,) = render("Service")
    assert service["spec"]["selector"] == chosen


# Monitoring


def test_monitors_are_found_by_their_labels_and_scrape_as_often_as_is_said(render):
    monitoring = {
        "prometheusOperator": True,
        "labels": {"release": "stack"},
        "serviceMonitor": {"interval": "30s", "scrapeTimeout": "10s"},
        "podMonitor": {"interval": "1m"},
    }
    (service,), (pod,) = (render(kind, monitoring=monitoring) for kind in ("ServiceMonitor", "PodMonitor"))
    assert {each["metadata"]["labels"]["release"] for each in (service, pod)} == {"stack"}
    (of_operator,), (of_workers,) = service["spec"]["endpoints"], pod["spec"]["podMetricsEndpoints"]
    assert (of_operator["interval"], of_operator["scrapeTimeout"], of_workers["interval"]) == ("30s", "10s", "1m")
    assert "scrapeTimeout" not in of_workers
    assert of_operator["honorLabels"] is True
    assert of_workers["honorLabels"] is False


@pytest.mark.parametrize(
    ("part", "kind"),
    [("serviceMonitor", "ServiceMonitor"), ("podMonitor", "PodMonitor"), ("rules", "PrometheusRule")],
)
def test_each_part_of_monitoring_can_be_left_out(render, part, kind):
    assert not render(kind, monitoring={"prometheusOperator": True, part: {"enabled": False}})


def test_alarms_of_a_prometheus_rule_are_those_of_the_file(render):
    (rule,) = render("PrometheusRule", monitoring={"prometheusOperator": True, "labels": {"release": "stack"}})
    assert rule["spec"] == yaml.safe_load((CHART / "alarms" / "rules.yaml").read_text())
    assert rule["metadata"]["labels"]["release"] == "stack"


def test_alarms_get_labels_and_point_to_where_the_runbooks_are(render):
    rules = {"alertLabels": {"team": "platform"}, "runbookUrl": "https://wiki.example/redrive/"}
    (rule,) = render("PrometheusRule", monitoring={"prometheusOperator": True, "rules": rules})
    alarms = [one for group in rule["spec"]["groups"] for one in group["rules"] if "alert" in one]
    assert all(one["labels"]["team"] == "platform" and one["labels"]["severity"] for one in alarms)
    pages = {one["alert"]: one["annotations"]["runbook_url"] for one in alarms}
    assert pages == {name: f"https://wiki.example/redrive/{name}.md" for name in pages}


def test_dashboards_are_rendered_as_the_files_are(render):
    dashboard = {"enabled": True, "labels": {"grafana": "yes"}, "annotations": {"grafana_folder": "Redrive"}}
    bodies = render("ConfigMap", monitoring={"dashboard": dashboard})
    files = {path.name: json.loads(path.read_text()) for path in (CHART / "dashboards").glob("*.json")}
    assert {name: json.loads(text) for body in bodies for name, text in body["data"].items()} == files
    assert len({body["metadata"]["name"] for body in bodies}) == len(files)
    for body in bodies:
        assert body["metadata"]["labels"]["grafana"] == "yes"
        assert body["metadata"]["annotations"] == dashboard["annotations"]
