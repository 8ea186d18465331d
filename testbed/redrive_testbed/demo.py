"""`make demo`: what Redrive does, shown to a person on a cluster and a broker of this machine.

Orders are published to a queue; one succeeds, one fails twice and then succeeds, one never does and is parked with its
story. Then the bug is fixed, and the parked one is put back. Everything that was brought up stays, so that the person
can look around; the last lines say how to remove it.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redrive_testbed import clusters, demo_manifests, images, network, pod_broker, standing_broker
from redrive_testbed.clusters import Cluster
from redrive_testbed.demo_manifests import NAMESPACE
from redrive_testbed.errors import NotReady
from redrive_testbed.places import REPOSITORY, Places
from redrive_testbed.pod_broker import Outside
from redrive_testbed.rabbitmq_release import TESTED
from redrive_testbed.say import say, step
from redrive_testbed.shell import run

PATIENCE = 90.0


def show(places: Places) -> None:
    cluster = clusters.up(places, context=os.environ.get("REDRIVE_CONTEXT") or None)
    images.load(places, cluster.load)
    demo = Demo(cluster)
    demo.prepare()
    _provide_broker(demo, places)
    demo.tell_story()
    _farewell(cluster)


def clear(places: Places) -> None:
    """Remove what was shown from a cluster that stays."""
    cluster = clusters.current(places)
    if cluster is not None:
        Demo(cluster).kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")


class Demo:
    """The steps, on one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen = 0

    def prepare(self) -> None:
        """Have the kinds of Redrive, the namespace, and nothing of an earlier demonstration."""
        self.kubectl("apply", "--server-side", "--filename", str(REPOSITORY / "crds"))
        self.apply(demo_manifests.namespace())
        self.kubectl("delete", "deployment,pod", "--all", "--namespace", NAMESPACE, "--now", "--wait=true")

    def tell_story(self) -> None:
        self.apply(demo_manifests.consumer(), demo_manifests.files())
        _quote("the queues are made", self.run_step("provision"))
        self.apply(demo_manifests.worker(bug_fixed=False))
        self.kubectl("rollout", "status", "deployment/orders", "--namespace", NAMESPACE, "--timeout=120s")
        _quote("three orders are published", self.run_step("publish"))
        self._watch(lambda done, dead: done >= 2 and dead >= 1)
        _quote("what is parked", self.run_step("look"))
        say("the bug is fixed, and a new worker rolled out")
        self.apply(demo_manifests.worker(bug_fixed=True))
        self.kubectl("rollout", "status", "deployment/orders", "--namespace", NAMESPACE, "--timeout=120s")
        self._seen = 0
        _quote("the dead letters are put back", self.run_step("requeue"))
        self._watch(lambda done, _: done >= 1)
        say("nothing is left over: every order was done")

    def run_step(self, name: str) -> str:
        """Run one step in a pod to its end and return what it printed."""
        pod = f"step-{name}"
        here = ("--namespace", NAMESPACE)
        self.apply(demo_manifests.step(pod, name))
        self.kubectl(*here, "wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{pod}", "--timeout=90s")
        return self.kubectl(*here, "logs", pod)

    def apply(self, *objects: dict[str, Any]) -> None:
        items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", stdin=items)

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        return run(self._cluster.kubectl, "--kubeconfig", self._cluster.kubeconfig, *words, stdin=stdin)

    def _watch(self, enough: Callable[[int, int], bool]) -> None:
        """Show what becomes of the messages, line by line, until enough are done and dead."""
        deadline = time.monotonic() + PATIENCE
        while True:
            lines = self._worker_lines()
            for line in lines[self._seen :]:
                _show_line(line)
            self._seen = len(lines)
            counts = [sum(line["event"] == event for line in lines) for event in ("done", "dead")]
            if enough(*counts):
                return
            if time.monotonic() > deadline:
                raise NotReady(f"{counts[0]} orders were done and {counts[1]} parked")
            time.sleep(0.3)

    def _worker_lines(self) -> list[dict[str, Any]]:
        said = self.kubectl("logs", "deployment/orders", "--namespace", NAMESPACE)
        return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


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
