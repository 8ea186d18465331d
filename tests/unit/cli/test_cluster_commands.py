"""The commands that talk to a cluster, typed against an API server on loopback: what they show, and how they fail."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from api_server import TOKEN, write_kubeconfig
from typing_commands import type_command, type_on_terminal

VERSION = {"app.kubernetes.io/version": "0.1.0"}
OPERATOR = {"app.kubernetes.io/name": "redrive", "app.kubernetes.io/component": "operator", **VERSION}
PASSWORD = "correct-horse"


def consumer(name="orders", *, namespace="shop", conditions=(("Ready", "True"),), annotations=None, **spec):
    return {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": {"name": name, "namespace": namespace, "generation": 1, "annotations": annotations or {}},
        "spec": {
            "broker": {"secretRef": {"name": "rabbitmq"}},
            "queue": {"name": name},
            "worker": {"image": "x", "python": {"handler": "a:b"}},
            **spec,
        },
        "status": {
            "conditions": [
                {"type": type_, "status": status, "reason": "Why", "message": "because", "observedGeneration": 1}
                for type_, status in conditions
            ],
            "messages": {"ready": 1234, "unacked": 5, "dead": 0, "observedTime": "2026-01-02T03:04:05Z"},
            "workers": {"wanted": 2, "available": 2, "unplaced": 0},
            "broker": {"version": "4.3.6", "vhost": "/"},
        },
    }


def secret(**data):
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    metadata = {"name": "rabbitmq", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


@pytest.fixture
def redrive(typed, api):
    def run(*words, code=0):
        done = typed(*words, "--kubeconfig", api.kubeconfig)
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        assert PASSWORD not in done.stdout + done.stderr
        assert TOKEN not in done.stdout + done.stderr
        return done

    return run


def test_status_lists_all_with_why_one_is_not_ready(redrive, api):
    bad = consumer("bad", conditions=[("Ready", "False"), ("BrokerReachable", "False")])
    api.add(consumer(), bad, consumer("else", namespace="other"))
    lines = redrive("status").stdout.splitlines()
    assert lines[0].split() == ["NAME", "READY", "WAITING", "RUNNING", "DEAD", "WORKERS", "AGE", "REASON"]
    assert lines[1].split() == ["bad", "no", "1,234", "5", "0", "2/2", "-", "Why"]
    assert lines[2].split()[:2] == ["orders", "yes"]
    assert len(lines) == 3
    assert len(redrive("status", "-A").stdout.splitlines()) == 4


@pytest.mark.parametrize("words", [("status",), ("top", "--once")])
def test_no_number_is_cut_or_broken_at_80_columns_whatever_a_consumer_is_called(api, words):
    api.add(consumer("a-consumer-whose-name-is-rather-long-for-a-table"), consumer(conditions=[("Ready", "False")]))
    shown = type_on_terminal(*words, "--kubeconfig", api.kubeconfig, columns=80)
    lines = [line for line in shown.splitlines() if line.startswith("  ")]
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:4] == ["NAME", "READY", "WAITING", "RUNNING"]
    assert [line.split()[1:4] for line in lines if "1,234" in line] == [["yes", "1,234", "5"], ["no", "1,234", "5"]]


def test_a_person_is_told_below_the_table_why_one_is_not_ready(api):
    api.add(consumer(conditions=[("Ready", "False")]))
    shown = type_on_terminal("status", "--kubeconfig", api.kubeconfig, columns=80)
    assert "• shop/orders: not ready, Why: because" in shown


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_are_told_the_same_in_json_and_yaml(redrive, api, output, read):
    api.add(consumer())
    [told] = read(redrive("status", "-o", output).stdout)
    assert (told["name"], told["ready"], told["messages"]["ready"]) == ("orders", True, 1234)


def test_no_consumers_is_a_note_and_an_empty_list_for_programs(redrive):
    assert redrive("status").stdout == ""
    assert "there are no RetryingConsumers in namespace shop" in redrive("status").stderr
    assert json.loads(redrive("status", "-o", "json").stdout) == []


def test_status_of_one_falls_back_to_what_the_operator_wrote_and_says_why(redrive, api):
    api.add(consumer())
    done = redrive("status", "orders")
    assert "shop/orders: ready" in done.stdout
    assert "orders: 1,234 waiting, 5 in the hands of workers" in done.stdout
    assert "there is no Secret rabbitmq in namespace shop; or name the broker yourself with --broker" in done.stderr


def test_a_broker_that_nobody_answers_at_is_told_with_the_way_that_was_gone(redrive, api):
    api.add(consumer(), secret(host="127.0.0.1", port="1", username="u", password=PASSWORD))
    done = redrive("status", "orders")
    assert "the broker, at 127.0.0.1:1, cannot be reached" in done.stderr


def test_a_service_that_is_gone_is_told(redrive, api):
    api.add(consumer(), secret(host="rabbitmq.shop.svc", username="u", password=PASSWORD))
    assert "there is no Service rabbitmq in namespace shop" in redrive("status", "orders").stderr


def test_a_pod_that_does_not_listen_is_told_in_the_cluster_s_words(redrive, api):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "rabbitmq", "namespace": "shop"},
        "spec": {"ports": [{"name": "amqp", "port": 5672}]},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "r", "namespace": "shop", "labels": {"kubernetes.io/service-name": "rabbitmq"}},
        "endpoints": [{"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "rabbit-0"}}],
        "ports": [{"name": "amqp", "port": 5672}],
    }
    api.add(consumer(), service, endpoints, secret(host="rabbitmq.shop.svc", username="u", password=PASSWORD))
    said = redrive("status", "orders").stderr
    assert "by a port-forward to pod shop/rabbit-0" in said
    assert "error forwarding port: connection refused" in said


def test_a_lent_broker_whose_secret_is_not_ours_to_read_says_what_can_be_done(redrive, api):
    lent = consumer(broker={"connectionRef": {"name": "main"}})
    connection = {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "BrokerConnection",
        "metadata": {"name": "main"},
        "spec": {"secretRef": {"name": "admin"}, "allowedNamespaces": ["*"]},
    }
    api.add(lent, connection)
    api.refuse("GET", "/secrets/admin", message='User "ann" cannot get resource "secrets" in API group ""')
    said = redrive("status", "orders").stderr
    assert (
        "a Secret, of the BrokerConnection main, but you may not get Secret admin in namespace redrive-system" in said
    )
    assert "name the broker yourself with --broker and --management" in said


def test_a_consumer_that_is_not_there_is_told_with_those_that_are_near(redrive, api):
    api.add(consumer(), consumer("payments", namespace="other"))
    said = redrive("status", "order", code=1).stderr
    assert said == "error: there is no RetryingConsumer order in namespace shop: did you mean orders?\n"
    elsewhere = redrive("status", "payments", "-n", "empty", code=1).stderr
    assert "but in other: choose it with --namespace" in elsewhere


def test_pause_and_resume_change_one_field_and_say_who_may_undo_it(redrive, api):
    api.add(consumer(annotations={"argocd.argoproj.io/tracking-id": "shop"}))
    paused = redrive("pause", "orders")
    assert paused.stdout.startswith("shop/orders is paused: its workers finish")
    assert "Argo CD (shop) applies this object, and will set spec.paused back" in paused.stderr
    assert [path for verb, path in api.asked if verb == "PATCH"]
    assert redrive("pause", "orders").stdout == "shop/orders is paused already\n"
    assert "shop/orders is resumed" in redrive("resume", "orders").stdout
    assert redrive("resume", "orders").stdout == "shop/orders is not paused already\n"


def test_top_in_a_pipe_is_shown_once_with_what_the_operator_wrote(redrive, api):
    api.add(consumer(), consumer("busy"))
    api.objects["/apis/redrive.dev/v1alpha1/namespaces/shop/retryingconsumers/busy"]["status"]["messages"]["ready"] = (
        9999
    )
    done = redrive("top")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["NAME", "busy", "orders"]
    assert done.stderr.count("not counted at the broker of Secret shop/rabbitmq") == 1


def test_top_on_a_terminal_goes_on_until_ctrl_c_and_ends_well(api):
    api.add(consumer())
    words = "top", "--interval", "0.5", "--kubeconfig", api.kubeconfig
    shown = type_on_terminal(*words, columns=80, until="Ctrl-C ends", times=3)
    assert shown.count("consumers: 1, every 0.5 s") >= 3
    assert "IN/S" in shown


def node(name, **spec):
    status = {
        "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}


def test_capacity_takes_the_pods_as_the_deployment_has_them(redrive, api):
    requests = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {"template": {"spec": {"containers": [requests]}}},
    }
    api.add(consumer(), deployment, node("n1"), node("n2", unschedulable=True))
    lines = redrive("capacity", "orders").stdout.splitlines()
    assert lines[0] == "shop/orders: 4 more workers fit, each asks for 500m cpu, 1024Mi memory; cpu runs out first"
    assert lines[3].split() == ["n1", "4", "2", "4096Mi", "110", "cpu"]
    assert lines[4].split()[-1] == "cordoned"
    assert json.loads(redrive("capacity", "orders", "-o", "json").stdout)["fits"] == 4


def test_capacity_of_workers_that_ask_for_nothing_says_so(redrive, api):
    api.add(consumer(scaling={"maxReplicas": 7, "messagesPerReplica": 1}), node("n1"))
    shown = redrive("capacity", "orders").stdout
    assert "110 more workers fit, each asks for nothing; pods runs out first" in shown
    assert "the workers request no cpu and memory" in shown
    assert "spec.scaling lets there be 7 at most" in shown


def crd(plural):
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.redrive.dev"},
        "spec": {"versions": [{"name": "v1alpha1", "served": True}]},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


def operator():
    metadata = {"name": "redrive", "namespace": "redrive-system", "labels": OPERATOR}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "status": {"readyReplicas": 1}}


def test_doctor_finds_nothing_wrong_where_nothing_is(redrive, api):
    api.add(operator(), *map(crd, ("retryingconsumers", "brokerconnections", "redrives")))
    shown = redrive("doctor").stdout
    assert re.search(r"\d+ checks: 0 wrong, 1 to mind", shown)
    assert "there are none in namespace shop" in shown


def test_doctor_ends_with_1_and_says_what_to_mend(redrive, api):
    api.add(consumer(conditions=[("Ready", "False"), ("TopologyReady", "False")]))
    api.may = lambda attributes: attributes["verb"] != "patch"
    shown = redrive("doctor", code=1).stdout
    for said in (
        "retryingconsumers.redrive.dev: this kind is not installed",
        "operator: no operator was found in this cluster",
        "may patch retryingconsumers.redrive.dev: no, in namespace shop: `pause` and `resume` will not work",
        "shop/orders: TopologyReady is False, Why: because",
        "there is no Secret rabbitmq",
    ):
        assert said in shown
    checks = json.loads(redrive("doctor", "-o", "json", code=1).stdout)
    assert {check["state"] for check in checks} == {"ok", "mind", "wrong"}


def test_who_may_not_is_told_what_to_ask_for(redrive, api):
    api.add(consumer())
    api.refuse("PATCH", "/retryingconsumers/", message='User "ann" cannot patch resource "retryingconsumers" in API')
    said = redrive("pause", "orders", code=1).stderr
    assert "ask for a role with the verb `patch` on `retryingconsumers.redrive.dev` in namespace shop" in said
    api.refuse("GET", "/nodes", message='cannot list resource "nodes" in API group ""')
    assert "the verb `list` on `nodes`" in redrive("capacity", "orders", code=1).stderr


@pytest.mark.parametrize("words", [("status",), ("status", "orders"), ("top",), ("doctor",), ("pause", "orders")])
def test_no_cluster_is_one_sentence(typed, tmp_path, words):
    nowhere = write_kubeconfig(tmp_path, "http://127.0.0.1:1")
    done = typed(*words, "--kubeconfig", nowhere)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: no cluster: the API server at http://127.0.0.1:1 cannot be reached (Connection refused): "
        "is it running, and is the context the right one?\n"
    )


def test_a_cluster_that_does_not_know_us_says_to_log_in(typed, api, tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    done = typed("status", "--kubeconfig", write_kubeconfig(folder, api.url, token="stale"))
    assert (done.returncode, "log in again" in done.stderr) == (1, True)


def test_flags_that_contradict_each_other_are_misuse(redrive, api):
    api.add(consumer())
    assert "goes without NAME" in redrive("status", "orders", "-A", code=2).stderr
    note = redrive("status", "orders", "--management", "http://localhost").stderr
    assert "--management needs --broker" in note


def test_a_reader_who_has_gone_ends_it_quietly(api):
    api.add(*[consumer(f"c{number}") for number in range(50)])
    script = f"{sys.executable} -m redrive_cli status --kubeconfig {api.kubeconfig} | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.startswith("  NAME")
    assert done.stderr == ""


def test_names_of_consumers_are_completed(api):
    api.add(consumer(), consumer("payments"))
    words = f"redrive status --kubeconfig {api.kubeconfig} o"
    env = {"_REDRIVE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"}
    assert type_command(env=env).stdout.split() == ["orders"]


def test_kubectl_is_told_the_same_names_in_its_own_way(api):
    api.add(consumer(), consumer("payments"))
    program = Path(sys.executable).with_name("kubectl_complete-redrive")
    words = [program, "status", "--kubeconfig", api.kubeconfig, ""]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["orders", "payments", ":4"]


def test_under_kubectl_it_bears_the_name_that_was_typed():
    program = Path(sys.executable).with_name("kubectl-redrive")
    done = subprocess.run([program, "pause", "--help"], capture_output=True, text=True, check=False, timeout=60)
    assert "Usage: kubectl redrive pause" in done.stdout
