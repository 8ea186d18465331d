"""`redrive` on a real cluster, as a person types it, with the kubeconfig that the person has."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from e2e import gateway
from typing_commands import type_command

from redrive_testbed.rabbitmq_release import TESTED

AMQP, MANAGEMENT = 5672, 15672


@pytest.fixture(scope="module")
def till(open_shop):
    """Give a shop with a consumer that works, for all tests of this file that only look at it."""
    with open_shop(TESTED[-1]) as shop:
        container = {"resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}
        shop.apply_ready(shop.consumer(worker=shop.worker(container=container)))
        shop.publish({"bad": {"fail": True}})
        shop.namespace.wait_for("a dead letter", lambda: shop.ready("redrive.dead.orders") == 1, 60)
        yield shop


@pytest.fixture(scope="module")
def redrive(cluster, till):
    """Give a function that types a command in the shop's namespace; it must end with `code`."""

    def run(*words, code=0, kubeconfig=None, **how):
        env = {"KUBECONFIG": str(kubeconfig or cluster.kubeconfig)}
        done = type_command(*words, "-n", till.name, env=env, **how)
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture
def outsider(till, cluster, must, tmp_path):
    """Give the kubeconfig of somebody who may look at consumers, and do nothing else."""
    verbs = ["get", "list"]
    rules = [{"apiGroups": ["redrive.dev"], "resources": ["retryingconsumers"], "verbs": verbs}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "outsider"}}
    subject = {"kind": "ServiceAccount", "name": "outsider", "namespace": till.name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "outsider"}
    till.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "outsider"}},
        {**role, "kind": "Role", "rules": rules},
        {**role, "kind": "RoleBinding", "subjects": [subject], "roleRef": reference},
    )
    token = must("create", "token", "outsider", "--namespace", till.name).strip()
    config = yaml.safe_load(Path(cluster.kubeconfig).read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def test_status_counts_at_the_broker_and_names_workers_and_what_happened(redrive, till):
    told = json.loads(redrive("status", "orders", "-o", "json").stdout)
    assert (told["ready"], told["messages"]["dead"], told["messages"]["ready"]) == (True, 1, 0)
    assert told["notAsked"] is None
    assert told["pods"] == [pod["metadata"]["name"] for pod in till.pods()]
    shown = redrive("status", "orders").stdout
    assert f"{till.name}/orders: ready" in shown
    assert "redrive.dead.orders: 1; see `redrive dead list orders`" in shown
    assert f"counted    just now, at {till.host}:5672 ({till.broker.settings.listen[0]}:" in shown
    assert "consuming" in shown


def test_all_consumers_are_a_table_in_a_pipe(redrive):
    for words in (("status",), ("status", "-o", "wide"), ("top", "--once")):
        lines = redrive(*words).stdout.splitlines()
        assert lines[0].split()[:2] == ["NAME", "READY"]
        assert [line.split()[:2] for line in lines[1:]] == [["orders", "yes"]]


def test_explain_takes_a_consumer_of_the_cluster(redrive):
    assert "3 attempts, after 500ms ×2" in redrive("explain", "orders").stdout


def test_capacity_says_how_many_more_fit_each_node_and_what_runs_out(redrive, must):
    told = json.loads(redrive("capacity", "orders", "-o", "json").stdout)
    nodes = json.loads(must("get", "nodes", "--output", "json"))["items"]
    assert {room["node"] for room in told["nodes"]} == {node["metadata"]["name"] for node in nodes}
    assert told["worker"] == {"cpu": 0.05, "memory": 64 * 1024**2, "pods": 1.0}
    assert told["fits"] == sum(room["fits"] for room in told["nodes"]) > 0
    assert told["runsOutFirst"] in ("cpu", "memory", "pods")


def test_pause_and_resume_are_what_the_operator_does(redrive, till):
    assert "orders is paused" in redrive("pause", "orders").stdout
    till.wait_condition("Paused", "True")
    again = redrive("pause", "orders")
    assert "paused already" in again.stdout
    resumed = redrive("resume", "orders")
    assert "GitOps" in resumed.stderr
    till.wait_condition("Paused", "False")
    till.wait_ready()


def test_doctor_finds_all_well_and_then_says_what_is_not(redrive, till):
    well = redrive("doctor")
    assert "0 wrong" in well.stdout
    assert f"broker of Secret {till.name}/rabbitmq" in well.stdout
    till.apply(till.consumer("lost", queue={"name": "lost"}, broker={"secretRef": {"name": "gone"}, "vhost": "/"}))
    till.wait_condition("BrokerReachable", "False", "SecretNotFound", name="lost")
    ill = redrive("doctor", code=1)
    assert "there is no Secret gone" in ill.stdout
    till.namespace.kubectl("delete", "rcon", "lost")


def test_a_broker_behind_a_service_is_reached_by_a_port_forward(redrive, till, pod):
    settings = till.broker.settings
    host = settings.listen[0]
    ways = {AMQP: (host, settings.ports.amqp), MANAGEMENT: (host, settings.ports.management)}
    name = f"gateway.{till.name}.svc"
    secret = {
        "host": name,
        "port": str(AMQP),
        "management_uri": f"http://{name}:{MANAGEMENT}",
        "username": till.vhost.user,
        "password": till.vhost.password,
    }
    till.apply(
        *gateway.manifests("gateway", pod, ways),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gateway"}, "stringData": secret},
    )
    till.namespace.kubectl("wait", "--for=condition=Ready", "pod/gateway", "--timeout=60s")
    behind = {"secretRef": {"name": "gateway"}, "vhost": till.vhost.name}
    till.apply_ready(till.consumer("behind", queue={"name": "behind"}, broker=behind))
    till.publish({"one": {}, "two": {}}, queue="behind")
    told = till.namespace.wait_for(
        "two messages",
        lambda: (
            (seen := json.loads(redrive("status", "behind", "-o", "json").stdout))["messages"].get("ready") == 2
            and seen
        ),
        30,
    )
    assert told["notAsked"] is None
    shown = redrive("status", "behind").stdout
    assert f"just now, at {name}:{AMQP} (by a port-forward to pod {till.name}/gateway)" in shown
    assert till.vhost.password not in shown + redrive("doctor").stdout


def test_who_may_only_look_is_told_what_to_ask_for(redrive, till, outsider):
    looked = redrive("status", "orders", kubeconfig=outsider)
    assert "orders: ready" in looked.stdout
    assert f"the verb `get` on `secrets` in namespace {till.name}" in looked.stderr
    refused = redrive("pause", "orders", kubeconfig=outsider, code=1)
    need = f"ask for a role with the verb `patch` on `retryingconsumers.redrive.dev` in namespace {till.name}"
    assert (
        refused.stderr.strip() == f"error: you may not patch RetryingConsumer orders in namespace {till.name}: {need}"
    )
    assert "the verb `list` on `nodes`" in redrive("capacity", "orders", kubeconfig=outsider, code=1).stderr
    checked = redrive("doctor", kubeconfig=outsider).stdout
    assert "may patch retryingconsumers.redrive.dev: no" in checked


def test_what_is_not_there_is_told_with_what_is(redrive, till):
    assert "did you mean orders?" in redrive("status", "order", code=1).stderr


def test_kubectl_finds_it_as_a_plugin(cluster, till, tmp_path):
    plugin = tmp_path / "kubectl-redrive"
    script = Path(sys.executable).with_name("kubectl-redrive")
    shutil.copy(script, plugin)
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": str(cluster.kubeconfig)}
    for words, said in ((["--help"], "Usage: kubectl redrive"), (["status", "-n", till.name], "orders")):
        command = [cluster.kubectl, "redrive", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
