"""`make demo`: what Redrive does, shown to a person on a cluster and a broker of this machine.

Everything it brings up stays, so that the person can look around; the last lines say how to remove it.
"""

import json
from pathlib import Path

from redrive_testbed import clusters, images, network, pod_broker, standing_broker
from redrive_testbed.clusters import Cluster
from redrive_testbed.errors import Refused
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq_release import TESTED
from redrive_testbed.say import say, step
from redrive_testbed.shell import run
from redrive_testbed.standing_broker import BrokerInfo

NAMESPACE = "redrive-demo"
IMAGE = "redrive/consumer:dev"

GREETING = """
import os, pika
connection = pika.BlockingConnection(pika.URLParameters(os.environ["BROKER"]))
channel = connection.channel()
queue = channel.queue_declare("", exclusive=True).method.queue
channel.confirm_delivery()
channel.basic_publish("", queue, b"hello from a pod")
print(channel.basic_get(queue, auto_ack=True)[2].decode())
connection.close()
"""


def show(places: Places) -> None:
    cluster = clusters.up(places)
    if not cluster.reaches_this_machine:
        raise Refused(f"the demonstration's broker runs on this machine, where {cluster.kind} cannot reach it yet")
    broker = standing_broker.up(places, TESTED[-1], listen=(network.HOST,))
    images.load(places, cluster.load)
    say(f"RabbitMQ {broker.version} answers on {broker.amqp_url.rpartition('@')[2]}")
    with step(f"a pod in {NAMESPACE} publishes a message through the Service `rabbitmq` and takes it back"):
        _prepare(cluster, broker)
        said = _run_pod(cluster, "greeting", GREETING, broker)
    say(f"the pod says: {said}")
    _farewell(cluster)


def _prepare(cluster: Cluster, broker: BrokerInfo) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    _apply(cluster, json.dumps(namespace))
    _apply(cluster, pod_broker.service("rabbitmq", NAMESPACE, broker))


def _run_pod(cluster: Cluster, name: str, program: str, broker: BrokerInfo) -> str:
    """Run a Python program in a pod to its end and return what it printed."""
    url = f"amqp://{broker.user}:{broker.password}@rabbitmq:{pod_broker.AMQP}/%2f"
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["python3", "-c", program],
        "env": [{"name": "BROKER", "value": url}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    in_namespace = ("--namespace", NAMESPACE)
    _kubectl(cluster, *in_namespace, "delete", "pod", name, "--ignore-not-found", "--now")
    _apply(cluster, json.dumps(pod))
    _kubectl(cluster, *in_namespace, "wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", "--timeout=60s")
    return _kubectl(cluster, *in_namespace, "logs", name).strip()


def _apply(cluster: Cluster, manifests: str) -> None:
    _kubectl(cluster, "apply", "--server-side", "--filename", "-", stdin=manifests)


def _kubectl(cluster: Cluster, *words: str, stdin: str | None = None) -> str:
    return run(cluster.kubectl, "--kubeconfig", cluster.kubeconfig, *words, stdin=stdin)


def _farewell(cluster: Cluster) -> None:
    folder = Path(cluster.kubectl).parent
    say("look around with:")
    say(f"  export KUBECONFIG={cluster.kubeconfig} PATH=$PATH:{folder}")
    say(f"  kubectl --namespace {NAMESPACE} get pods,services")
    say("remove everything with: make demo-down")
