"""Brokers that are killed, restarted, frozen or short of something; alone, and as nodes of a cluster of three."""

import signal
import threading
from contextlib import ExitStack
from itertools import count

from faults.crew import send
from faults.fault import Fault
from faults.replicas import lead
from faults.stage import VHOST
from workers.bed import QUEUE

from redrive_testbed.rabbitmq_cluster import running_nodes
from redrive_testbed.shell import wait_until

CONSUMER_TIMEOUT_MS, USUAL_TIMEOUT_MS = 2_000, 1_800_000
MAJORITY_KEEPS_METADATA = 4
TICK_MS, USUAL_TICK_MS = 1_000, 60_000


class BrokerKilled(Fault):
    """The broker is killed with SIGKILL and started again."""

    name = "broker-killed"
    lane = "broker"
    takes_back = True
    held = 1.0

    def start(self, stage, chance):
        stage.nodes[0].kill()

    def heal(self, stage):
        stage.nodes[0].start()


class BrokerRestarted(BrokerKilled):
    """The broker is stopped in order and started again."""

    name = "broker-restarted"

    def start(self, stage, chance):
        stage.nodes[0].stop()


class BrokerFrozen(Fault):
    """Every process of the broker stands still."""

    name = "broker-frozen"
    lane = "broker"
    takes_back = True
    held = 20.0

    def start(self, stage, chance):
        self._pids = stage.nodes[0].pids()
        for pid in self._pids:
            send(pid, signal.SIGSTOP)

    def heal(self, stage):
        for pid in self._pids:
            send(pid, signal.SIGCONT)


class MemoryAlarm(Fault):
    """The broker believes that it is short of memory, and takes nothing."""

    name = "memory-alarm"
    lane = "broker"
    held = 15.0

    def start(self, stage, chance):
        self._alarm = ExitStack()
        self._alarm.enter_context(self._sound(stage.nodes[0]))

    def heal(self, stage):
        self._alarm.close()

    def _sound(self, node):
        return node.memory_alarm()


class DiskAlarm(MemoryAlarm):
    """The broker believes that its disk is nearly full, and takes nothing."""

    name = "disk-alarm"

    def _sound(self, node):
        return node.disk_alarm()


class ConsumerTimeout(Fault):
    """The broker loses its patience after two seconds with whoever holds a message."""

    name = "consumer-timeout"
    lane = "broker"
    takes_back = True
    held = 20.0
    breaks = int(held * 1000 / CONSUMER_TIMEOUT_MS)

    def start(self, stage, chance):
        _set_patience(stage.nodes[0], CONSUMER_TIMEOUT_MS, TICK_MS)

    def heal(self, stage):
        _set_patience(stage.nodes[0], USUAL_TIMEOUT_MS, USUAL_TICK_MS)
        stage.way.cut()  # who has begun to consume meanwhile would keep the short one


class NodeKilled(Fault):
    """One node of three is killed, the one that everybody is connected to, and comes back."""

    name = "node-killed"
    breaks = 2  # the node, and later the queue's leader may change again
    lane = "broker"
    takes_back = True
    held = 15.0
    nodes = 3

    def start(self, stage, chance):
        stage.nodes[0].kill()

    def heal(self, stage):
        stage.nodes[0].start()


class NodeFrozen(BrokerFrozen):
    """One node of three stands still, as if the network around it were gone; the others wait for it."""

    name = "node-frozen"
    nodes = 3


class NodeSlow(NodeFrozen):
    """One node of three answers late, all the time: a tenth of a second late, whoever asks, as if by a slow network."""

    name = "node-slow"
    takes_back = False
    pause = 0.1

    def start(self, stage, chance):
        super().start(stage, chance)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def heal(self, stage):
        self._over.set()
        self._thread.join(10)
        super().heal(stage)

    def _work(self):
        """Let it go on and stand still in turn."""
        for number in count():
            if self._over.wait(self.pause):
                return
            for pid in self._pids:
                send(pid, signal.SIGSTOP if number % 2 else signal.SIGCONT)


class NodesCut(Fault):
    """Nothing goes between one node of three, the one that everybody is connected to, and the two others.

    All of them run. The one that is alone refuses to speak with the others, for it does not know their cookie any more.
    Before RabbitMQ 4, where no majority keeps the metadata, that splits them, and nobody heals it: the one that was
    alone is restarted, as an administrator must.
    """

    name = "nodes-cut"
    breaks = 2  # before RabbitMQ 4 a node is also restarted in the end
    lane = "broker"
    takes_back = True
    held = 30.0
    nodes = 3

    def start(self, stage, chance):
        alone = stage.nodes[0]
        for name in self._others(stage):
            alone.rabbitmqctl("eval", f"erlang:set_cookie('{name}', cut), erlang:disconnect_node('{name}').")
        seen = alone.rabbitmqctl("eval", "nodes().")
        assert not any(name in seen for name in self._others(stage)), f"it is not alone: {seen}"

    def heal(self, stage):
        alone = stage.nodes[0]
        for name in self._others(stage):
            alone.rabbitmqctl("eval", f"erlang:set_cookie('{name}', erlang:get_cookie()), net_adm:ping('{name}').")
        if int(alone.version.split(".")[0]) < MAJORITY_KEEPS_METADATA:
            alone.stop()
            alone.start()
        wait_until("the nodes do not see each other", lambda: _see_each_other(stage.nodes), within=120)

    def _others(self, stage):
        return [node.settings.node for node in stage.nodes[1:]]


class LeaderChanged(Fault):
    """The work queue's leader is moved to another node, and to the third one."""

    name = "leader-changed"
    breaks = 2
    lane = "broker"
    takes_back = True
    nodes = 3

    def start(self, stage, chance):
        for node in stage.nodes[1:]:
            lead(stage.nodes[0], VHOST, QUEUE, node.settings.node)


class MajorityLost(Fault):
    """Two nodes of three are killed: no quorum queue takes or gives anything. Both come back."""

    name = "majority-lost"
    breaks = 2
    lane = "broker"
    takes_back = True
    held = 15.0
    nodes = 3

    def start(self, stage, chance):
        for node in stage.nodes[:2]:
            node.kill()

    def heal(self, stage):
        for node in stage.nodes[:2]:
            node.launch()
        for node in stage.nodes[:2]:
            node.wait_ready()


def _see_each_other(nodes):
    names = {node.settings.node for node in nodes}
    return all(running_nodes(node) == names for node in nodes)


def _set_patience(node, timeout, tick):
    for setting, value in (("consumer_timeout", timeout), ("channel_tick_interval", tick)):
        node.rabbitmqctl("eval", f"application:set_env(rabbit, {setting}, {value}).")


BROKER_FAULTS = (BrokerKilled, BrokerRestarted, BrokerFrozen, MemoryAlarm, DiskAlarm, ConsumerTimeout)
CLUSTER_FAULTS = (NodeKilled, NodeFrozen, NodeSlow, NodesCut, LeaderChanged, MajorityLost)
