"""`make demo`: what Redrive does, shown to a person on a cluster and a broker of this machine.

Everything it brings up stays, so that the person can look around; the last lines say how to remove it.
"""

import json
from pathlib import Path
from typing import Any

from redrive_testbed import clusters, images, network, pod_broker, standing_broker
from redrive_testbed.clusters import Cluster
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.pod_broker import Outside
from redrive_testbed.rabbitmq_release import TESTED
from redrive_testbed.say import say, step
from redrive_testbed.shell import run

NAMESPACE = "redrive-demo"
IMAGE = "redrive/consumer:dev"

GREETING = """
import os, pika
who = pika.PlainCredentials(os.environ["USERNAME"], os.environ["PASSWORD"])
connection = pika.BlockingConnection(pika.ConnectionParameters("rabbitmq", credentials=who))
channel = connection.channel()
queue = channel.queue_declare("", exclusive=True).method.queue
channel.confirm_delivery()
channel.basic_publish("", queue, b"hello from a pod")
print(channel.basic_get(queue, auto_ack=True)[2].decode())
connection.close()
"""


def show(places: Places) -> None:
    cluster = clusters.up(places)
    images.load(places, cluster.load)
    _apply(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    _provide_broker(cluster, places)
    with step(f"a pod in {NAMESPACE} publishes a message through the Service `rabbitmq` and takes it back"):
        said = _run_pod(cluster, "greeting", GREETING)
    say(f"the pod says: {said}")
    _farewell(cluster)


def _provide_broker(cluster: Cluster, places: Places) -> None:
    """Have a broker named `rabbitmq` in the namespace: of this machine, or where pods cannot reach it, in a pod."""
    if cluster.reaches_this_machine:
        broker = standing_broker.up(places, TESTED[-1], listen=(network.HOST,))
        outside = Outside(
            broker.addresses, broker.amqp_port, broker.management_port, user=broker.user, password=broker.password
        )
        _apply(cluster, *pod_broker.manifests("rabbitmq", NAMESPACE, outside))
        say(f"RabbitMQ {broker.version} runs on this machine, and pods reach it by the name rabbitmq")
        return
    with step("starting RabbitMQ in a pod"):
        example = REPOSITORY / "examples" / "rabbitmq.yaml"
        _kubectl(cluster, "apply", "--namespace", NAMESPACE, "--server-side", "--filename", str(example))
        _kubectl(cluster, "rollout", "status", "--namespace", NAMESPACE, "statefulset/rabbitmq", "--timeout=300s")


def _run_pod(cluster: Cluster, name: str, program: str) -> str:
    """Run a Python program in a pod to its end and return what it printed."""
    secret = {key: {"secretKeyRef": {"name": "rabbitmq", "key": key.lower()}} for key in ("USERNAME", "PASSWORD")}
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["python3", "-c", program],
        "env": [{"name": key, "valueFrom": source} for key, source in secret.items()],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    here = ("--namespace", NAMESPACE)
    _kubectl(cluster, *here, "delete", "pod", name, "--ignore-not-found", "--now")
    _apply(cluster, pod)
    _kubectl(cluster, *here, "wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", "--timeout=90s")
    return _kubectl(cluster, *here, "logs", name).strip()


def _apply(cluster: Cluster, *objects: dict[str, Any]) -> None:
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    _kubectl(cluster, "apply", "--server-side", "--filename", "-", stdin=items)


def _kubectl(cluster: Cluster, *words: str, stdin: str | None = None) -> str:
    return run(cluster.kubectl, "--kubeconfig", cluster.kubeconfig, *words, stdin=stdin)


def _farewell(cluster: Cluster) -> None:
    program = Path(cluster.kubectl)
    say("look around with:")
    say(
        f"  export KUBECONFIG={cluster.kubeconfig}" + (f" PATH=$PATH:{program.parent}" if program.is_absolute() else "")
    )
    say(f"  kubectl --namespace {NAMESPACE} get pods,services")
    say("remove everything with: make demo-down")
