"""`make demo`: what Redrive does, shown to a person on a cluster and a broker of this machine.

The operator is installed and given one object; it makes the queues and the worker. Of the orders that are published,
one succeeds, one fails twice and then succeeds, one never does and is parked with its story. Then the bug is fixed, and
the parked one is put back. Everything that was brought up stays, so that the person can look around; the last lines say
how to remove it.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redrive_testbed import (
    chart,
    clusters,
    demo_manifests,
    images,
    network,
    operator_manifests,
    pod_broker,
    standing_broker,
)
from redrive_testbed.chart import Helm
from redrive_testbed.clusters import Cluster
from redrive_testbed.demo_manifests import CONSUMER, NAMESPACE, REDRIVE
from redrive_testbed.errors import CommandFailed, NotReady
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.pod_broker import Outside
from redrive_testbed.rabbitmq_release import TESTED
from redrive_testbed.say import say, step
from redrive_testbed.shell import run

PATIENCE = 90.0
HERE = ("--namespace", NAMESPACE)


def show(places: Places) -> None:
    cluster = clusters.up(places, context=os.environ.get("REDRIVE_CONTEXT") or None)
    images.load(places, cluster.load)
    demo = Demo(cluster)
    helm = Helm.of(places, cluster)
    with step("installing the operator by its chart"):
        # An image keeps its name when it is built anew, so an operator that was there would keep its old pod.
        chart.clear(helm, demo.kubectl)
        chart.install(helm)
    demo.prepare()
    _provide_broker(demo, places)
    demo.tell_story()
    _farewell(cluster)


def clear(places: Places) -> None:
    """Remove what was shown from a cluster that stays; the operator goes last, because it lets its objects go."""
    cluster = clusters.current(places)
    if cluster is not None:
        demo = Demo(cluster)
        demo.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=180s")
        chart.uninstall(Helm.of(places, cluster))
        demo.kubectl("delete", "namespace", operator_manifests.NAMESPACE, "--ignore-not-found")


class Demo:
    """The steps, on one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def prepare(self) -> None:
        """Have the namespace, and nothing of an earlier demonstration in it."""
        self.apply(demo_manifests.namespace())
        self.kubectl("delete", "rcon,redrive,pod", "--all", *HERE, "--wait=true", "--timeout=180s")

    def tell_story(self) -> None:
        self.apply(demo_manifests.handler(), demo_manifests.steps(), demo_manifests.consumer())
        self._wait_ready()
        self._tell_state("one object was applied, and the operator has made the rest")
        say(f"  schedule: {self._read_status('{.status.schedule}')}")
        _quote("three orders are published", self.run_step("publish"))
        self._watch(lambda done, dead: done >= 2 and dead >= 1)
        _quote("what is parked", self.run_step("look"))
        say("the bug is fixed, and the operator rolls the new worker out")
        self.apply(demo_manifests.consumer(bug_fixed=True))
        self._wait_ready()
        self.apply(demo_manifests.redrive())
        self.kubectl("wait", "--for=condition=Complete", f"redrive/{REDRIVE}", *HERE, "--timeout=90s")
        _quote("a Redrive puts the dead letters back", self.kubectl("get", "redrive", *HERE))
        self._watch(lambda done, _: done >= 1)
        # The operator counts at its next reading of the broker.
        self.kubectl("wait", "--for=jsonpath={.status.messages.dead}=0", f"rcon/{CONSUMER}", *HERE, "--timeout=60s")
        self._tell_state("nothing is left over: every order was done")

    def run_step(self, name: str) -> str:
        """Run one step in a pod to its end and return what it printed."""
        pod = f"step-{name}"
        self.apply(demo_manifests.step(pod, name))
        self.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{pod}", *HERE, "--timeout=90s")
        return self.kubectl("logs", pod, *HERE)

    def apply(self, *objects: dict[str, Any]) -> None:
        operator_manifests.apply(self.kubectl, *objects)

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        return run(self._cluster.kubectl, "--kubeconfig", self._cluster.kubeconfig, *words, stdin=stdin)

    def _wait_ready(self) -> None:
        """Wait until the operator says that all is as it was asked for, and that is: the newest worker consumes."""
        try:
            self.kubectl("wait", "--for=condition=Ready", f"rcon/{CONSUMER}", *HERE, "--timeout=120s")
        except CommandFailed as error:
            status = self._read_status("{.status.conditions}")
            raise NotReady(f"the consumer is not ready ({status}): the operator's log may tell why") from error

    def _tell_state(self, title: str) -> None:
        _quote(title, self.kubectl("get", "rcon", *HERE))

    def _read_status(self, path: str) -> str:
        return self.kubectl("get", f"rcon/{CONSUMER}", *HERE, f"--output=jsonpath={path}")

    def _watch(self, enough: Callable[[int, int], bool]) -> None:
        """Show what becomes of the messages, line by line, until enough are done and dead."""
        deadline, seen, pod = time.monotonic() + PATIENCE, 0, self._newest_worker()
        while True:
            said = self.kubectl("logs", pod, *HERE, "--container=worker")
            lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
            for line in lines[seen:]:
                _show_line(line)
            seen = len(lines)
            counts = [sum(line["event"] == event for line in lines) for event in ("done", "dead")]
            if enough(*counts):
                return
            if time.monotonic() > deadline:
                raise NotReady(f"{counts[0]} orders were done and {counts[1]} parked")
            time.sleep(0.3)

    def _newest_worker(self) -> str:
        """Name the worker's pod; one that is on its way out may still be there beside it."""
        chosen = f"--selector=redrive.dev/consumer={CONSUMER}"
        names = self.kubectl("get", chosen, "pods", *HERE, "--sort-by=.metadata.creationTimestamp", "--output=name")
        return names.split()[-1]


