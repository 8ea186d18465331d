"""A node that is lost with messages in the hands of its clients: when somebody else gets them.

What a consumer holds that still takes comes back when the node is gone. What one holds that was cancelled does not,
before RabbitMQ 4.3: the queue never looks whether that one lives. It is kept safe, and comes when another replica leads
the queue. A worker cancels whenever it goes over to another prefetch, and who looks at dead letters holds them so.
"""

import time

import pytest
from faults.replicas import count_all, elect

from redrive.amqp import Amqp
from redrive.elements import Queue, freeze
from redrive.endpoints import parse_amqp_url
from redrive.properties import Properties
from redrive_testbed.rabbitmq_settings import amqp_url
from redrive_testbed.shell import wait_until

VHOST, QUEUE = "lost", "orders"
HELD = 5
MENDED = (4, 3)
PATIENCE_SECONDS = 90

# The node that is lost is the first; whether it also leads the queue makes no difference.
pytestmark = [pytest.mark.timeout(600), pytest.mark.parametrize("leader", [0, 1], ids=["leads", "follows"])]


def test_what_a_consumer_of_a_lost_node_holds_comes_back(leader, own_cluster):
    fill(own_cluster, leader)
    with connect(own_cluster.nodes[0]) as holder:
        taking = holder.consume(QUEUE, prefetch=HELD, patience=30)
        assert None not in [next(taking) for _ in range(HELD)]
        lose_and_return(own_cluster)
    assert ready_after(own_cluster, PATIENCE_SECONDS) == HELD


def test_what_a_cancelled_consumer_of_a_lost_node_holds_comes_back_with_another_leader_at_the_latest(
    leader, own_cluster
):
    fill(own_cluster, leader)
    with connect(own_cluster.nodes[0]) as holder:
        assert len(holder.take(QUEUE, at_most=HELD, patience=30)) == HELD
        lose_and_return(own_cluster)
    is_mended = tuple(map(int, own_cluster.nodes[0].version.split(".")[:2])) >= MENDED
    assert ready_after(own_cluster, PATIENCE_SECONDS) == (HELD if is_mended else 0)
    assert count_all(own_cluster.nodes, VHOST) == {QUEUE: HELD}
    elect(own_cluster.nodes[1], VHOST, QUEUE)
    assert ready_after(own_cluster, PATIENCE_SECONDS) == HELD


def fill(cluster, leader):
    """Have a queue with messages, led by a node."""
    first = cluster.nodes[0]
    first.api.put("vhosts", VHOST)
    first.permit(first.settings.credentials.user, VHOST)
    with connect(cluster.nodes[leader]) as amqp:  # whoever declares it is connected to its leader
        amqp.declare(Queue(QUEUE, freeze({"x-queue-type": "quorum"})))
        for number in range(HELD):
            amqp.publish("", QUEUE, b"%d" % number, Properties(delivery_mode=2))
    wait_until("the queue is not known", lambda: "leader" in first.api.get("queues", VHOST, QUEUE), within=30)
    found = first.api.get("queues", VHOST, QUEUE)
    assert (found["leader"], len(found["members"])) == (cluster.nodes[leader].settings.node, 3)


def lose_and_return(cluster):
    cluster.nodes[0].kill()
    cluster.nodes[0].start()


def ready_after(cluster, patience):
    """Count what waits to be taken, as soon as that is all, or else after a while."""
    deadline = time.monotonic() + patience
    with connect(cluster.nodes[2]) as amqp:
        while (ready := amqp.count_ready(QUEUE)) < HELD and time.monotonic() < deadline:
            amqp.wait(1)
    return ready


def connect(node):
    return Amqp([parse_amqp_url(amqp_url(node.settings, vhost=VHOST))])
