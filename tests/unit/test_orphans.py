"""Orphans that come home, or do not: what one queue does is nobody else's business."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from cluster_objects import Clock, consumer_entry

from redrive.delivery import Delivery
from redrive.errors import NoAnswer
from redrive.ladder import ORPHANS, routing_key
from redrive.orphans import SilentHome, reclaim
from redrive.properties import Properties
from redrive_operator.observation import TopologySeen
from redrive_operator.vhost import ORPHANS_SECONDS, Job, Vhost


class Broker:
    """Orphans of some addresses, one each, and queues of which some say nothing; a connection ends with such a one."""

    frame_max = 131072

    def __init__(self, *addresses, silent=()):
        self.orphans, self.silent, self.taken = list(addresses), silent, []

    def count_ready(self, queue):
        return len(self.orphans) if queue == ORPHANS else 0

    def declare(self, _element):
        pass

    def take(self, _queue, *, at_most, **_more):
        self.taken = list(self.orphans[:at_most])
        keys = [routing_key(timedelta(seconds=1), address) for address in self.taken]
        properties = Properties(delivery_mode=2)
        return [Delivery(tag, ORPHANS, key, False, b"m", properties) for tag, key in enumerate(keys)]

    def publish(self, _exchange, queue, _body, _properties, *, within):
        if queue in self.silent:
            raise NoAnswer(f"{queue} said nothing for {within} s")

    def ack_several(self, tags, **_more):
        for tag in tags:
            self.orphans.remove(self.taken[tag])

    def give_back(self, *_args, **_more):
        pass

    def wait(self, _seconds):
        pass


def test_queue_that_says_nothing_is_named():
    broker = Broker("shop/mute", "shop/orders", silent=("mute",))
    with pytest.raises(SilentHome, match="mute said nothing for 20") as caught:
        reclaim(broker, {"shop/mute": "mute", "shop/orders": "orders"}, most=10)
    assert caught.value.address == "shop/mute"


def test_orphans_behind_those_of_a_queue_that_says_nothing_come_home_the_next_time():
    clock, broker = Clock(), Broker("shop/mute", "shop/orders", silent=("mute",))
    mute, orders = (consumer_entry(name, queue=name) for name in ("mute", "orders"))
    jobs = [Job(entry, entry.consumer, expected=True) for entry in (mute, orders)]
    topologies = {job.key: TopologySeen() for job in jobs}
    vhost = Vhost(orders.desk, None, clock=clock)
    turns = []
    for _ in range(3):
        turns.append(vhost._bring_home(SimpleNamespace(amqp=broker), jobs, topologies, None))
        clock.now += 15
    assert turns == [{}, {orders.key: 1}, {}]
    broker.silent = ()
    clock.now += ORPHANS_SECONDS
    assert vhost._bring_home(SimpleNamespace(amqp=broker), jobs, topologies, None) == {mute.key: 1}
    assert broker.orphans == []
