"""Orphans that come home, or do not: what one queue does is nobody else's business."""

from contextlib import nullcontext
from datetime import timedelta
from math import inf
from types import SimpleNamespace

import pytest
from cluster_objects import Clock, consumer_entry

from redrive.delivery import Delivery
from redrive.errors import NoAnswer
from redrive.ladder import ORPHANS, routing_key
from redrive.orphans import SilentHome, reclaim
from redrive.properties import Properties
from redrive.reading import FoundQueue, Reading
from redrive.workshop import Report
from redrive_operator import homecoming
from redrive_operator import vhost as module
from redrive_operator.homecoming import NEW_HOME_PART, ORPHANS_SECONDS, Homecoming
from redrive_operator.job import Job
from redrive_operator.observation import Problem, TopologySeen
from redrive_operator.reasons import TopologyReason
from redrive_operator.vhost import Vhost


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
    home = Homecoming(orders.desk, clock=clock)
    turns = []
    for _ in range(3):
        turns.append(home.bring_home(SimpleNamespace(amqp=broker), jobs, topologies, None))
        clock.now += 15
    assert turns == [{}, {orders.key: 1}, {}]
    broker.silent = ()
    clock.now += ORPHANS_SECONDS
    assert home.bring_home(SimpleNamespace(amqp=broker), jobs, topologies, None) == {mute.key: 1}
    assert broker.orphans == []


@pytest.fixture
def vhost(monkeypatch):
    """Give a vhost, and turns of it: what is said of the consumer, and how many messages came home."""
    monkeypatch.setattr(homecoming, "MOST_ORPHANS", 4)
    monkeypatch.setattr(homecoming, "FURTHEST_ORPHANS", 16)
    clock, entry = Clock(), consumer_entry("orders", queue="orders")
    job = Job(entry, entry.consumer, expected=True)
    vhost = Vhost(entry.desk, None, clock=clock)
    monkeypatch.setattr(vhost, "_read", lambda _access: (None, None, ()))
    monkeypatch.setattr(vhost, "_provide", lambda *_: {entry.key: TopologySeen()})
    monkeypatch.setattr(module, "ensure_vhost", lambda *_, **__: Report("4", "rabbit"))

    def turn(broker, *, after=0.0):
        clock.now += after
        door = SimpleNamespace(amqp=broker, gone=False)
        access = SimpleNamespace(connect_on_demand=lambda _: nullcontext(door), amqp=SimpleNamespace(user="u"))
        seen = vhost.tend(access, [job], lambda _: {})
        return "not looked at" in " ".join(seen.topologies[entry.key].missing), seen.reclaimed.get(entry.key, 0)

    return SimpleNamespace(turn=turn)


def test_orphans_behind_very_many_of_others_are_found_by_looks_that_go_further_and_that_is_said(vhost, caplog):
    broker = Broker(*["shop/stuck"] * 10, "shop/orders")
    assert vhost.turn(broker) == (True, 0)
    assert "7 orphans of" in caplog.text
    assert "none of the 4 before them can come home; the next look takes 8" in caplog.text
    assert vhost.turn(broker, after=ORPHANS_SECONDS / 2) == (True, 0), "it rests, and says so still"
    assert vhost.turn(broker, after=ORPHANS_SECONDS / 2) == (True, 0)
    assert vhost.turn(broker, after=ORPHANS_SECONDS) == (True, 0), "who looks further rests longer"
    assert vhost.turn(broker, after=ORPHANS_SECONDS) == (False, 1)
    assert vhost.turn(broker) == (False, 0)


def test_looks_go_no_further_than_a_broker_bears(vhost, caplog):
    broker = Broker(*["shop/stuck"] * 100)
    for _ in range(5):
        assert vhost.turn(broker, after=ORPHANS_SECONDS * 4) == (True, 0)
    assert "none of the 16 before them can come home; the next look takes 16" in caplog.text
    broker.orphans = []
    assert vhost.turn(broker, after=ORPHANS_SECONDS * 4) == (False, 0)


def test_orphans_that_come_home_some_at_a_time_are_nothing_to_tell_of(vhost):
    broker = Broker(*["shop/orders"] * 10)
    assert [vhost.turn(broker) for _ in range(3)] == [(False, 4), (False, 4), (False, 2)]


@pytest.fixture
def looks(monkeypatch):
    """Give a vhost with an orphan of nobody, and turns of it for some names: whether orphans are looked through."""
    clock, broker, looked = Clock(), Broker("shop/nobody"), []
    home = Homecoming(consumer_entry("orders").desk, clock=clock)
    take = broker.take
    monkeypatch.setattr(broker, "take", lambda *args, **more: looked.append(clock.now) or take(*args, **more))

    def turn(*names, after=0.0, expected=True, troubled=(), uid="first"):
        clock.now += after
        entries = [consumer_entry(name, queue=name, uid=f"{name}-{uid}") for name in names]
        jobs = [Job(entry, entry.consumer, expected=expected) for entry in entries]
        trouble = TopologySeen(Problem(TopologyReason.BROKEN, ""))
        topologies = {job.key: trouble if job.key.name in troubled else TopologySeen() for job in jobs}
        before = len(looked)
        assert home.bring_home(SimpleNamespace(amqp=broker), jobs, topologies, None) == {}
        return len(looked) > before

    return turn


