"""What the door to Kubernetes does, call by call."""

import pytest

from redrive_cli.errors import ClusterError, Missing
from redrive_cli.kube import CONNECTIONS, CONSUMERS, PODS


def pod(name, namespace="shop"):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}


def test_a_list_is_read_page_by_page_and_says_what_its_objects_are(api, cluster):
    api.page = 2
    api.add(*[pod(f"p{number}") for number in range(5)])
    found = list(cluster.list(PODS))
    assert [body["metadata"]["name"] for body in found] == ["p0", "p1", "p2", "p3", "p4"]
    assert {(body["apiVersion"], body["kind"]) for body in found} == {("v1", "Pod")}
    assert [path for verb, path in api.asked] == ["/api/v1/namespaces/shop/pods"] * 3


def test_a_namespace_that_is_named_wins_over_that_of_the_context(api, cluster):
    api.add(pod("here"), pod("there", "other"))
    assert [body["metadata"]["name"] for body in cluster.list(PODS, "other")] == ["there"]
    assert len(list(cluster.list(PODS, everywhere=True))) == 2


def test_what_is_not_there_may_be_none_or_an_error(cluster):
    assert cluster.find(CONNECTIONS, "main") is None
    with pytest.raises(Missing, match="there is no BrokerConnection main"):
        cluster.get(CONNECTIONS, "main")


def test_a_patch_changes_what_it_names_and_leaves_the_rest(api, cluster):
    api.add({**pod("x"), "spec": {"a": 1, "b": 2}})
    assert cluster.patch(PODS, "x", {"spec": {"a": 3}})["spec"] == {"a": 3, "b": 2}


def test_a_person_s_rights_are_asked_for_in_the_words_of_roles(api, cluster):
    asked = []
    api.may = lambda attributes: asked.append(attributes) or attributes["verb"] == "get"
    assert cluster.may("get", CONSUMERS, "shop")
    assert not cluster.may("create", PODS, "shop", part="portforward")
    assert [(each["group"], each["resource"], each["subresource"]) for each in asked] == [
        ("redrive.dev", "retryingconsumers", ""),
        ("", "pods", "portforward"),
    ]


def test_the_log_of_a_pod_is_read_line_by_line_whatever_is_in_it(api, cluster):
    api.logs["orders-1"] = "one\ntwo \ufffd\nthree"
    assert list(cluster.read_log("orders-1", container="worker", tail=10)) == ["one", "two \ufffd", "three"]
    with pytest.raises(Missing, match="there is no Pod orders-2 in namespace shop"):
        list(cluster.read_log("orders-2", container="worker"))


def test_an_answer_that_is_no_json_is_told(api, cluster):
    api.answer = lambda *_: (200, b"<html>hello</html>")
    with pytest.raises(ClusterError, match="did not answer in JSON: is a proxy in between"):
        cluster.get(PODS, "x")
