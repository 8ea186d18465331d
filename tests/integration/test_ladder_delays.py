"""The delay ladder on real brokers: never early, not late, nobody in another's way."""

import time
from datetime import timedelta

import pytest

from redrive.errors import NotAccepted
from redrive.ladder import DELIVERY, ORPHANS, RETRY, hops, plan_ladder, reach, routing_key
from redrive.properties import Properties
from redrive.provision import ensure, ensure_vhost
from redrive.topology import Owner, Wanted
from redrive_testbed.shell import wait_until

OWNER = Owner("a-cluster")
ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=500))
# What a busy CI machine may add; how late messages are on an idle one is measured in bench/.
LATENESS = 3.0
# One hop each, two hops, three; units that round up; and 64 s, which is one digit of the third place.
DELAYS = (0, 0.1, 0.125, 0.3, 0.5, 1, 1.9, 2, 4, 5, 8, 9.3, 10, 12.1, 16, 20, 30, 33.7, 64)

pytestmark = pytest.mark.timeout(400)


def seconds(value):
    return timedelta(seconds=value)


def send(amqp, name, delay, address="shop/orders"):
    """Publish one retry; return when, by a clock that was read before."""
    sent = time.monotonic()
    amqp.publish(RETRY, routing_key(seconds(delay), address), name.encode(), Properties(delivery_mode=2))
    return sent


@pytest.fixture
def ladder(amqp, management):
    ensure(ORDERS, owner=OWNER, amqp=amqp, management=management)
    return amqp


def test_every_delay_is_kept_and_none_comes_early_or_late(ladder, collect):
    orders = collect("orders")
    sent = {str(delay): send(ladder, str(delay), delay) for delay in DELAYS}
    came = orders.wait_for(sent, within=max(DELAYS) + 30)
    lateness = {delay: came[str(delay)] - sent[str(delay)] - delay for delay in DELAYS}
    assert all(late >= 0 for late in lateness.values()), f"early: {lateness}"
    assert all(late < LATENESS for late in lateness.values()), f"late: {lateness}"
    assert sorted(orders.ids()) == sorted(sent), "a message came twice"


def test_short_delay_does_not_wait_behind_a_long_one(ladder, collect):
    orders = collect("orders")
    for i in range(200):
        send(ladder, f"long-{i}", 30)
    sent = {f"short-{i}": send(ladder, f"short-{i}", 0.5) for i in range(20)}
    came = orders.wait_for(sent, within=20)
    assert max(came[name] - sent[name] for name in sent) < 0.5 + LATENESS


def test_message_keeps_body_properties_and_key_through_two_rungs(ladder, collect):
    assert len(hops(seconds(2.125))) == 2
    orders = collect("orders")
    key = routing_key(seconds(2.125), "shop/orders")
    properties = Properties(
        content_type="text/plain", message_id="m-1", delivery_mode=2, headers={"shop": "eu", "n": 1.5}
    )
    ladder.publish(RETRY, key, b"body", properties)
    orders.wait_for(["body"], within=20)
    [(_, delivery)] = orders.arrivals
    assert (delivery.exchange, delivery.routing_key) == (DELIVERY, key)
    assert (delivery.properties.content_type, delivery.properties.message_id) == ("text/plain", "m-1")
    assert delivery.properties.headers.items() >= {"shop": "eu", "n": 1.5}.items()


def test_delay_beyond_the_ladder_comes_back_to_its_publisher(ladder):
    assert reach(3) < seconds(513)
    with pytest.raises(NotAccepted, match="no queue is bound"):
        send(ladder, "too-long", 513)
    assert ladder.count_ready(ORPHANS) == 0


def test_ladder_grows_under_sleepers_and_each_comes_home_once(amqp, management, collect):
    short = Wanted("shop/orders", "orders", reach(2))
    ensure(short, owner=OWNER, amqp=amqp, management=management)
    orders = collect("orders")
    sent = {f"before-{i}": (send(amqp, f"before-{i}", 3 + i * 0.05), 3 + i * 0.05) for i in range(200)}
    grown = ensure_vhost(5, owner=OWNER, amqp=amqp, management=management)
    assert {drift.element for drift in grown.repaired} == set(plan_ladder(5)) - set(plan_ladder(2))
    sent |= {f"after-{i}": (send(amqp, f"after-{i}", 2 + i * 0.05), 2 + i * 0.05) for i in range(100)}
    came = orders.wait_for(sent, within=60)
    assert all(came[name] - at >= delay for name, (at, delay) in sent.items())
    assert sorted(orders.ids()) == sorted(sent), "a message came twice"


def test_grown_ladder_takes_longer_delays(ladder, management):
    with pytest.raises(NotAccepted):
        send(ladder, "an hour", 3600)
    ensure_vhost(4, owner=OWNER, amqp=ladder, management=management)
    send(ladder, "an hour", 3600)
    [first, *_] = hops(seconds(3600))
    assert ladder.count_ready(first.name) == 1


def test_shorter_plan_leaves_a_taller_ladder_as_it_is(amqp, management):
    ensure_vhost(4, owner=OWNER, amqp=amqp, management=management)
    before = management.read()
    ensure_vhost(1, owner=OWNER, amqp=amqp, management=management)
    after = management.read()
    assert (after.bindings, after.exchanges, set(after.queues)) == (
        before.bindings,
        before.exchanges,
        set(before.queues),
    )


def test_messages_for_a_deleted_consumer_become_orphans_and_block_nobody(ladder, management, collect):
    gone = Wanted("shop/gone", "gone", seconds(500))
    ensure(gone, owner=OWNER, amqp=ladder, management=management)
    orders = collect("orders")
    # More than the 32 places of a rung's dead-letter worker, in the same rungs as the other consumer's.
    for i in range(50):
        send(ladder, f"gone-{i}", 2.125, "shop/gone")
    ladder.delete_queue("gone")
    sent = {f"kept-{i}": send(ladder, f"kept-{i}", 2.125) for i in range(50)}
    came = orders.wait_for(sent, within=60)
    assert max(came[name] - sent[name] for name in sent) < 2.125 + LATENESS
    wait_until("the orphans have not come", lambda: ladder.count_ready(ORPHANS) == 50, within=30)


def test_message_to_one_consumer_reaches_no_other(ladder, management, collect):
    other = Wanted("shop/orders_eu", "orders.eu", seconds(500))
    ensure(other, owner=OWNER, amqp=ladder, management=management)
    europe = collect("orders.eu")
    send(ladder, "eu", 0.25, "shop/orders_eu")
    europe.wait_for(["eu"], within=20)
    assert ladder.count_ready("orders") == 0