def _provide_broker(demo: Demo, places: Places) -> None:
    """Have a broker named `rabbitmq` in the namespace: of this machine, or where pods cannot reach it, in a pod."""
    cluster = clusters.current(places)
    if cluster is not None and cluster.reaches_this_machine:
        broker = standing_broker.up(places, TESTED[-1], listen=(network.HOST,))
        outside = Outside(
            broker.addresses, broker.amqp_port, broker.management_port, user=broker.user, password=broker.password
        )
        demo.apply(*pod_broker.manifests("rabbitmq", NAMESPACE, outside))
        say(f"RabbitMQ {broker.version} runs on this machine, and pods reach it by the name rabbitmq")
        return
    with step("starting RabbitMQ in a pod"):
        example = REPOSITORY / "examples" / "rabbitmq.yaml"
        demo.kubectl("apply", "--namespace", NAMESPACE, "--server-side", "--filename", str(example))
        # The operator looks from another namespace, where a short name would mean another Service.
        host = f"rabbitmq.{NAMESPACE}.svc"
        data = {"host": host, "management_uri": f"http://{host}:{pod_broker.MANAGEMENT}"}
        demo.kubectl("patch", "secret/rabbitmq", *HERE, "--patch", json.dumps({"stringData": data}))
        demo.kubectl("rollout", "status", "--namespace", NAMESPACE, "statefulset/rabbitmq", "--timeout=300s")


def _show_line(line: dict[str, Any]) -> None:
    """Show a line of the worker's log with the worker's own time: it may have passed before we looked."""
    at = line["time"][11:23]
    match line["event"]:
        case "done":
            say(f"  {at} {line['id']}: done on attempt {line['attempt']}")
        case "retry":
            say(f"  {at} {line['id']}: attempt {line['attempt']} failed, comes back in {line['delaySeconds']:g} s")
        case "dead":
            say(f"  {at} {line['id']}: attempt {line['attempt']} failed, parked as {line['reason']}")


def _quote(title: str, text: str) -> None:
    say(f"{title}:")
    for line in text.splitlines():
        say(f"  {line}")


def _farewell(cluster: Cluster) -> None:
    program = Path(cluster.kubectl)
    path = f" PATH=$PATH:{program.parent}" if program.is_absolute() else ""
    say("look around with:")
    say(f"  export KUBECONFIG={cluster.kubeconfig}{path}")
    say(f"  kubectl --namespace {NAMESPACE} get rcon,pods")
    say("remove everything with: make demo-down")
