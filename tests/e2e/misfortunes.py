"""Consumers with whom something is wrong, for each alarm one: how it comes about, and how it is mended.

All of them are in one shop. What has to be measured from its first moment on begins when its workers are scraped.
"""

from e2e.full_cluster import plain, with_much_cpu

from redrive_testbed import network
from redrive_testbed.pod_broker import AMQP, MANAGEMENT

# Each alarm by the labels, beside the namespace, by which the one is known that is made to happen.
CALLS = {
    "WorkerErrors": {"consumer": "failing"},
    "FailedWorkerPlacement": {"consumer": "homeless"},
    "DeadLetters": {"consumer": "failing"},
    "DeadLettersExpiring": {"consumer": "expiring"},
    "QueueSize": {"consumer": "waiting"},
    "RetriesLate": {"consumer": "late"},
    "ConsumerDown": {"consumer": "homeless", "cause": "NoWorker"},
    "ConsumerDown-Unusable": {"consumer": "unusable", "cause": "Unusable"},
    "CrashLoop": {"consumer": "crashing"},
    "BrokerUnreachable": {"consumer": "far"},
}
WORKING = ("failing", "expiring", "late", "orphaned", "calm")

# Where nobody listens: there one is refused at once.
NOBODY = 1


class Misfortunes:
    """The consumers of one shop; `scraped` says whether the metrics of a consumer's worker have been seen."""

    def __init__(self, shop, scraped):
        self.shop, self._scraped = shop, scraped

    def begin(self):
        """Have all consumers, and everything go wrong."""
        shop = self.shop
        nowhere = {**shop.secret("rabbitmq"), **_way(network.HOST, NOBODY, NOBODY)}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "far"}, "stringData": nowhere}
        shop.apply(secret, *self._bodies())
        for name in WORKING:
            shop.wait_ready(name)
            shop.namespace.wait_for(f"metrics of {name}", lambda name=name: self._scraped(name))
        shop.wait_condition("TopologyReady", "True", name="waiting")
        shop.publish({f"fails-{i}": {} for i in range(10)}, queue="failing")
        shop.publish({"void": {"rejected": True}}, queue="expiring")
        shop.publish({f"tired-{i}": {"seconds": 1, "succeeds_on": 4} for i in range(24)}, queue="late")
        shop.publish({f"waits-{i}": {"succeeds_on": 1} for i in range(5)}, queue="waiting")
        shop.publish({"calm-0": {"succeeds_on": 2}, "calm-1": {"succeeds_on": 1}}, queue="calm")
        self._orphan()

    def mend(self):
        """Have everything be well again."""
        shop = self.shop
        for name in ("failing", "expiring"):
            shop.broker.api.delete("queues", shop.vhost.name, f"redrive.dead.{name}", "contents")
        shop.namespace.patch("rcon/waiting", {"spec": {"paused": False}})
        shop.namespace.patch("secret/far", {"stringData": _way(shop.host, AMQP, MANAGEMENT)})
        shop.apply(
            shop.consumer("homeless", worker=plain(shop), placement={"grace": "10m"}),
            shop.consumer("crashing", worker=plain(shop)),
            shop.consumer("unusable"),
            self._orphaned(),
        )

    def _bodies(self):
        shop = self.shop
        nothing = {"python": {"handler": "shop:nothing", "mode": "Thread"}}
        owned = shop.worker(container={"command": ["sleep"]})  # which is the operator's to say
        soon = {"queueSize": {"above": 2, "for": "10s"}}
        return [
            shop.consumer("failing", worker=plain(shop)),
            shop.consumer("expiring", worker=plain(shop), deadLetter={"retention": "150s"}),
            shop.consumer("waiting", worker=plain(shop), paused=True, alarms=soon),
            self._late(),
            shop.consumer("homeless", worker=with_much_cpu(shop), placement={"grace": "3s"}),
            shop.consumer("unusable", worker=owned),
            shop.consumer("crashing", worker=shop.worker(runner=nothing)),
            shop.consumer("far", broker={"secretRef": {"name": "far"}, "vhost": shop.vhost.name}),
            self._orphaned(),
            shop.consumer("calm", worker=plain(shop)),
        ]

    def _late(self):
        """One worker, a second for each try: who fails comes to the end of a queue of 24, and is late by as much."""
        tired = {"python": {"handler": "tired:handle", "mode": "Thread"}}
        retry = {"maxAttempts": 5, "backoff": {"strategy": "Fixed", "base": "500ms", "max": "1s"}}
        return self.shop.consumer("late", worker=self.shop.worker(runner=tired), retry=retry)

    def _orphaned(self):
        retry = {"maxAttempts": 3, "backoff": {"strategy": "Fixed", "base": "20s", "max": "20s"}}
        return self.shop.consumer("orphaned", worker=plain(self.shop), retry=retry, deletionPolicy="Delete")

    def _orphan(self):
        """Destroy a queue to which a message wants to return."""
        self.shop.publish({"sleeping": {"succeeds_on": 2}}, queue="orphaned")
        self.shop.wait_runs([("sleeping", 1)])
        self.shop.namespace.kubectl("delete", "rcon/orphaned", "--timeout=60s")


def _way(host, amqp, management):
    """Say in a Secret how a broker is reached."""
    return {"host": host, "port": str(amqp), "management_uri": f"http://{host}:{management}"}
