"""The worker pods of a trial: who is there, who died, and how one of them is killed as the kernel would."""

import os
import signal
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from subprocess import SubprocessError

from e2e.shops import is_ready
from faults.crew import send
from workers.bed import QUEUE

LOOK_SECONDS = 2.0


class PodCrew:
    """The pods of the consumer. `deaths` are the times at which one was killed, or ended and was started again."""

    def __init__(self, namespace):
        self._namespace = namespace
        self._restarts = {}
        self._stopping = threading.Event()
        self.deaths = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def pods(self):
        """Give all of them, also those that are on their way out."""
        return self._namespace.get("pods", f"--selector=redrive.dev/consumer={QUEUE}")["items"]

    def working(self):
        return [pod for pod in self.pods() if is_ready(pod) and not is_going(pod)]

    def containers(self):
        """Give the ids of all containers that run: one that is started again has another."""
        statuses = [status for pod in self.pods() for status in pod["status"].get("containerStatuses", ())]
        return {status["containerID"] for status in statuses if "running" in status["state"]}

    def pick(self, chance):
        """Give one that works, as soon as there is one."""
        return chance.choice(self._namespace.wait_for("a pod that works", self.working, 180))

    def kill(self, pod):
        """Kill every process of a pod; its node starts it again, in the same pod."""
        uid = pod["metadata"]["uid"]
        self.deaths.append(time.time())
        self._restarts[uid] = self._restarts.get(uid, 0) + 1  # known already when its node tells of it
        kill_inside(pod)

    def wait_working(self, count, within=240):
        """Wait until so many pods work, and none is beside them, not even on its way out."""
        self._namespace.wait_for(lambda: f"{count} pods, not {self._told()},", lambda: self._are_just(count), within)

    def close(self):
        self._stopping.set()
        self._thread.join(60)

    def _are_just(self, count):
        pods = self.pods()
        return len(pods) == count and all(is_ready(pod) and not is_going(pod) for pod in pods)

    def _told(self):
        return {pod["metadata"]["name"]: (is_ready(pod), is_going(pod)) for pod in self.pods()}

    def _watch(self):
        while not self._stopping.wait(LOOK_SECONDS):
            with suppress(AssertionError, OSError, ValueError, SubprocessError):
                self._look(self.pods())

    def _look(self, pods):
        for pod in pods:
            for status in pod["status"].get("containerStatuses", ()):
                uid, count = pod["metadata"]["uid"], status["restartCount"]
                known = self._restarts.get(uid, 0)
                self.deaths += [_ended_at(status)] * (count - known)
                self._restarts[uid] = max(count, known)


def is_going(pod):
    return "deletionTimestamp" in pod["metadata"]


def _ended_at(status):
    """Say when a container ended that was started again: Kubernetes waits before it does that, ever longer.

    It tells whole seconds: the end came before the next one.
    """
    ended = status.get("lastState", {}).get("terminated", {}).get("finishedAt")
    return time.time() if ended is None else datetime.fromisoformat(ended).timestamp() + 1


def kill_inside(pod):
    """Send SIGKILL to every process of a pod but the one that only holds its place on the node."""
    for pid in pids_of(pod["metadata"]["uid"]):
        send(pid, signal.SIGKILL)


def pids_of(uid):
    """List the processes of a pod as this machine sees them, by the control groups that they are in."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            inside = f"pod{uid}" in (folder / "cgroup").read_text()
            if inside and (folder / "comm").read_text().strip() != "pause" and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found
