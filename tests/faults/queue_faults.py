"""What people do on a broker by hand, or by mistake: queues purged and deleted, limits set, passwords changed."""

import time
from datetime import timedelta

import pika
from faults.accounting import HELD_BY_A_RUNG
from faults.fault import Fault
from faults.load import Load
from faults.replicas import lead
from faults.scripts import SCRIPTS
from faults.stage import DELAY_SECONDS, VHOST, Operator
from workers.bed import QUEUE

from redrive.ladder import DELIVERY_LIMIT, RETRY, routing_key
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.topology import Owner, Wanted, dead_queue_name
from redrive_testbed.shell import wait_until

RUNG = "redrive.delay.0.2"  # where a message sleeps for 250 ms
NEIGHBOUR = Wanted("shop/neighbour", "neighbour", timedelta(seconds=2))
SLEEPERS, BEHIND = 100, 40
BESIDE_PER_SECOND = 0.5

# A rung sends again after that what was not confirmed, and everybody in it waits.
RUNG_SECONDS = 180.0

# A queue that workers keep up with is empty, and nothing is destroyed with it.
PILING_UP_SECONDS = 2.0


class QueuePurged(Fault):
    """Somebody empties the work queue. What waited in it is gone, and how many that were is told."""

    name = "queue-purged"
    lane = "broker"

    def start(self, stage, chance):
        with stage.crew.away():
            time.sleep(PILING_UP_SECONDS)
            connection = pika.BlockingConnection(pika.URLParameters(stage.url))
            self.destroyed = connection.channel().queue_purge(QUEUE).method.message_count
            connection.close()


class QueueDeleted(Fault):
    """Somebody deletes the work queue with what is in it. The operator makes it again."""

    name = "queue-deleted"
    lane = "broker"

    def start(self, stage, chance):
        with stage.crew.away():
            time.sleep(PILING_UP_SECONDS)
            with stage.connect() as amqp:
                self.destroyed = amqp.delete_queue(QUEUE)

    def heal(self, stage):
        stage.turn()


class RungDeleted(Fault):
    """Somebody deletes the rung of the ladder that every retry goes by. The operator makes it again."""

    name = "rung-deleted"
    lane = "broker"
    escaping = HELD_BY_A_RUNG  # a broker counts what sleeps before it deletes it, and meanwhile some are due

    def start(self, stage, chance):
        with stage.connect() as amqp:
            self.destroyed = amqp.delete_queue(RUNG)

    def heal(self, stage):
        stage.turn()


class NeighbourStuck(Fault):
    """Another consumer's queue takes no more, by somebody's policy, while many of its messages come home.

    It shares the rung with ours. The operator takes its binding away, and gives it back when the limit is gone. That
    lasts for longer than a rung waits: the neighbour is refused a second time if it is in the ladder still, and we wait
    as long again.
    """

    name = "neighbour-stuck"
    lane = "broker"
    held = RUNG_SECONDS + 80.0
    max_lateness = RUNG_SECONDS + 20.0

    def start(self, stage, chance):
        self._tend(stage)
        limit = {
            "pattern": "^neighbour$",
            "definition": {"max-length": 1, "overflow": "reject-publish"},
            "apply-to": "queues",
            "priority": 2_000_000,
        }
        stage.living.api.put("policies", VHOST, "limit", body=limit)
        self._send_sleepers(stage)
        self._tend(stage)

    def heal(self, stage):
        stage.living.api.delete("policies", VHOST, "limit")
        self._tend(stage)

    def _send_sleepers(self, stage):
        """Have its messages come home, and then ours: the others may all have come before."""
        key = routing_key(timedelta(seconds=DELAY_SECONDS), NEIGHBOUR.address)
        with stage.connect() as amqp:
            for _ in range(SLEEPERS):
                amqp.publish(RETRY, key, b"{}", Properties(delivery_mode=2))
        stage.neighbours[NEIGHBOUR] += SLEEPERS
        load = Load(stage.connect, [SCRIPTS["flaky"]] * BEHIND, per_second=20, prefix=f"behind-{id(self)}")
        load.join(within=60)
        stage.published.update(load.published)

    def _tend(self, stage):
        with stage.connect() as amqp:
            ensure(NEIGHBOUR, owner=Owner("tests"), amqp=amqp, management=stage.management())


