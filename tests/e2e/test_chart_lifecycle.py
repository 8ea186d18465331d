"""A release of the chart upgraded, rolled back and removed by the real Helm: what people made stays as it is."""

import json
import re
import shutil
import subprocess

import pytest
from e2e.installation import VALUES
from e2e.releases import CRDS, HERE, begin_work, handle_one, install, observe, release_objects, roll_back, serve_one

from redrive_testbed import chart
from redrive_testbed.chart import CHART, RELEASE
from redrive_testbed.errors import CommandFailed
from redrive_testbed.places import REPOSITORY

pytestmark = pytest.mark.timeout(600)  # an operator starts up to four times in one test


@pytest.fixture
def previous_chart(tmp_path):
    """Give the chart of the last release; before the first, this one with less in it and a lower version."""
    words = ["git", "-C", str(REPOSITORY), "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD"]
    tag = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    if tag:
        words = ["git", "-C", str(REPOSITORY), "archive", tag, "charts/redrive"]
        archive = subprocess.run(words, capture_output=True, check=True).stdout
        subprocess.run(["tar", "--extract", "--directory", str(tmp_path)], input=archive, check=True)
        return tmp_path / "charts" / "redrive"
    old = tmp_path / "redrive"
    shutil.copytree(CHART, old)
    for path in (old / "templates").glob("validatingadmission*.yaml"):
        path.unlink()
    _edit(old / "Chart.yaml", r"^version: .*$", "version: 0.0.1")
    _edit(old / "templates" / "crds" / "retryingconsumer.yaml", r"^.*name: Schedule, .*\n", "")
    return old


def _edit(path, pattern, replacement):
    text, count = re.subn(pattern, replacement, path.read_text(), flags=re.MULTILINE)
    assert count == 1, f"{path} has no {pattern}"
    path.write_text(text)


def test_upgrade_and_rollback_leave_objects_workers_and_queues_as_they_are(helm, must, bare_shop, previous_chart):
    def kind():
        return json.loads(must("get", "crd/retryingconsumers.redrive.dev", "--output=json"))["spec"]

    install(helm, previous_chart)
    old_kind = kind()
    before = begin_work(bare_shop)
    install(helm)
    new_kind = kind()
    serve_one(bare_shop, "after-upgrade")
    handle_one(bare_shop, "upgraded")
    assert observe(bare_shop) == before
    roll_back(helm, "1")
    assert kind() == old_kind
    serve_one(bare_shop, "after-rollback")
    handle_one(bare_shop, "rolled-back")
    assert observe(bare_shop) == before
    install(helm)  # and forward again: the release's history is whole
    assert kind() == new_kind
    assert observe(bare_shop) == before


def test_upgrade_that_cannot_start_costs_no_message_and_is_rolled_back(helm, bare_shop):
    install(helm)
    missing = {"image": {"tag": "missing", "pullPolicy": "Never"}}
    before = begin_work(bare_shop)
    words = ("upgrade", RELEASE, str(CHART), *HERE, "--wait", "--timeout", "20s")
    with pytest.raises(CommandFailed):
        helm(*words, values=chart.merge(chart.IMAGES, VALUES, missing))
    handle_one(bare_shop, "without-operator")
    roll_back(helm)
    serve_one(bare_shop, "after-rollback")
    assert observe(bare_shop) == before


def test_uninstalled_release_leaves_objects_workers_and_queues_and_a_new_one_takes_them_over(
    helm, kubectl, must, bare_shop
):
    install(helm)
    before = begin_work(bare_shop)
    chart.uninstall(helm)
    assert release_objects(must, "deployments,services,serviceaccounts,clusterroles,clusterrolebindings") == []
    assert [crd for crd in CRDS if kubectl("get", f"crd/{crd}").returncode] == []
    assert observe(bare_shop) == before
    handle_one(bare_shop, "without-operator")
    install(helm)
    serve_one(bare_shop, "taken-over")
    assert observe(bare_shop) == before


def test_kinds_stay_when_a_release_leaves_them_to_somebody_else(helm, kubectl):
    install(helm)
    install(helm, crds={"enabled": False})
    assert [crd for crd in CRDS if kubectl("get", f"crd/{crd}").returncode] == []


def test_documented_order_of_removal_leaves_nothing_but_the_queues(helm, must, bare_shop):
    install(helm)
    begin_work(bare_shop)
    bare_shop.publish({"kept": {}}, queue="redrive.dead.orders")
    must("delete", "retryingconsumers", "--all", "--all-namespaces", "--timeout=60s")
    must("delete", "brokerconnections", "--all", "--timeout=60s")
    chart.uninstall(helm)
    must("delete", "crd", *CRDS, "--timeout=60s")
    bare_shop.namespace.wait_for("the workers' end", lambda: not bare_shop.namespace.get("deployments")["items"], 60)
    assert {"orders", "redrive.dead.orders"} <= bare_shop.queues()
    assert set(bare_shop.letters()) == {"kept"}
    install(helm)  # for whoever comes next: the kinds are there again