def test_consumer_that_never_gets_ready_has_nobodys_orphans_looked_through_all_day(looks):
    assert looks("orders", expected=False)
    assert not any(looks("orders", after=ORPHANS_SECONDS / 10, expected=False) for _ in range(9))
    assert looks("orders", after=ORPHANS_SECONDS / 10, expected=False)


def test_orphans_of_who_is_new_are_looked_for_sooner_and_others_wait_no_longer_for_that(looks):
    assert looks("orders")
    assert not looks("orders", "bills", after=ORPHANS_SECONDS / NEW_HOME_PART / 2)
    assert looks("bills", after=ORPHANS_SECONDS / NEW_HOME_PART / 2)
    assert not looks("orders", "bills", after=ORPHANS_SECONDS / 2)
    assert looks("orders", after=ORPHANS_SECONDS / 4)


def test_consumer_that_was_made_anew_counts_as_new(looks):
    assert looks("orders")
    assert not looks("orders", after=ORPHANS_SECONDS / NEW_HOME_PART)
    assert looks("orders", uid="second")


def test_orphans_are_looked_for_anew_when_the_queue_has_trouble_no_more(looks):
    assert looks("orders", "bills")
    assert not looks("orders", "bills", troubled=["orders"], after=ORPHANS_SECONDS / NEW_HOME_PART)
    assert looks("orders", "bills")


def test_somebody_new_is_looked_for_after_a_whole_rest_whoever_else_is_new_meanwhile(looks):
    assert looks("others")
    part = ORPHANS_SECONDS / NEW_HOME_PART
    for number in range(NEW_HOME_PART):
        assert not looks("orders", after=part / 2)
        assert looks(f"brief-{number}", after=part / 2), "who comes in between takes the turn of all who are new"
    assert looks("orders", after=part / 2)


@pytest.fixture
def homecoming_of():
    """Give the homecoming of one consumer, and looks of it: since when it is sure that none of its orphans are left."""

    def homecoming_of(*orphans):
        clock, broker, entry = Clock(), Broker(*orphans), consumer_entry("orders", queue="orders")
        job = Job(entry, entry.consumer, expected=True)
        home = Homecoming(entry.desk, clock=clock)

        def look(after=0.0, *, problem=None, **found):
            clock.now += after
            queue = FoundQueue(ORPHANS, "quorum", **found)
            reading = Reading("4.3.6", "rabbit", queues={ORPHANS: queue}) if found else None
            topology = TopologySeen(problem and Problem(problem, ""))
            home.bring_home(SimpleNamespace(amqp=broker), [job], {job.key: topology}, reading)
            return home.when_looked(job, topology)

        return SimpleNamespace(look=look, clock=clock, broker=broker)

    return homecoming_of


def test_it_is_known_when_orphans_were_last_looked_through(homecoming_of):
    of_orders = homecoming_of("shop/nobody")
    began = of_orders.clock.now
    assert of_orders.look() == began
    assert of_orders.look(after=1) == began, "it rests"
    of_orders.broker.orphans = []
    assert of_orders.look(after=ORPHANS_SECONDS) == of_orders.clock.now, "there are none of anybody"


@pytest.mark.parametrize(
    "found",
    [
        {"members": 3, "online": 1, "ready": 0},
        {"members": 3, "online": 3, "leaderless": True, "ready": 0},
        {"ready": None},
        {"ready": 0, "unacked": 2},
    ],
    ids=["no majority", "no leader", "not counted yet", "in somebody's hands"],
)
def test_orphans_that_nobody_can_count_are_not_taken_for_none(homecoming_of, found):
    assert homecoming_of("shop/nobody").look(**found) == -inf


def test_orphans_that_were_not_all_seen_are_not_looked_through(homecoming_of, monkeypatch):
    monkeypatch.setattr(homecoming, "MOST_ORPHANS", 4)
    monkeypatch.setattr(homecoming, "FURTHEST_ORPHANS", 16)
    behind = homecoming_of(*["shop/nobody"] * 9)
    assert behind.look() == -inf
    assert behind.look(after=ORPHANS_SECONDS * 4) == -inf
    assert behind.look(after=ORPHANS_SECONDS * 4) == behind.clock.now


def test_look_that_fails_has_looked_through_nothing(homecoming_of, monkeypatch):
    failing = homecoming_of("shop/nobody")

    def take(*_args, **_more):
        raise NoAnswer("nothing")

    monkeypatch.setattr(failing.broker, "take", take)
    assert failing.look() == -inf


def test_only_a_queue_that_nothing_is_brought_to_is_not_waited_for(homecoming_of):
    assert homecoming_of().look(problem=TopologyReason.BROKEN) == -inf
    assert homecoming_of().look(problem=TopologyReason.QUEUE_REFUSED) == inf
