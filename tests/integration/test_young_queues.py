"""A queue that was just made survives a killed broker: a broker keeps its name on disk only some time after."""

from datetime import timedelta

import pytest

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.errors import BrokerError
from redrive.ladder import routing_key
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.topology import Owner, Wanted
from redrive_testbed.shell import wait_until

COUNT = 100
# One hop, and not due while the broker starts again: what is due then may have to wait for minutes, young queue or not.
DELAY = timedelta(seconds=32)
WANTED = Wanted("shop/orders", "orders", max_delay=timedelta(seconds=60))


@pytest.mark.usefixtures("grown_up_queues")
@pytest.mark.timeout(400)
def test_messages_in_queues_that_were_just_made_survive_a_killed_broker(own_broker):
    vhost = own_broker.add_vhost("young")
    endpoint = parse_amqp_url(vhost.amqp_url)
    with Amqp([endpoint]) as amqp:
        ensure(WANTED, owner=Owner("tests"), amqp=amqp)
        for number in range(COUNT):
            amqp.publish("redrive.retry", routing_key(DELAY, "shop/orders"), b"%d" % number, Properties())
        own_broker.kill()
    own_broker.start()
    with Amqp([endpoint]) as amqp:
        wait_until("not every message came home", lambda: came_home(amqp) >= COUNT, within=230, every=0.5)


def came_home(amqp):
    try:
        return amqp.count_ready("orders") or 0
    except BrokerError:
        return 0  # the queue has not elected its leader yet
