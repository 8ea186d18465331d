"""How long a person waits: from applying a consumer to its first message handled, and from a burst to enough pods.

Real worker pods run a real handler, which tells this process of every message over HTTP, so that a moment is read from
one clock. Pods must therefore reach this machine: it needs the cluster without Docker. The project's images are loaded
before the clock starts.
"""

import argparse
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from bench.command import keep, noting_failure
from bench.errors import Abandoned
from bench.fleet_broker import CountingBroker, open_broker
from bench.fleet_cluster import Bed
from bench.fleet_figures import Burst, FirstMessage, Run
from bench.fleet_objects import Body, broker_secret, consumer
from bench.fleet_process import Starter
from bench.fleet_tally import HANDLER, MODULE, Tally
from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.properties import Properties
from redrive_operator.kube.kinds import CONSUMERS, DEPLOYMENTS, PODS
from redrive_operator.subject import Key
from redrive_testbed import images, network
from redrive_testbed.errors import Refused
from redrive_testbed.operator_manifests import CONSUMER_IMAGE
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import Vhost
from redrive_testbed.say import say
from redrive_testbed.shell import wait_until

NAMESPACE = "bench-latency"
CONFIG_MAP = "handler"
LOOK_SECONDS = 0.1
FIRST_SECONDS = 180
GONE_SECONDS = 120

# From the queue until the burst, so that what the operator makes at first is made, and beyond that as long as its turn
# takes (`--interval`): a burst that comes always at the same moment of a turn waits always the same time for the next.
SETTLED_SECONDS = 5.0
TURN_SECONDS = 15.0

QUICK: dict[str, object] = {"samples": 1, "burst_pods": 2, "burst_limit": 60.0}


def add_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--samples", type=int, default=5, help="consumers whose first message is timed")
    group.add_argument("--bursts", type=int, default=1, help="that are timed, one after the other")
    group.add_argument(
        "--burst-seed", type=int, help="of the waits before bursts; without it they are others each time"
    )
    group.add_argument("--burst-pods", type=int, default=8, help="pods that the burst asks for")
    group.add_argument("--burst-each", type=int, default=20, help="messages for each pod")
    group.add_argument("--burst-work", type=float, default=1.0, help="seconds that each message takes")
    group.add_argument("--burst-limit", type=float, default=300, help="seconds to wait for pods")


def try_parts(run: Run, bed: Bed, starter: Starter, release: str, options: argparse.Namespace) -> None:
    wanted = [part for part in ("first-message", "burst") if part in options.parts]
    if not wanted:
        return
    with noting_failure(run.skipped, f"latencies on RabbitMQ {release}"), _opened(bed, starter, release) as shop:
        if "first-message" in wanted:
            for number in range(options.samples):
                with noting_failure(run.skipped, f"first message, sample {number + 1}"):
                    run.first_messages.append(shop.time_first_message(number))
                keep(run, options)
        if "burst" in wanted:
            for number, wait in enumerate(plan_waits(options.bursts, f"{options.burst_seed} {release}")):
                with noting_failure(run.skipped, f"burst {number + 1}"):
                    if number:
                        shop.clear_burst(number - 1)
                    run.bursts.append(shop.time_burst(number, wait, options))
                keep(run, options)


def plan_waits(bursts: int, seed: str) -> list[float]:
    """Deal the bursts out to the turn of the operator: each has a part of it for itself, and comes anywhere in that."""
    chance = random.Random(seed)  # noqa: S311 - to be had again
    part = TURN_SECONDS / max(1, bursts)
    waits = [SETTLED_SECONDS + part * (number + chance.random()) for number in range(bursts)]
    chance.shuffle(waits)
    return waits


@contextmanager
def _opened(bed: Bed, starter: Starter, release: str) -> Iterator["Shop"]:
    if not bed.cluster.reaches_this_machine:
        raise Refused("pods of this cluster do not reach this machine: it needs the cluster without Docker")
    images.load(Places.from_environment(), bed.cluster.load)
    with (
        open_broker(release, listen=(network.HOST,)) as broker,
        broker.vhost(NAMESPACE) as vhost,
        bed.namespaces(NAMESPACE),
        Tally.listening(network.HOST) as tally,
        starter.running() as operator,
    ):
        operator.wait_ready()
        bed.apply(broker_secret(NAMESPACE, broker.secret(vhost)))
        bed.apply(_handler())
        yield Shop(bed, broker, vhost, tally)


