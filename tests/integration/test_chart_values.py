"""Values that cannot work: Helm refuses each by its name, before anything is changed, and takes those that can."""

import pytest

from redrive_testbed.chart import CHART, RELEASE, Helm
from redrive_testbed.errors import CommandFailed
from redrive_testbed.places import Places

DIGEST = f"sha256:{'a' * 64}"

# Where Helm says that the fault is; of a name that it does not know, where that stands, and the name.
BAD = [
    ("replicaCount", {"replicaCount": 2}),
    ("image/tag", {"image": {"tag": 1.1}}),
    ("image/digest", {"image": {"digest": "sha256:short"}}),
    ("image/repository", {"image": {"repository": "redrive/operator:1.0"}}),
    ("image/pullPolicy", {"image": {"pullPolicy": "Sometimes"}}),
    ("pullPolicy", {"consumerImage": {"pullPolicy": "Always"}}),
    ("imagePullSecrets/0", {"imagePullSecrets": ["registry"]}),
    ("watchNamespaces", {"watchNamespaces": "shop"}),
    ("watchNamespaces/0", {"watchNamespaces": ["Shop"], "identity": "east"}),
    ("identity", {"watchNamespaces": ["shop"]}),
    ("identity", {"identity": "two words"}),
    ("workerServiceAccounts", {"workerServiceAccounts": "orders"}),
    ("workerServiceAccounts/0", {"workerServiceAccounts": ["shop/orders"]}),
    ("workerServiceAccounts/1", {"workerServiceAccounts": ["orders", "orders-*"]}),
    ("interval", {"interval": 90}),
    ("interval", {"interval": "15s"}),
    ("threads", {"threads": 0}),
    ("logLevel", {"logLevel": "verbose"}),
    ("extraEnv/0/name", {"extraEnv": [{"name": "REDRIVE_PORT", "value": "1"}]}),
    ("extraEnv", {"extraEnv": {"HTTPS_PROXY": "http://proxy"}}),
    ("install", {"crds": {"install": True}}),
    ("serviceAccount/name", {"serviceAccount": {"create": False}}),
    ("resources/limits/memory", {"resources": {"limits": {"memory": "512MB"}}}),
    ("limit", {"resources": {"limit": {"memory": "512Mi"}}}),
    ("commonLabels/app.kubernetes.io", {"commonLabels": {"app.kubernetes.io/managed-by": "redrive"}}),
    ("commonLabels", {"commonLabels": {"two words": "x"}}),
    ("podLabels/team", {"podLabels": {"team": "two words"}}),
    ("podAnnotations/audited", {"podAnnotations": {"audited": True}}),
    ("priorityClassName", {"priorityClassName": "System Critical"}),
    ("nodeAffinty", {"affinity": {"nodeAffinty": {}}}),
    ("tolerations/0", {"tolerations": [{"taint": "spot"}]}),
    ("topologySpreadConstraints/0", {"topologySpreadConstraints": [{"maxSkew": 1}]}),
    ("networkPolicy/brokers/ports", {"networkPolicy": {"brokers": {"ports": []}}}),
    ("networkPolicy/apiServer/ports/0", {"networkPolicy": {"apiServer": {"ports": ["https"]}}}),
    ("monitoring/prometheusOperator", {"monitoring": {"prometheusOperator": "yes"}}),
    ("monitoring/serviceMonitor/interval", {"monitoring": {"serviceMonitor": {"interval": "30"}}}),
    ("monitoring/rules/alertLabels/severity", {"monitoring": {"rules": {"alertLabels": {"severity": "page"}}}}),
    ("monitoring/rules/alertLabels", {"monitoring": {"rules": {"alertLabels": {"my-team": "platform"}}}}),
    ("monitoring/rules/runbookUrl", {"monitoring": {"rules": {"runbookUrl": "wiki"}}}),
    ("monitoring/dashboard/labels/folder", {"monitoring": {"dashboard": {"labels": {"folder": 1}}}}),
    ("fullnameOverride", {"fullnameOverride": "Redrive"}),
    ("fullnameOverride", {"fullnameOverride": "true"}),
    ("networkPolicy/brokers", {"networkPolicy": {"brokers": {"ports": None}}}),
    ("networkPolicy/dns", {"networkPolicy": {"dns": {"ports": None}}}),
    ("image", {"image": {"repository": None}}),
    ("resources", {"resources": {"claims": [{"name": "gpu"}]}}),
    ("monitoring/rules/alertLabels/namespace", {"monitoring": {"rules": {"alertLabels": {"namespace": "x"}}}}),
    ("monitoring/rules/alertLabels/__name__", {"monitoring": {"rules": {"alertLabels": {"__name__": "x"}}}}),
    ("monitoring/podMonitor/interval", {"monitoring": {"podMonitor": {"interval": "30s1m"}}}),
]

GOOD = [
    {"enabled": True, "global": {"region": "east"}},
    {"image": {"repository": "localhost:5000/redrive", "tag": "1.2-rc.1_x", "digest": DIGEST}},
    {"watchNamespaces": ["shop"], "identity": "Cluster_East.1"},
    {"watchNamespaces": []},
    {"interval": 1, "threads": 64},
    {"interval": 59.5},
    {"workerServiceAccounts": ["orders", "mail.shop"]},
    {"workerServiceAccounts": ["*"]},
    {"extraEnv": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
    {"serviceAccount": {"create": False, "name": "mine.example"}},
    {"resources": {"requests": {"cpu": 0.5, "memory": 134217728}, "limits": {"nvidia.com/gpu": 1}}},
    {"resources": {"limits": {"memory": None}}},
    {"commonLabels": {"example.com/team": "", "app.kubernetes.io/part-of": "platform"}},
    {"priorityClassName": "123", "watchNamespaces": None},
    {"tolerations": [{"operator": "Exists"}]},
    {"monitoring": {"podMonitor": {"interval": "1m30s"}, "rules": {"runbookUrl": "http://wiki/redrive"}}},
    {"networkPolicy": {"metricsFrom": [{"namespaceSelector": {}}], "dns": {"ports": [53, 5353]}}},
]


@pytest.fixture(scope="module")
def helm():
    return Helm.of(Places.from_environment())


@pytest.fixture(scope="module")
def render(helm):
    """Render one object of the chart: values are judged before anything is rendered."""
    words = ("template", RELEASE, str(CHART), "--show-only", "templates/deployment.yaml")
    return lambda values: helm(*words, values=values)


@pytest.mark.parametrize(("name", "values"), BAD, ids=[f"{name}-{place}" for place, (name, _) in enumerate(BAD)])
def test_value_that_cannot_work_is_refused_by_its_name(render, name, values):
    with pytest.raises(CommandFailed, match="values don't meet the specifications") as refused:
        render(values)
    assert name in str(refused.value)


@pytest.mark.parametrize("called", ["1st", "redrive.east"])
def test_release_that_no_service_can_be_called_after_needs_a_name(helm, called):
    words = ("template", called, str(CHART))
    with pytest.raises(CommandFailed, match="fullnameOverride must be set"):
        helm(*words, values={})
    assert "name: own" in helm(*words, values={"fullnameOverride": "own"})


@pytest.mark.parametrize("values", GOOD, ids=str)
def test_value_that_can_work_is_taken(render, values):
    assert "kind: Deployment" in render(values)
