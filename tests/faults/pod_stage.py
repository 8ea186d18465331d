"""Where a trial plays whose workers are pods: a consumer that the operator of a real cluster runs on a real broker.

The pods come with the team's own credentials, from a Secret; whoever publishes and looks comes as the administrator, so
that a changed password is the pods' trouble alone. What they run is told to a sink of the trial.
"""

import json
import sys
from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial
from subprocess import SubprocessError

from e2e.namespaces import describe, made_namespace
from e2e.shops import TAGS, Shop, find_condition
from faults.kubernetes import SOON, must
from faults.pod_crew import PodCrew
from faults.scripts import MAX_ATTEMPTS, MAX_CRASHES
from faults.sink import Sink
from faults.stage import DELAY_SECONDS, VHOST
from workers.bed import HANDLERS, QUEUE, take_dead

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive_testbed import network
from redrive_testbed.operator_manifests import NAME, NAMESPACE
from redrive_testbed.rabbitmq_settings import amqp_url

# Longer than for worker processes: a pod shares its machine with a whole cluster.
TIMEOUT = "10s"
RETRY = {
    "maxAttempts": MAX_ATTEMPTS,
    "backoff": {"strategy": "Fixed", "base": f"{int(DELAY_SECONDS * 1000)}ms", "max": "2s", "jitter": "None"},
    "crashes": {"max": MAX_CRASHES},
}
MEMORY = "256Mi"
WHOLE_SECONDS = 300


class PodStage:
    """One consumer, its pods and its broker. Close it: nothing of it outlives the trial."""

    def __init__(self, kubernetes, broker, folder, *, workers=2, mode="Process"):
        self.kubernetes, self.nodes, self.living = kubernetes, [broker], broker
        self.workers, self.mode = workers, mode
        self.published, self.neighbours = {}, Counter()
        self._closing = ExitStack()
        self.bed = PodBed(self, folder / "ledger")
        try:
            self._open(broker)
        except BaseException:
            self._closing.close()
            raise

    def _open(self, broker):
        namespace = self._closing.enter_context(made_namespace(self.kubernetes.kubectl))
        admin, vhost = broker.settings.credentials, broker.add_vhost(VHOST)
        broker.add_user(vhost.user, vhost.password, tags=TAGS)
        broker.permit(admin.user, VHOST)
        self.url = amqp_url(broker.settings, vhost=VHOST, user=admin.user, password=admin.password)
        self.shop = Shop(namespace, broker, vhost, Sink(network.HOST, self.bed.ledger))
        self.shop.open()
        handlers = {path.name: path.read_text() for path in HANDLERS.glob("*.py")}
        namespace.patch("configmap/handlers", {"data": handlers})
        self._closing.callback(self.shop.close)
        self.shop.apply_ready(self.consumer(), within=180)
        self.crew = PodCrew(namespace)
        self._closing.callback(self.crew.close)
        self.crew.wait_working(self.workers)

    def consumer(self):
        runner = {"python": {"handler": "accounted:handle", "mode": self.mode}}
        worker = self.shop.worker(
            runner=runner,
            concurrency=4,
            timeout=TIMEOUT,
            container={"resources": {"limits": {"memory": MEMORY}}},
            pod={"tolerations": SOON},
        )
        return self.shop.consumer(worker=worker, retry=RETRY, replicas=self.workers)

    @property
    def namespace(self):
        return self.shop.namespace

    def kubectl(self, *words, stdin=None):
        """Call kubectl for what is in no namespace."""
        return must(self.kubernetes.kubectl, *words, stdin=stdin)

    def edit(self, spec):
        self.namespace.patch(f"rcon/{QUEUE}", {"spec": spec})

    def connect(self):
        """Give a connection of the caller's own; he closes it."""
        return Amqp([parse_amqp_url(self.url)])

    def wait_whole(self):
        """Wait until every node, the operator and the workers are as they were in the beginning."""
        for what, ready in (
            ("every node", self._nodes_ready),
            ("the operator", partial(self._rolled_out, NAME, NAMESPACE)),
            ("the consumer's readiness", self._consumer_ready),
            ("the workers' Deployment", partial(self._rolled_out, QUEUE, self.namespace.name)),
        ):
            self.namespace.wait_for(what, ready, WHOLE_SECONDS)
        self.crew.wait_working(self.workers)

    def send_home(self):
        """Have nobody work any more: the operator takes every pod away, and brings nothing home in the meantime."""
        self._keep_logs()
        self.edit({"paused": True})
        self.namespace.wait_for("the end of every pod", lambda: not self.crew.pods(), WHOLE_SECONDS)

    def close(self):
        if sys.exc_info()[0]:
            print(describe(self.namespace), flush=True)  # afterwards it is gone
            self._keep_logs()
        self._closing.close()

    def _keep_logs(self):
        """Write down what pods and operator have logged, and what was told of them: the pods are about to go."""
        operator = "logs", f"deployment/{NAME}", f"--namespace={NAMESPACE}"
        with suppress(AssertionError, OSError, SubprocessError):  # nothing is wrong with a trial that has no log
            self._keep("log-operator", self.kubernetes.kubectl(*operator, "--timestamps"))
            self._keep("pods", self.namespace.try_kubectl("describe", "rcon,deployments,pods"))
            for name in [pod["metadata"]["name"] for pod in self.crew.pods()]:
                self._keep(f"log-{name}", self.namespace.try_kubectl("logs", name, "--timestamps"))

    def _keep(self, name, done):
        self.bed.ledger.with_name(name).write_text(done.stdout)

    def _nodes_ready(self):
        nodes = json.loads(self.kubectl("get", "nodes", "--output=json"))["items"]
        return all(_is_so(node, "Ready") and not node["spec"].get("taints") for node in nodes)

    def _rolled_out(self, name, namespace):
        found = json.loads(self.kubectl("get", f"deployment/{name}", "--namespace", namespace, "--output=json"))
        status, wanted = found["status"], found["spec"]["replicas"]
        counts = {status.get(f"{what}Replicas", 0) for what in ("updated", "ready", "available")}
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return seen and counts == {wanted} and status.get("replicas", 0) == wanted

    def _consumer_ready(self):
        found = find_condition(self.shop.get(), "Ready")
        return found is not None and found["status"] == "True"


class PodBed:
    """What is read of a trial: the ledger, and the dead letters. Pods tell of their timeouts by what they send on."""

    workers = ()

    def __init__(self, stage, ledger):
        self._stage, self.ledger = stage, ledger
        self.ledger.touch()

    def letters(self):
        """Take what is in the dead letter queue, as messages."""
        with self._stage.connect() as amqp:
            return take_dead(amqp)


def _is_so(body, type_):
    return any(one["type"] == type_ and one["status"] == "True" for one in body["status"].get("conditions", ()))
