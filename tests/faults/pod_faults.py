"""What happens to pods that work: deleted, killed, evicted, rolled, scaled, locked out, or short of memory."""

import json
import secrets
import time

from faults.evidence import was_ended_for_memory
from faults.fault import Fault
from faults.load import Load
from faults.pod_crew import LOOK_SECONDS
from faults.scripts import GREEDY, SCRIPTS
from faults.stage import manage
from workers.bed import QUEUE


class PodFault(Fault):
    """Something that happens to pods; it is over when there are as many as before, and all of them work."""

    lane = "pods"

    def settle(self, stage):
        stage.wait_whole()


class PodDeleted(PodFault):
    """Somebody deletes a pod by force, without any time to end; twice."""

    name = "pod-deleted"
    breaks = 2

    def start(self, stage, chance):
        for _ in range(self.breaks):
            name = stage.crew.pick(chance)["metadata"]["name"]
            stage.crew.deaths.append(time.time())
            stage.namespace.kubectl("delete", "pod", name, "--force", "--grace-period=0", "--ignore-not-found")
            time.sleep(2)


class PodKilled(PodFault):
    """Every process of a pod is killed with SIGKILL, and its node starts it again; three times."""

    name = "pod-killed"
    breaks = 3

    def start(self, stage, chance):
        for _ in range(self.breaks):
            stage.crew.kill(stage.crew.pick(chance))
            time.sleep(2)


class PodEvicted(PodFault):
    """A pod is evicted, as by who needs its node; three times, each as soon as its disruption budget allows."""

    name = "pod-evicted"
    gentle = True

    def start(self, stage, chance):
        for _ in range(3):
            stage.namespace.wait_for("a pod that may be evicted", lambda: _evict(stage, chance), 180)
            time.sleep(2)


class RollingUpdate(PodFault):
    """The workers are rolled by a change of the pods, and by one of the config before the first has come to its end."""

    name = "rolling-update"
    gentle = True

    def start(self, stage, chance):
        label = {"metadata": {"annotations": {"rolled": secrets.token_hex(4)}}}
        stage.edit({"worker": {"podTemplate": label}})
        time.sleep(chance.uniform(2, 6))
        stage.edit({"worker": {"concurrency": chance.choice([2, 3, 5, 6])}})


class ScaledDown(PodFault):
    """Somebody has four pods by `kubectl scale`, then one, and then as many as before."""

    name = "scaled-down"
    gentle = True

    def start(self, stage, chance):
        _scale(stage, 4)
        stage.crew.wait_working(4)
        _scale(stage, 1)
        stage.crew.wait_working(1)

    def heal(self, stage):
        _scale(stage, stage.workers)


class ScaledByBacklog(PodFault):
    """The operator scales: up to four pods for a burst of slow messages, and down to one when it is worked off."""

    name = "scaled-by-backlog"
    gentle = True
    burst = 900  # a minute's work for one pod: more than the operator takes to look, which is every 15 s
    most_bursts = 5  # other faults may keep it from looking meanwhile

    def start(self, stage, chance):
        scaling = {"minReplicas": 1, "maxReplicas": 4, "messagesPerReplica": 10, "scaleDownDelay": "3s"}
        stage.edit({"scaling": scaling})
        wish = lambda: stage.shop.deployment()["spec"]["replicas"]  # noqa: E731 - read twice below
        if not any(self._burst(stage, number, wish) for number in range(self.most_bursts)):
            raise AssertionError(f"{self.most_bursts} bursts led to no wish for more pods")
        stage.namespace.wait_for("a wish for one pod", lambda: wish() == 1, 240)

    def _burst(self, stage, number, wish):
        """Publish a burst, and say whether more pods were wished for before it was worked off."""
        prefix = f"burst-{id(self)}-{number}"
        load = Load(stage.connect, [SCRIPTS["slow"]] * self.burst, per_second=100, prefix=prefix)
        deadline = time.monotonic() + 45
        while not (came := wish() > stage.workers) and time.monotonic() < deadline:
            time.sleep(0.5)
        load.join(within=120)
        stage.published.update(load.published)
        return came

    def heal(self, stage):
        stage.edit({"scaling": None, "replicas": stage.workers})


class SecretRotated(PodFault):
    """The workers' password changes on the broker, which closes their connections; later the Secret has the new one."""

    name = "secret-rotated"
    breaks = 2
    takes_back = True
    held = 5.0

    def start(self, stage, chance):
        self._password, self._before = secrets.token_urlsafe(12), stage.shop.uids()
        stage.shop.change_broker_password(self._password)
        manage(stage.living).close_connections(stage.shop.vhost.user)

    def heal(self, stage):
        stage.shop.write_password(self._password)

    def settle(self, stage):
        stage.shop.wait_rolled(self._before, within=240)
        stage.wait_whole()


class OutOfMemory(PodFault):
    """A handler that is a thread asks for more memory than the container may have: the kernel kills the worker."""

    name = "pod-out-of-memory"
    breaks = greedy = 3
    mode = "Thread"

    def start(self, stage, chance):
        for number in range(self.greedy):
            before = self._look(stage)
            load = Load(stage.connect, [GREEDY], per_second=10, prefix=f"greedy-{id(self)}-{number}")
            load.join(within=60)
            stage.published.update(load.published)
            [name] = load.published
            self._wait_killed(stage, name, before)

    def _look(self, stage):
        """Look at what is compared afterwards."""
        return len(stage.crew.deaths)

    def _wait_killed(self, stage, name, before):
        stage.namespace.wait_for("a pod that was killed", lambda: len(stage.crew.deaths) > before, 120)
        stage.namespace.wait_for("the kernel's word for it", lambda: any(map(_was_oom, stage.crew.pods())), 30)


class HandlerOutOfMemory(OutOfMemory):
    """A handler that is a process asks for as much: the worker ends that process, or the kernel does, and lives."""

    name = "handler-out-of-memory"
    mode = "Process"

    def _look(self, stage):
        return stage.crew.containers()

    def _wait_killed(self, stage, name, before):
        ledger = stage.bed.ledger
        stage.namespace.wait_for("a process that was ended", lambda: was_ended_for_memory(ledger, name), 120)
        time.sleep(2 * LOOK_SECONDS)  # as long as it takes to be told of a container that has ended as well
        assert stage.crew.containers() == before, "a container did not outlive its handler's process"


def _evict(stage, chance):
    """Ask for a pod's eviction; say whether it was granted."""
    name = stage.crew.pick(chance)["metadata"]["name"]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": stage.namespace.name},
    }
    path = f"/api/v1/namespaces/{stage.namespace.name}/pods/{name}/eviction"
    done = stage.namespace.try_kubectl("create", "--raw", path, "--filename", "-", stdin=json.dumps(body))
    return done.returncode == 0


def _scale(stage, count):
    stage.namespace.kubectl("scale", f"rcon/{QUEUE}", f"--replicas={count}")


def _was_oom(pod):
    ended = (one.get("lastState", {}).get("terminated", {}) for one in pod["status"].get("containerStatuses", ()))
    return any(one.get("reason") == "OOMKilled" for one in ended)


POD_FAULTS = (
    PodDeleted,
    PodKilled,
    PodEvicted,
    RollingUpdate,
    ScaledDown,
    ScaledByBacklog,
    SecretRotated,
    OutOfMemory,
    HandlerOutOfMemory,
)
