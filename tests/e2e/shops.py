"""A shop: a namespace that enforces Restricted, a vhost on a broker, and what tests do with consumers there."""

import json
from base64 import b64decode
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import yaml

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.properties import Properties
from redrive_testbed import pod_broker
from redrive_testbed.machine import accepts
from redrive_testbed.operator_manifests import CONSUMER_IMAGE
from redrive_testbed.rabbitmq_settings import amqp_url

HANDLERS = Path(__file__).with_name("handlers")
API = "redrive.dev/v1alpha1"

# A team's own user: it sees its vhost in the management API, and may set policies there.
TAGS = ("policymaker", "management")

# Delays that one place of the ladder holds: a vhost is then made within a second or two.
QUICK = {"maxAttempts": 3, "backoff": {"strategy": "Fixed", "base": "500ms", "max": "1s"}}


class Shop:
    """One test's shop. Without `vhost` in its calls its own is meant."""

    def __init__(self, namespace, broker, vhost, ledger):
        self.namespace, self.broker, self.vhost, self.ledger = namespace, broker, vhost, ledger

    @property
    def name(self):
        return self.namespace.name

    @property
    def host(self):
        return f"rabbitmq.{self.namespace.name}.svc"

    def open(self):
        """Have the broker's Service and Secret, and the handlers."""
        files = {path.name: path.read_text() for path in HANDLERS.glob("*.py")}
        handlers = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "handlers"}, "data": files}
        settings, vhost = self.broker.settings, self.vhost
        ports = settings.ports.amqp, settings.ports.management
        outside = pod_broker.Outside(settings.listen, *ports, user=vhost.user, password=vhost.password)
        self.namespace.apply(*pod_broker.manifests("rabbitmq", self.namespace.name, outside), handlers)
        self.wait_way("rabbitmq", pod_broker.AMQP, pod_broker.MANAGEMENT)

    def wait_way(self, service, *ports):
        """Wait until a Service leads somewhere. A node knows it a moment later; who comes earlier is refused."""
        address = self.namespace.get(f"service/{service}")["spec"]["clusterIP"]
        for port in ports:
            self.namespace.wait_for(f"a way to {service}", lambda port=port: accepts(address, port), 20)

    def close(self):
        """Clear it; the operator must let the objects go by itself."""
        self.ledger.close()
        if not self.broker.running():
            self.broker.start()
        deleted = self.namespace.try_kubectl("delete", "rcon", "--all", "--timeout=60s")
        if deleted.returncode:
            for body in self.namespace.get("rcon")["items"]:
                self.namespace.patch(f"rcon/{body['metadata']['name']}", {"metadata": {"finalizers": []}})
        self.broker.delete_vhost(self.vhost.name)
        assert deleted.returncode == 0, f"the operator does not let go of {self.name}: {deleted.stderr}"

    def change_password(self, password):
        """Give the shop's broker user another password, and write it into the Secret."""
        self.change_broker_password(password)
        self.write_password(password)

    def change_broker_password(self, password):
        """Give the shop's broker user another password, of which nobody is told."""
        settings, user = self.broker.settings, self.vhost.user
        self.broker.add_user(user, password, tags=TAGS)
        url = amqp_url(settings, vhost=self.vhost.name, user=user, password=password)
        self.vhost = replace(self.vhost, password=password, amqp_url=url)

    def write_password(self, password):
        self.namespace.patch("secret/rabbitmq", {"stringData": {"password": password}})

    # What tests ask for

    def consumer(self, name="orders", *, worker=None, **spec):
        """Build a consumer of this shop's vhost; without a worker it is topology only."""
        return {
            "apiVersion": API,
            "kind": "RetryingConsumer",
            "metadata": {"name": name, "namespace": self.namespace.name},
            "spec": {
                "broker": {"secretRef": {"name": "rabbitmq"}, "vhost": self.vhost.name},
                "queue": {"name": name},
                "retry": QUICK,
                **({"worker": worker} if worker else {}),
                **spec,
            },
        }

    def worker(self, *, runner=None, container=None, pod=None, **spec):
        """Build a worker that runs a handler of the tests; `container` and `pod` add to its podTemplate."""
        runner = runner or {"python": {"handler": "shop:handle", "mode": "Thread"}}
        return {"image": CONSUMER_IMAGE, "timeout": "30s", **runner, **spec, "podTemplate": self.pod(container, pod)}

    def pod(self, container=None, pod=None):
        environment = [{"name": "PYTHONPATH", "value": "/handlers"}, {"name": "LEDGER", "value": self.ledger.url}]
        mounts = [{"name": "handlers", "mountPath": "/handlers", "readOnly": True}]
        ours = {"name": "worker", "env": environment, "volumeMounts": mounts, **(container or {})}
        return {
            "spec": {
                "containers": [ours],
                "volumes": [{"name": "handlers", "configMap": {"name": "handlers"}}],
                **(pod or {}),
            }
        }

    def apply(self, *bodies):
        self.namespace.apply(*bodies)

    def apply_ready(self, body, within=90):
        """Apply a consumer and wait until it is ready, its workers too."""
        self.apply(body)
        return self.wait_ready(body["metadata"]["name"], within=within)

    # What the operator says of it

    def get(self, name="orders"):
        return self.namespace.get(f"rcon/{name}")

    def condition(self, type_, name="orders"):
        """Give a condition that speaks of the spec as it is now; None where there is none yet."""
        return find_condition(self.get(name), type_)

    def wait_ready(self, name="orders", within=90):
        self.wait_condition("Ready", "True", name=name, within=within)
        return self.get(name)

    def wait_condition(self, type_, status, reason=None, *, name="orders", within=60):
        """Wait for a condition that speaks of the present spec; a failure shows the whole status."""
        return wait_condition(self.namespace, f"rcon/{name}", type_, status, reason, within=within)

    def wait_event(self, reason, *, about="", within=60):
        return self.namespace.wait_for(
            f"an event {reason} about {about or 'anything'}",
            lambda: [event for event in self.namespace.events(reason) if about in event["message"]],
            within,
        )

    # What is in the cluster

    def deployment(self, name="orders"):
        return self.namespace.get(f"deployment/{name}")

    def pods(self, name="orders"):
        found = self.namespace.get("pods", f"--selector=redrive.dev/consumer={name}")["items"]
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def uids(self, name="orders"):
        return {pod["metadata"]["uid"] for pod in self.pods(name)}

    def wait_rolled(self, before, name="orders", within=90):
        """Wait until none of the pods of before works any more and all their successors do."""

        def rolled():
            now = self.pods(name)
            return now and not before & {pod["metadata"]["uid"] for pod in now} and all(map(is_ready, now))

        self.namespace.wait_for("new pods in the place of the old ones", rolled, within)
        self.wait_ready(name)

    def secret(self, name, namespace=None):
        where = ("--namespace", namespace) if namespace else ()
        data = self.namespace.get("secret", name, *where)["data"]
        return {key: b64decode(value).decode() for key, value in data.items()}

    def worker_lines(self, name="orders", container="worker"):
        """Read the log lines of the worker pods that are there now."""
        words = "logs", f"--selector=redrive.dev/consumer={name}", f"--container={container}", "--tail=-1"
        said = self.namespace.kubectl(*words)
        return [json.loads(line) for line in said.splitlines() if line.startswith("{")]

    # What is on the broker

    @contextmanager
    def amqp(self):
        with Amqp([parse_amqp_url(self.vhost.amqp_url)], name="test") as amqp:
            yield amqp

    def publish(self, orders, *, queue="orders", exchange="", key=None):
        """Publish messages, each named by its id."""
        with self.amqp() as amqp:
            for name, order in orders.items():
                properties = Properties(message_id=name, content_type="application/json")
                amqp.publish(exchange, queue if key is None else key, json.dumps(order).encode(), properties)

    def ready(self, queue="orders"):
        """Count what waits in a queue; None where there is no such queue."""
        with self.amqp() as amqp:
            return amqp.count_ready(queue)

    def letters(self, queue="orders"):
        """Read the dead letters of a queue by their ids, and give them back."""
        return self.look(f"redrive.dead.{queue}")

    def look(self, queue):
        """Look at what lies in a queue now, by message id, and give it back, which takes the broker a moment."""
        found = {}
        with self.amqp() as amqp:
            count = amqp.count_ready(queue)
            if not count:
                return found
            for delivery in amqp.consume(queue, prefetch=count, patience=5):
                if delivery is None:
                    break
                found[delivery.properties.message_id] = delivery
                if len(found) == count:
                    break
        return found

    def wait_letters(self, *names, queue="orders", within=60):
        wanted = set(names)
        self.namespace.wait_for(
            lambda: f"dead letters {sorted(wanted)}, only {sorted(self.letters(queue))},",
            lambda: (self.ready(f"redrive.dead.{queue}") or 0) >= len(wanted),
            within,
        )
        letters = self.letters(queue)
        assert set(letters) == wanted
        return letters

    def wait_runs(self, wanted, within=60):
        """Wait until the ledger holds these runs, (message, attempt), each at least once."""
        missing = lambda: set(wanted) - set(self.ledger.attempts())  # noqa: E731 - read twice below
        self.namespace.wait_for(lambda: f"the runs {sorted(missing())}", lambda: not missing(), within)

    def bindings(self, queue="orders"):
        """List what is bound to a queue, as (exchange, key), without the default exchange."""
        found = self.broker.api.get("queues", self.vhost.name, queue, "bindings")
        return {(binding["source"], binding["routing_key"]) for binding in found if binding["source"]}

    def queues(self):
        return {queue["name"] for queue in self.broker.api.get("queues", self.vhost.name)}


def find_condition(body, type_):
    status = body.get("status", {})
    found = next((each for each in status.get("conditions", []) if each["type"] == type_), None)
    current = found is not None and found.get("observedGeneration") == body["metadata"]["generation"]
    return found if current else None


def wait_condition(namespace, what, type_, status, reason=None, *, within=60):
    """Wait for a condition of an object of ours; a failure shows the whole status."""

    def there():
        found = find_condition(namespace.get(what), type_)
        return found if found and found["status"] == status and reason in (None, found["reason"]) else None

    def told():
        body = namespace.get(what)
        shown = yaml.safe_dump(body.get("status", {}))
        return f"{type_}={status} {reason or ''} of {what} (generation {body['metadata']['generation']}), but\n{shown}"

    return namespace.wait_for(told, there, within)


def is_ready(pod):
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", [])}
    return conditions.get("Ready") == "True"
