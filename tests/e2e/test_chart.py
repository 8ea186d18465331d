"""The chart installed by the real Helm: by default, with monitors, for some namespaces only, and before its kinds."""

import json
import re

import pytest
from e2e.installation import VALUES
from e2e.releases import ACCOUNT, CRDS, HERE, begin_work, install, release_objects, serve_one

from redrive_testbed import chart
from redrive_testbed.chart import CHART, RELEASE
from redrive_testbed.errors import CommandFailed
from redrive_testbed.operator_manifests import NAME

MONITORS = ("ServiceMonitor", "PodMonitor", "PrometheusRule")


def operator_log(kubectl):
    return kubectl("logs", f"deployment/{NAME}", *HERE, "--tail=-1").stdout


def test_chart_installs_by_default_says_the_next_step_and_passes_its_own_test(helm, must):
    install(helm)
    notes = helm("get", "notes", RELEASE, *HERE)
    assert "kind: RetryingConsumer" in notes
    assert all(kind in notes.split("Skipped")[1] for kind in MONITORS)
    tested = helm("test", RELEASE, *HERE, "--logs", "--timeout", "120s")
    must("delete", "pod", f"{NAME}-test", *HERE)
    assert re.search(r"Phase:\s+Succeeded", tested)
    assert "/metrics ok" in tested


@pytest.fixture
def without_monitors(kubectl):
    """Have a cluster that knows nothing of the Prometheus operator; a person's own may, and is left alone."""
    if kubectl("get", "crd", "servicemonitors.monitoring.coreos.com").returncode == 0:
        pytest.skip("this cluster has the Prometheus operator")


def test_monitors_on_a_cluster_that_does_not_know_them_are_refused_and_nothing_is_left(helm, must, without_monitors):
    with pytest.raises(CommandFailed, match=r'no matches for kind "(ServiceMonitor|PodMonitor|PrometheusRule)"'):
        install(helm, monitoring={"prometheusOperator": True})
    assert release_objects(must, "deployments,services,serviceaccounts,clusterroles") == []


@pytest.fixture
def stub_monitors(must, without_monitors):
    """Have kinds of the Prometheus operator's names, which take anything."""
    crds = [_stub(kind) for kind in MONITORS]
    names = [f"crd/{crd['metadata']['name']}" for crd in crds]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": crds})
    must("apply", "--server-side", "--filename", "-", stdin=listed)
    must("wait", "--for=condition=Established", "--timeout=60s", *names)
    yield
    must("delete", *names)


def _stub(kind):
    group, plural = "monitoring.coreos.com", f"{kind.lower()}s"
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": anything}],
        },
    }


def test_monitors_are_installed_where_their_kinds_are(stub_monitors, helm, must):
    """The kinds are asked for first, and so go last: Helm cannot remove an object whose kind is gone."""
    monitoring = {"prometheusOperator": True, "dashboard": {"enabled": True}}
    install(helm, monitoring=monitoring, networkPolicy={"enabled": True})
    found = release_objects(must, ",".join(f"{kind.lower()}s.monitoring.coreos.com" for kind in MONITORS))
    assert {name.split(".")[0] for name in found} == {kind.lower() for kind in MONITORS}
    assert len(release_objects(must, "networkpolicies,configmaps")) == 3  # a dashboard each
    assert "Skipped" not in helm("get", "notes", RELEASE, *HERE)


def test_operator_of_some_namespaces_serves_those_and_may_do_nothing_elsewhere(helm, kubectl, namespace, bare_shop):
    def may(*words):
        return kubectl("auth", "can-i", *words, ACCOUNT).stdout.strip() == "yes"

    install(helm, watchNamespaces=[bare_shop.name], identity="e2e")
    namespace.apply({**bare_shop.consumer("elsewhere"), "metadata": {"name": "elsewhere"}})
    begin_work(bare_shop)
    assert may("get", "secrets", f"--namespace={bare_shop.name}")
    assert not any(
        may(verb, kind, f"--namespace={namespace.name}")
        for verb in ("get", "list", "watch", "create", "patch", "delete")
        for kind in ("secrets", "pods", "configmaps", "deployments.apps", "retryingconsumers.redrive.dev")
    )
    assert not may("list", "brokerconnections.redrive.dev")
    assert not may("get", "namespaces/kube-system")
    assert "status" not in namespace.get("rcon/elsewhere")
    assert not re.search(r"(?i)forbidden|does not allow it|traceback", operator_log(kubectl))
    namespace.kubectl("delete", "rcon/elsewhere", "--timeout=30s")


def test_operator_that_is_there_before_its_kinds_says_so_and_begins_when_they_come(helm, kubectl, must, bare_shop):
    must("delete", "crd", *CRDS, "--ignore-not-found", "--timeout=60s")
    values = chart.merge(chart.IMAGES, VALUES, {"crds": {"enabled": False}})
    helm("install", RELEASE, str(CHART), *HERE, values=values)
    bare_shop.namespace.wait_for("a word of what is missing", lambda: "cannot start yet" in operator_log(kubectl), 60)
    install(helm)
    serve_one(bare_shop, "late")
