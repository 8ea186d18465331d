"""The pods: programs, servers and functions, what a podTemplate adds to them, and what it may not say."""

import pytest

from redrive_testbed.operator_manifests import CONSUMER_IMAGE

ORDERS = {"fine": {"succeeds_on": 1}, "slow": {"succeeds_on": 3}, "hopeless": {}, "void": {"rejected": True}}
SMALL = {"resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}}}
ALL_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def command(shop):
    return shop.worker(runner={"command": {"args": ["python3", "/handlers/program.py"]}})


def http(shop):
    """The server is the user's container, so the handlers are mounted there and not in the worker."""
    worker = shop.worker(runner={"http": {"port": 8080, "path": "/"}})
    spec = worker["podTemplate"]["spec"]
    (mounted,) = spec.pop("containers")
    app = {"name": "app", "command": ["python3", "/handlers/server.py"], "volumeMounts": mounted["volumeMounts"]}
    return {**worker, "podTemplate": {"spec": {**spec, "initContainers": [app]}}}


@pytest.mark.parametrize("runner", [command, http], ids=lambda runner: runner.__name__)
def test_messages_of_a_program_and_of_a_server_succeed_are_retried_and_die(newest_shop, runner):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=runner(shop)))
    shop.publish(ORDERS)
    letters = shop.wait_letters("hopeless", "void")
    reasons = {name: letter.properties.headers["redrive-dead-reason"] for name, letter in letters.items()}
    assert reasons == {"hopeless": "Exhausted", "void": "Rejected"}
    assert done(shop, "fine", "slow") == {"fine": 1, "slow": 3}


def test_http_worker_is_the_runtime_and_the_users_container_its_sidecar(newest_shop):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=http(shop)))
    (pod,) = shop.pods()
    (main,), (sidecar,) = pod["spec"]["containers"], pod["spec"]["initContainers"]
    assert (main["name"], main["image"]) == ("worker", CONSUMER_IMAGE)
    assert (sidecar["name"], sidecar["restartPolicy"]) == ("app", "Always")


def test_worker_that_is_left_out_later_takes_its_pods_away_and_leaves_the_queue(newest_shop):
    shop = newest_shop
    shop.apply_ready(shop.consumer(worker=shop.worker()))
    shop.apply(shop.consumer())
    shop.wait_condition("WorkersAvailable", "True", "RunElsewhere")
    for what in ("deployment/orders", "configmap/orders-redrive", "poddisruptionbudget/orders"):
        shop.namespace.wait_for(f"the end of {what}", lambda what=what: not shop.namespace.has(what), 20)
    assert shop.ready() == 0


def test_pod_template_is_merged_into_the_pod_by_container_name(newest_shop):
    shop = newest_shop
    sidecar = {
        "name": "helper",
        "image": CONSUMER_IMAGE,
        "command": ["sleep", "600"],
        "securityContext": ALL_RESTRICTED,
    }
    pod = {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "batch", "operator": "Exists"}],
        "serviceAccountName": "till",
    }
    worker = shop.worker(container=SMALL, pod=pod)
    worker["podTemplate"]["metadata"] = {"annotations": {"team": "billing"}, "labels": {"team": "billing"}}
    worker["podTemplate"]["spec"]["containers"].append(sidecar)
    shop.namespace.kubectl("create", "serviceaccount", "till")
    shop.apply_ready(shop.consumer(worker=worker))
    (found,) = shop.pods()
    spec, main = found["spec"], next(each for each in found["spec"]["containers"] if each["name"] == "worker")
    assert {each["name"] for each in spec["containers"]} == {"worker", "helper"}
    assert main["resources"] == SMALL["resources"]
    assert {each["name"] for each in main["env"]} >= {"PYTHONPATH", "LEDGER"}
    assert (spec["serviceAccountName"], spec["nodeSelector"]) == ("till", pod["nodeSelector"])
    assert pod["tolerations"][0] in spec["tolerations"]
    assert found["metadata"]["annotations"]["team"] == found["metadata"]["labels"]["team"] == "billing"
    assert spec["automountServiceAccountToken"] is False


OWNED = {
    "command": {"containers": [{"name": "worker", "command": ["sleep"]}]},
    "image": {"containers": [{"name": "worker", "image": "another"}]},
    "probe": {"containers": [{"name": "worker", "livenessProbe": {"exec": {"command": ["true"]}}}]},
    "variable": {"containers": [{"name": "worker", "env": [{"name": "REDRIVE_CONFIG", "value": "mine"}]}]},
    "mount": {"containers": [{"name": "worker", "volumeMounts": [{"name": "x", "mountPath": "/etc/redrive"}]}]},
    "volume": {"volumes": [{"name": "redrive-config", "emptyDir": {}}]},
    "token": {"automountServiceAccountToken": True},
    "account": {"serviceAccountName": "default"},
    "projection": {"volumes": [{"name": "x", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]},
}

OF_THE_NODE = {
    "network": {"hostNetwork": True},
    "socket": {"volumes": [{"name": "docker", "hostPath": {"path": "/var/run/docker.sock"}}]},
    "disk": {"volumes": [{"name": "node", "hostPath": {"path": "/", "type": "Directory"}}]},
    "privileged": {"containers": [{"name": "worker", "securityContext": {"privileged": True}}]},
    "sidecar": {"initContainers": [{"name": "a", "image": "b", "securityContext": {"privileged": True}}]},
}


def test_pod_template_that_says_what_is_the_operators_or_the_nodes_is_refused_with_what_to_change(newest_shop):
    shop = newest_shop
    worker = {"image": CONSUMER_IMAGE, "python": {"handler": "shop:handle"}}
    asked = {**OWNED, **OF_THE_NODE}
    shop.apply(*(shop.consumer(name, worker={**worker, "podTemplate": {"spec": spec}}) for name, spec in asked.items()))
    for name in asked:
        told = shop.wait_condition("Ready", "False", "InvalidSpec", name=name)
        assert told["message"].startswith("spec.worker.podTemplate.spec.")
        assert not shop.namespace.has(f"deployment/{name}")


def test_pod_that_admission_refuses_is_told_with_its_words(newest_shop):
    shop = newest_shop
    shop.apply(shop.consumer(worker=shop.worker(container={"securityContext": {"runAsUser": 0}})))
    told = shop.wait_condition("WorkersAvailable", "False", "CannotCreatePods")
    assert "PodSecurity" in told["message"]
    shop.apply(shop.consumer(worker=shop.worker()))
    shop.wait_ready()


def done(shop, *names):
    """Wait until these are done, and say on which attempt."""

    def found():
        lines = [line for line in shop.worker_lines() if line["event"] == "done"]
        return {line["id"]: line["attempt"] for line in lines} if {line["id"] for line in lines} >= set(names) else None

    return shop.namespace.wait_for(f"the lines done of {names}", found)
