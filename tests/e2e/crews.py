"""The crew of one consumer of a shop: how many pods are asked for, who is there, and what was told of their number."""

import json
from collections import Counter

from e2e.shops import API, is_ready
from prometheus_client.parser import text_string_to_metric_families


class Crew:
    """The consumer `name` of a shop, and its pods. Its messages bear its name: the shop's ledger is everybody's."""

    def __init__(self, shop, name):
        self.shop, self.name = shop, name

    def begin(self, *, worker=None, **spec):
        """Have the consumer, ready, with as many pods as it is to have without a message."""
        self.shop.apply_ready(self.shop.consumer(self.name, worker=worker or self.worker(), **spec))

    def worker(self, **more):
        """Build a worker whose handler takes as long as a message says, one at a time unless told otherwise."""
        runner = {"python": {"handler": "slow:handle", "mode": "Thread"}}
        return self.shop.worker(runner=runner, **{"timeout": "200s", **more})

    def edit(self, **spec):
        self.shop.namespace.patch(f"rcon/{self.name}", {"spec": spec})

    def publish(self, count, *, held=False, first=0, **order):
        """Publish messages that succeed at once, unless told otherwise; who is held runs until it is released."""
        names = [f"{self.name}-{i}" for i in range(first, first + count)]
        for name in names if held else ():
            self.shop.ledger.hold(name)
        self.shop.publish({name: {"succeeds_on": 1, "seconds": 0, **order} for name in names}, queue=self.name)
        return names

    def release(self, names):
        for name in names:
            self.shop.ledger.release(name)

    # The pods

    def asked(self):
        return self.shop.deployment(self.name)["spec"]["replicas"]

    def wait_asked(self, count, within=60):
        self.shop.namespace.wait_for(
            lambda: f"a wish for {count} pods of {self.name}, not {self.asked()},",
            lambda: self.asked() == count,
            within,
        )

    def wait_pods(self, count, within=90):
        """Wait until so many pods are there and consume, and none beside them, not even on its way out."""

        def there():
            pods = self.pods()
            return len(pods) == count and all(is_ready(pod) and not is_going(pod) for pod in pods)

        self.shop.namespace.wait_for(lambda: f"{count} pods of {self.name}, not {self._told()},", there, within)

    def wait_draining(self, within=60):
        """Wait until every pod that is there, and was ready, is on its way out and has heard of it."""
        self.shop.namespace.wait_for(
            lambda: f"the going of the pods of {self.name}, not {self._told()},",
            lambda: all(is_going(pod) and not is_ready(pod) for pod in self.pods()),
            within,
        )

    def pods(self):
        """Give all of them, also those that are on their way out."""
        return self.shop.namespace.get("pods", f"--selector=redrive.dev/consumer={self.name}")["items"]

    def staying(self):
        return {pod["metadata"]["name"] for pod in self.pods() if not is_going(pod)}

    def ready_since(self, pod):
        """Say since when a pod has been ready."""
        (body,) = [each for each in self.pods() if each["metadata"]["name"] == pod]
        (since,) = [each["lastTransitionTime"] for each in body["status"]["conditions"] if each["type"] == "Ready"]
        return since

    def generation(self):
        """Say how often what is asked of the cluster has changed."""
        return self.shop.deployment(self.name)["metadata"]["generation"]

    def scale(self):
        """Read the subresource by which others scale it."""
        path = f"/apis/{API}/namespaces/{self.shop.name}/retryingconsumers/{self.name}/scale"
        return json.loads(self.shop.namespace.kubectl("get", "--raw", path))

    def wait_replicas(self, count, within=30):
        """Wait until others, who scale it, are told so many."""
        told = lambda: self.scale()["status"]["replicas"]  # noqa: E731 - read twice below
        self.shop.namespace.wait_for(lambda: f"status.replicas {count}, not {told()},", lambda: told() == count, within)

    def _told(self):
        return {pod["metadata"]["name"]: (is_ready(pod), is_going(pod)) for pod in self.pods()}

    # The messages

    def runs(self):
        """Give the runs of this consumer's messages."""
        return [run for run in list(self.shop.ledger.runs) if run.message.rpartition("-")[0] == self.name]

    def wait_running(self, count, within=90):
        """Wait until so many different messages have been begun."""
        begun = lambda: len({run.message for run in self.runs()})  # noqa: E731 - read twice below
        self.shop.namespace.wait_for(lambda: f"{count} runs, not {begun()},", lambda: begun() >= count, within)

    def wait_done(self, names, attempts=1, within=90):
        """Wait until nothing is left of these, and see that each had its attempts and no more, in one run each."""
        wanted = {(name, attempt): 1 for name in names for attempt in range(1, attempts + 1)}
        self.shop.wait_runs(wanted, within)
        self.shop.namespace.wait_for(lambda: f"the end of {self.left()} messages", lambda: not self.left(), within)
        assert Counter((run.message, run.attempt) for run in self.runs()) == wanted

    def left(self):
        """Count what waits or is dead, and what is in flight, as far as the broker has counted that again."""
        waiting = [self.shop.ready(queue) for queue in (self.name, f"redrive.dead.{self.name}")]
        queue = self.shop.broker.api.get("queues", self.shop.vhost.name, self.name)
        return sum(waiting) + queue.get("messages_unacknowledged", 0)

    def wait_left(self, operator, count, within=60):
        """Wait until the operator has counted so many messages, ready or in flight, and done what it does about it."""

        def seen():
            families = text_string_to_metric_families(operator.fetch("/metrics"))
            samples = [sample for family in families for sample in family.samples]
            mine = [each for each in samples if each.labels.get("state") in ("ready", "unacked") and self._owns(each)]
            return sum(sample.value for sample in mine) if len(mine) == 2 else None

        self.shop.namespace.wait_for(
            lambda: f"a count of {count} messages, not {seen()},", lambda: seen() == count, within
        )

    def _owns(self, sample):
        whose = sample.labels.get("namespace"), sample.labels.get("consumer")
        return sample.name == "redrive_queue_messages" and whose == (self.shop.name, self.name)

    # What was told

    def scaled(self):
        """Read the events that tell of a change of their number, in the order of their making."""
        mine = [e for e in self.shop.namespace.events("Scaled") if e["involvedObject"]["name"] == self.name]
        assert [event for event in mine if event.get("count", 1) != 1] == []
        return [event["message"] for event in sorted(mine, key=lambda event: event["firstTimestamp"])]


def is_going(pod):
    return "deletionTimestamp" in pod["metadata"]
