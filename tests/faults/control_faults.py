"""What happens to a cluster around pods that work: its operator, its API server and its nodes go, and come back."""

import time

from faults.fault import Fault
from faults.pod_crew import kill_inside
from faults.pod_faults import PodFault


class OperatorKilled(Fault):
    """The operator is killed by SIGKILL, or its pod is deleted by force, five times at moments of chance."""

    name = "operator-killed"
    lane = "control"
    gentle = True
    pace = 8.0

    def start(self, stage, chance):
        for _ in range(5):
            if chance.random() < 0.5:
                for pod in stage.kubernetes.operator.pods():
                    kill_inside(pod)
            else:
                stage.kubernetes.operator.kill()
            time.sleep(chance.uniform(1, 6))

    def heal(self, stage):
        """Have a pod whose container was never started again: somebody counts those of an operator that dies alone."""
        stage.kubernetes.operator.kill()

    def settle(self, stage):
        stage.wait_whole()


class OperatorPodDeleted(OperatorKilled):
    """The operator's pod is deleted by force, three times in a row."""

    name = "operator-pod-deleted"

    def start(self, stage, chance):
        for _ in range(3):
            stage.kubernetes.operator.kill()
            time.sleep(chance.uniform(1, 5))


class ApiServerAway(Fault):
    """The API server is killed, and there is none for a minute."""

    name = "api-server-away"
    lane = "control"
    gentle = True
    held = 60.0
    pace = 4.0  # so that there is something to do in all that time

    def start(self, stage, chance):
        stage.kubernetes.machine.kill_server("kube-apiserver")

    def heal(self, stage):
        stage.kubernetes.machine.start_servers()

    def settle(self, stage):
        stage.wait_whole()


class NodeDrained(PodFault):
    """A node is drained of its pods, in order, for maintenance, and taken into service again."""

    name = "node-drained"
    gentle = True
    held = 5.0

    def start(self, stage, chance):
        self._node = stage.crew.pick(chance)["spec"]["nodeName"]
        words = "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=180s"
        stage.kubectl("drain", self._node, *words)

    def heal(self, stage):
        stage.kubectl("uncordon", self._node)


class NodeDead(PodFault):
    """A node with a worker on it loses its power. Its pods come up on the other one; later it is there again."""

    name = "node-dead"
    pace = 4.0

    def start(self, stage, chance):
        self._name = stage.crew.pick(chance)["spec"]["nodeName"]
        self._node = next(node for node in stage.kubernetes.machine.nodes() if node.spec.name == self._name)
        stage.crew.deaths += [time.time() for pod in stage.crew.pods() if pod["spec"].get("nodeName") == self._name]
        stage.kubernetes.machine.kill_node(self._node.spec.index)

    def settle(self, stage):
        try:
            stage.namespace.wait_for("all pods on the other node", lambda: self._elsewhere(stage), 240)
        finally:
            stage.kubernetes.machine.add_node(self._node.spec)
        stage.wait_whole()

    def _elsewhere(self, stage):
        working = [pod for pod in stage.crew.working() if pod["spec"]["nodeName"] != self._name]
        return len(working) == stage.workers


CONTROL_FAULTS = (OperatorKilled, ApiServerAway, NodeDrained, NodeDead)
