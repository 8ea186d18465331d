"""A queue that was just made survives a killed broker: a broker keeps its name on disk only some time after."""

from datetime import timedelta

import pytest

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.errors import BrokerError
from redrive.ladder import ORPHANS, routing_key
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.topology import Owner, Wanted
from redrive_testbed.shell import wait_until

COUNT = 100
# One hop, and not due while the broker starts again: what is due then may have to wait for minutes, young queue or not.
DELAY = timedelta(seconds=32)
# A broker that starts again has held a rung for three minutes, and once for longer than four.
PATIENCE = 420
WANTED = Wanted("shop/orders", "orders", max_delay=timedelta(seconds=60))


@pytest.mark.usefixtures("grown_up_queues")
@pytest.mark.timeout(600)
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
        wait_until(lambda: f"of {COUNT} {where(own_broker)}", lambda: safe(amqp) >= COUNT, within=PATIENCE, every=0.5)


def safe(amqp):
    """Count what came home or went astray to the orphans: both are kept."""
    try:
        return sum(amqp.count_ready(queue) or 0 for queue in ("orders", ORPHANS))
    except BrokerError:
        return 0  # the queue has not elected its leader yet


def where(broker):
    queues = broker.api.get("queues", "young")
    return ", ".join(f"{queue['messages']} are in {queue['name']}" for queue in queues if queue.get("messages"))