class NeighbourWithoutQuorum(NeighbourStuck):
    """Of another consumer's queue two replicas of three end, while many of its messages come home; all nodes run.

    It shares the rung with ours, and its operator has turns as ours has. All the while messages of ours fail once.
    The replica that stays leads the queue, since of one that ends while its node runs the node tells the old counts.
    """

    name = "neighbour-without-quorum"
    nodes = 3

    def start(self, stage, chance):
        self._tend(stage)
        wait_until("the neighbour's queue is not on every node", lambda: _is_everywhere(stage), within=60)
        lead(stage.nodes[0], VHOST, NEIGHBOUR.queue, stage.nodes[2].settings.node)
        for node in stage.nodes[:2]:
            _replica(node, "stop_server")
        self._send_sleepers(stage)
        self._operator = Operator(stage, NEIGHBOUR)  # now, when the rung has its hands full
        scripts = [SCRIPTS["flaky"]] * int(self.held * BESIDE_PER_SECOND)
        self._beside = Load(stage.connect, scripts, per_second=BESIDE_PER_SECOND, prefix="beside")

    def heal(self, stage):
        self._beside.join(within=60)
        stage.published |= self._beside.published
        for node in stage.nodes[:2]:
            _replica(node, "restart_server")
        wait_until("the neighbour's queue has no quorum", lambda: _is_everywhere(stage), within=60)

    def settle(self, stage):
        """Wait until all that slept is home: by the orphans, since the queue was not in the ladder."""
        wait_until("the neighbour's messages are not home", lambda: _count_home(stage) >= SLEEPERS, within=RUNG_SECONDS)
        self._operator.stop()


def _count_home(stage):
    with stage.connect() as amqp:
        return amqp.count_ready(NEIGHBOUR.queue)


def _is_everywhere(stage):
    return len(stage.living.api.get("queues", VHOST, NEIGHBOUR.queue).get("online", ())) == len(stage.nodes)


def _replica(node, what):
    """End one node's own replica of the neighbour's queue, or start it again."""
    found = f'{{ok, Queue}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"{VHOST}">>, queue, <<"{NEIGHBOUR.queue}">>))'
    told = node.rabbitmqctl(
        "eval", f"{found}, {{Name, _}} = amqqueue:get_pid(Queue), ra:{what}(quorum_queues, {{Name, node()}})."
    )
    assert told.strip() == "ok", told


class DeadLettersLimited(Fault):
    """Somebody's policy of the highest priority has no more than three letters fit into the dead letter queue."""

    name = "dead-letters-limited"
    lane = "broker"
    held = 20.0

    def start(self, stage, chance):
        limit = {
            "pattern": f"^{dead_queue_name(QUEUE)}$",
            "definition": {"max-length": 3, "delivery-limit": DELIVERY_LIMIT},
            "apply-to": "queues",
            "priority": 2_000_000,
        }
        stage.living.api.put("policies", VHOST, "limit", body=limit)
        self._said = self._complaints(stage)

    def heal(self, stage):
        stage.living.api.delete("policies", VHOST, "limit")
        assert any("max-length by policy 'limit'" in one for one in self._said), f"nobody was told: {self._said}"

    def _complaints(self, stage):
        with stage.connect() as amqp:
            report = ensure(stage.wanted, owner=Owner("tests"), amqp=amqp, management=stage.management())
        return [str(one) for one in report.broken]


class PasswordRotated(Fault):
    """The workers' password is changed and their connections closed; a while later they are given the new one."""

    name = "password-rotated"
    breaks = 2  # their connections are closed, and the next ones refused
    lane = "broker"
    takes_back = True
    held = 5.0

    def start(self, stage, chance):
        self._url, user = stage.change_password()
        stage.management().close_connections(user)

    def heal(self, stage):
        stage.bed.point_to(self._url)


QUEUE_FAULTS = (
    QueuePurged,
    QueueDeleted,
    RungDeleted,
    NeighbourStuck,
    NeighbourWithoutQuorum,
    DeadLettersLimited,
    PasswordRotated,
)
