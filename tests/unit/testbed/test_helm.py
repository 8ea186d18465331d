import json
from pathlib import Path

import pytest

from redrive_testbed import operator_manifests
from redrive_testbed.chart import Helm, merge
from redrive_testbed.errors import Refused

TELLING = """#!/bin/sh
printf '{"words": "%s", "kubeconfig": "%s", "data": "%s", "values": ' "$*" "$KUBECONFIG" "$HELM_DATA_HOME"
cat
printf '}'
"""


@pytest.fixture
def program(tmp_path):
    """Have a program in the place of Helm that tells what it was told."""
    path = tmp_path / "helm"
    path.write_text(TELLING)
    path.chmod(0o755)
    return path


def test_values_go_in_with_their_types_and_folders_are_not_the_persons(program, tmp_path):
    told = json.loads(Helm(program, tmp_path / "home", Path("/a/kubeconfig"))("lint", values={"a": [1, "1", None]}))
    assert told["words"] == "lint --values -"
    assert told["values"] == {"a": [1, "1", None]}
    assert (told["kubeconfig"], told["data"]) == ("/a/kubeconfig", f"{tmp_path}/home/data")


def test_helm_without_a_cluster_does_not_take_the_persons(program, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/home/person/.kube/config")
    told = json.loads(Helm(program, tmp_path / "home")("lint", values={}))
    assert not Path(told["kubeconfig"]).exists()
    assert "person" not in told["kubeconfig"]


def test_values_are_merged_by_their_keys_and_lists_as_a_whole():
    first = {"image": {"tag": "dev", "pullPolicy": "Always"}, "ports": [1, 2], "interval": 5}
    second = {"image": {"tag": "other"}, "ports": [3], "interval": {}}
    merged = merge(first, second)
    assert merged == {"image": {"tag": "other", "pullPolicy": "Always"}, "ports": [3], "interval": {}}
    assert first["image"] == {"tag": "dev", "pullPolicy": "Always"}


def test_account_of_the_test_bed_has_the_rights_that_the_chart_gives():
    (role,) = [body for body in operator_manifests.rights() if body["kind"] == "ClusterRole"]
    resources = {resource for rule in role["rules"] for resource in rule["resources"]}
    assert {"retryingconsumers", "brokerconnections", "secrets", "namespaces"} <= resources


def test_rules_that_the_chart_has_not_are_refused():
    with pytest.raises(Refused, match=r"redrive\.none"):
        operator_manifests.read_rules("redrive.none")
