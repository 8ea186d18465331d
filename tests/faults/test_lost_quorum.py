"""A queue of which most replicas are gone: it may count as empty, and must not be taken for it."""

from datetime import timedelta

import pytest

from redrive.amqp import Amqp
from redrive.elements import Queue, freeze
from redrive.endpoints import parse_amqp_url
from redrive.errors import BrokerError
from redrive.removal import have_answer
from redrive.topology import Wanted
from redrive_testbed.rabbitmq_settings import amqp_url
from redrive_testbed.shell import wait_until

VHOST, QUEUE = "lost", "orders"
ORDERS = Wanted("shop/orders", QUEUE, timedelta(seconds=1))

pytestmark = pytest.mark.timeout(600)


def test_queue_without_quorum_does_not_answer_that_it_has_nothing(own_cluster):
    first, *others = own_cluster.nodes
    first.api.put("vhosts", VHOST)
    first.permit(first.settings.credentials.user, VHOST)
    with connect(first) as amqp:
        amqp.declare(Queue(QUEUE, freeze({"x-queue-type": "quorum"})))
        wait_until("the queue is not known", lambda: "leader" in first.api.get("queues", VHOST, QUEUE), within=30)
        have_answer(ORDERS, amqp=amqp)
    for node in others:
        node.kill()
    with connect(first) as amqp:
        assert amqp.count_ready(QUEUE) == 0
        with pytest.raises(BrokerError):
            have_answer(ORDERS, amqp=amqp)


def connect(node):
    return Amqp([parse_amqp_url(amqp_url(node.settings, vhost=VHOST))])
