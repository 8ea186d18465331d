"""A consumer whose workers look for a place: what is told of it, what is measured, and what becomes of its message."""

from datetime import UTC, datetime

from e2e.full_cluster import NEVER, SOON, plain
from prometheus_client.parser import text_string_to_metric_families

FAILED = "FailedWorkerPlacement"


class Seeker:
    """A consumer of a shop whose workers look for a place, and one message for it, which bears its name."""

    def __init__(self, shop, operator, name, *, grace=SOON, **spec):
        self.shop, self.name, self.grace = shop, name, grace
        self._operator, self._spec = operator, spec

    def apply(self, worker):
        grace = {} if self.grace is None else {"placement": {"grace": _write(self.grace)}}
        self.shop.apply(self.shop.consumer(self.name, worker=worker, **grace, **self._spec))

    def set_grace(self, grace):
        self.grace = grace
        self.shop.namespace.patch(f"rcon/{self.name}", {"spec": {"placement": {"grace": _write(grace)}}})

    def publish(self):
        self.wait_condition("TopologyReady", "True")
        self.shop.publish({self.name: {"succeeds_on": 1}}, queue=self.name)

    def mend(self, trouble, nodes):
        self.set_grace(NEVER)
        if trouble.mend is None:
            self.apply(plain(self.shop))
        else:
            trouble.mend(self.shop, nodes)

    def wait_for(self, what, ready, within=60):
        return self.shop.namespace.wait_for(f"{what} of {self.name}", ready, within)

    # What must be so

    def assert_told(self, trouble):
        """See that it is told by an event, by conditions and by metrics, and that the message waits."""
        self.wait_told(FAILED)
        condition = self.wait_condition("WorkersPlaced", "False", FAILED)
        ready = self.wait_condition("Ready", "False", FAILED)
        event = self.told_once(FAILED)
        assert event["type"] == "Warning"
        for said in (event["message"], condition["message"], ready["message"]):
            assert said.startswith(f"1 of 1 worker has no place: {trouble.cause}: ")
            assert trouble.words in said
            assert said.endswith(f"; {trouble.cause.advice}")
        assert self.shop.get(self.name)["status"]["workers"]["unplaced"] == 1
        self.wait_for("an unplaced worker", lambda: self.unplaced(trouble.cause) == 1)
        before = self.failed(trouble.cause)
        self.wait_for("more failed placements", lambda: self.failed(trouble.cause) > before)
        self.assert_waits()

    def assert_waits(self):
        """See that the message lies in the queue, neither taken nor put to sleep, and that no handler has seen it."""
        assert self.shop.ready(self.name) == 1
        assert self.shop.ledger.ran(self.name) == []

    def assert_ended(self, trouble):
        """See that the end is told, that nothing was told twice, and that the message is handled."""
        self.wait_condition("WorkersPlaced", "True", "Placed")
        self.wait_handled()
        self.wait_for("no unplaced worker", lambda: self.unplaced(trouble.cause) == 0)
        assert self.told_once("WorkersPlaced")["type"] == "Normal"
        self.told_once(FAILED)
        assert self.shop.get(self.name)["status"]["workers"]["unplaced"] == 0

    def wait_handled(self):
        """Wait until the message is handled and all is well; that took one attempt, the first."""
        self.shop.wait_runs([(self.name, 1)], within=90)
        self.wait_condition("Ready", "True")
        assert self.shop.ledger.ran(self.name) == [1]
        assert [self.shop.ready(queue) for queue in (self.name, f"redrive.dead.{self.name}")] == [0, 0]

    # What is told

    def condition(self, type_):
        return self.shop.condition(type_, name=self.name)

    def wait_condition(self, type_, status, reason=None, *, within=90):
        return self.shop.wait_condition(type_, status, reason, name=self.name, within=within)

    def told(self, reason):
        """Read the events of a reason that are about this consumer."""
        found = self.shop.namespace.events(reason)
        return [event for event in found if event["involvedObject"]["name"] == self.name]

    def told_once(self, reason):
        """Give the one event of a reason, which was told one time only."""
        self.wait_told(reason)
        (event,) = self.told(reason)
        assert event["count"] == 1
        return event

    def wait_told(self, reason):
        self.wait_for(f"an event {reason}", lambda: self.told(reason), within=90)

    # What is measured

    def sample(self, metric, **labels):
        """Read what the operator measured of this consumer; None where there is nothing."""
        wanted = {"namespace": self.shop.name, "consumer": self.name, **labels}
        families = text_string_to_metric_families(self._operator.fetch("/metrics"))
        samples = (sample for family in families for sample in family.samples)
        return next((one.value for one in samples if one.name == metric and one.labels == wanted), None)

    def unplaced(self, cause):
        return self.sample("redrive_unplaced_workers", reason=cause.value)

    def failed(self, cause):
        return self.sample("redrive_failed_worker_placements_total", reason=cause.value)

    # The pods

    def pods(self):
        return self.shop.pods(self.name)

    def ages(self):
        """Say how long ago each pod was made; the clock of the cluster is that of this machine."""
        made = (datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in self.pods())
        return [datetime.now(UTC) - moment for moment in made]

    def restarts(self):
        return sum(one["restartCount"] for pod in self.pods() for one in pod["status"].get("containerStatuses", []))

    def wait_unschedulable(self):
        def there():
            conditions = [one for pod in self.pods() for one in pod["status"].get("conditions", [])]
            return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)

        self.wait_for("a pod that is not scheduled", there)


def _write(grace):
    return f"{grace.seconds}s"
