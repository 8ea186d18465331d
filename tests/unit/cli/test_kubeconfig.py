"""Which cluster is meant, and in which namespace: as kubectl would have it."""

import pytest
from api_server import write_kubeconfig

from redrive_cli.errors import ClusterError, Misuse
from redrive_cli.kube.kinds import CONSUMERS
from redrive_cli.kube.kubeconfig import find_cluster
from redrive_cli.kube.refusals import Request
from redrive_cli.kube.transport import Call


@pytest.fixture(autouse=True)
def nobody_s_home(monkeypatch):
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.delenv("KUBECONFIG", raising=False)


@pytest.fixture
def config(tmp_path):
    return write_kubeconfig(tmp_path, "http://127.0.0.1:1", namespace="shop")


def test_the_context_says_which_namespace(config):
    found = find_cluster(config, None)
    assert (found.context, found.namespace, found.inside) == ("here", "shop", False)
    assert find_cluster(config, "there").namespace == "default"


def test_a_cluster_that_was_found_is_printed_without_the_credentials_for_it(config):
    found = find_cluster(config, None)
    assert found.configuration.host == "http://127.0.0.1:1"
    assert repr(found) == "Found(context='here', namespace='shop', inside=False)"


def test_what_is_sent_is_not_shown_when_printed():
    body = {"kind": "Secret", "stringData": {"password": "hunter2"}}
    assert "hunter2" not in repr(Call(Request("patch", CONSUMERS), body=body))


def test_the_variable_is_taken_where_no_flag_is(config, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", f"/nonexistent:{config}")
    assert find_cluster(None, None).context == "here"


def test_an_unknown_context_is_told_with_those_that_are_near(config):
    with pytest.raises(Misuse, match=r"--context ther: .* did you mean there or here\?|did you mean there"):
        find_cluster(config, "ther")


def test_no_kubeconfig_at_all_is_said():
    with pytest.raises(ClusterError, match=r"there is no cluster to talk to: ~/\.kube/config, from the usual place"):
        find_cluster(None, None)
    with pytest.raises(ClusterError, match="from --kubeconfig, does not exist"):
        find_cluster("/nowhere", None)


@pytest.mark.parametrize("text", ["", "[]", "{", "a: b", "current-context: x", "- token: hunter2\n  : ["])
def test_a_broken_kubeconfig_is_one_sentence_without_what_is_in_it(tmp_path, text):
    path = tmp_path / "broken"
    path.write_text(text)
    with pytest.raises(ClusterError, match="kubeconfig") as caught:
        find_cluster(str(path), None)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pod_without_a_kubeconfig_is_its_own_account(tmp_path, monkeypatch):
    for name, text in (("token", "t"), ("ca.crt", "x"), ("namespace", "shop\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = find_cluster(None, None, account=tmp_path)
    assert (found.namespace, found.inside) == ("shop", True)