class Shop:
    """A namespace and a vhost with an operator, where consumers really run."""

    def __init__(self, bed: Bed, broker: CountingBroker, vhost: Vhost, tally: Tally) -> None:
        self._bed, self._broker, self._vhost, self._tally = bed, broker, vhost, tally

    def time_first_message(self, number: int) -> FirstMessage:
        name = f"first-{number}"
        steps: dict[str, float] = {}
        began = time.monotonic()
        self._bed.apply(consumer(name, NAMESPACE, replicas=1, worker=self._worker(0.0)))
        with self._amqp() as amqp:
            while "handled" not in steps:
                now = time.monotonic() - began
                if now > FIRST_SECONDS:
                    raise Abandoned(f"no message was handled after {now:.0f} s; so far: {steps}")
                if "queue" not in steps and amqp.count_ready(name) is not None:
                    steps["queue"] = now
                    self._publish(amqp, name, [name])
                if "deployment" not in steps and self._bed.get(DEPLOYMENTS, Key(NAMESPACE, name)) is not None:
                    steps["deployment"] = now
                if "pod_running" not in steps and self._running(name):
                    steps["pod_running"] = now
                if (handled := self._tally.first(name)) is not None:
                    steps["handled"] = handled - began
                time.sleep(LOOK_SECONDS)
        self._delete(name)
        # A pod may be seen to run only after it has handled what was there: it did run then.
        steps.setdefault("pod_running", steps["handled"])
        return FirstMessage(version=self._broker.version, **steps)

    def time_burst(self, number: int, wait: float, options: argparse.Namespace) -> Burst:
        """Publish to a consumer whose workers are few, and wait until there are as many as the messages ask for."""
        name, wanted = _burst_name(number), options.burst_pods
        each, most = options.burst_each, options.burst_pods
        scaling = {"minReplicas": 0, "maxReplicas": most, "messagesPerReplica": each, "scaleDownDelay": "10m"}
        body = consumer(name, NAMESPACE, worker=self._worker(options.burst_work), scaling=scaling)
        del body["spec"]["replicas"]
        self._bed.apply(body)
        with self._amqp() as amqp:
            self._await_queue(amqp, name)
            say(f"the burst comes {wait:.1f} s after its queue")
            time.sleep(wait)
            messages = [f"{name}-{count}" for count in range(each * wanted)]
            began = time.monotonic()
            self._publish(amqp, name, messages)
        return replace(self._watch_burst(name, messages, wanted, began, options.burst_limit), waited=wait)

    def _watch_burst(self, name: str, messages: list[str], wanted: int, began: float, limit: float) -> Burst:
        asked = enough = drained = None
        most = 0
        while drained is None or enough is None:
            now = time.monotonic() - began
            deployment = self._bed.get(DEPLOYMENTS, Key(NAMESPACE, name)) or {"spec": {}, "status": {}}
            available = deployment["status"].get("availableReplicas", 0)
            most = max(most, available)
            if asked is None and deployment["spec"].get("replicas", 0) >= wanted:
                asked = now
            if enough is None and available >= wanted:
                enough = now
            if drained is None and self._tally.count(messages) == len(messages):
                drained = now
                limit = min(limit, now + 15)  # with nothing to do, no more pods will come
            if now > limit:
                break
            time.sleep(LOOK_SECONDS)
        if enough is None:
            say(f"nothing scales: {most} of {wanted} pods were there after {limit:.0f} s")
        handled = self._tally.count(messages)
        return Burst(self._broker.version, len(messages), wanted, most, asked, enough, handled, drained)

    def _delete(self, name: str) -> None:
        """Let the operator let it go, so that one sample does not run beside the next."""
        here = ("--namespace", NAMESPACE, "--ignore-not-found", "--timeout=60s")
        self._bed.kubectl("delete", CONSUMERS.plural, name, *here)

    def clear_burst(self, number: int) -> None:
        """Have the pods of one burst gone before the next: as many again have no place beside them."""
        name = _burst_name(number)
        self._delete(name)

        def none_is_left() -> bool:
            return not any(row["Name"].startswith(f"{name}-") for row in self._bed.rows(PODS, NAMESPACE))

        wait_until(f"pods of {name} are still there", none_is_left, within=GONE_SECONDS)

    def _worker(self, work: float) -> Body:
        environment = {"PYTHONPATH": "/handler", "TALLY": self._tally.url, "WORK_SECONDS": str(work)}
        container = {
            "name": "worker",
            "env": [{"name": name, "value": value} for name, value in environment.items()],
            "volumeMounts": [{"name": "handler", "mountPath": "/handler", "readOnly": True}],
            # Small, so that all of them have a place on one node of two cores.
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        }
        volumes = [{"name": "handler", "configMap": {"name": CONFIG_MAP}}]
        return {
            "image": CONSUMER_IMAGE,
            "concurrency": 1,
            "python": {"handler": f"{MODULE}:handle", "mode": "Thread"},
            "podTemplate": {"spec": {"containers": [container], "volumes": volumes}},
        }

    @contextmanager
    def _amqp(self) -> Iterator[Amqp]:
        with Amqp([parse_amqp_url(self._vhost.amqp_url)], name="bench") as amqp:
            yield amqp

    @staticmethod
    def _publish(amqp: Amqp, queue: str, names: list[str]) -> None:
        for name in names:
            amqp.publish("", queue, b"{}", Properties(message_id=name, content_type="application/json"))

    @staticmethod
    def _await_queue(amqp: Amqp, queue: str) -> None:
        deadline = time.monotonic() + FIRST_SECONDS
        while amqp.count_ready(queue) is None:
            if time.monotonic() > deadline:
                raise Abandoned(f"there is no queue {queue} after {FIRST_SECONDS} s")
            time.sleep(LOOK_SECONDS)

    def _running(self, name: str) -> bool:
        rows = self._bed.rows(PODS, NAMESPACE)
        return any(row["Name"].startswith(f"{name}-") and row["Status"] == "Running" for row in rows)


def _burst_name(number: int) -> str:
    return f"burst-{number}"


def _handler() -> Body:
    metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {f"{MODULE}.py": HANDLER}}
