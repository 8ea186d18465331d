"""Orphans on real brokers: those of living consumers come home, the others stay where they were, and none is lost."""

from datetime import timedelta

import pytest

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.errors import AccessRefused, Conflict, Unreachable
from redrive.ladder import DELIVERY, ORPHANS, RETRY, delivery_binding, routing_key
from redrive.letters import looking
from redrive.orphans import Reclaimed, reclaim
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.topology import Owner, Wanted
from redrive_testbed.shell import wait_until

ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=1))
HOME = delivery_binding("shop/orders", "orders")
HOMES = {"shop/orders": "orders"}
MOST = 1000


@pytest.fixture
def ready(amqp, management):
    ensure(ORDERS, owner=Owner("a-cluster"), amqp=amqp, management=management)
    return amqp


def orphan(amqp, body, address="shop/orders", **headers):
    """Publish what the end of a delay would, for a consumer whose queue is not bound."""
    properties = Properties(delivery_mode=2, message_id=body.decode()[-20:], headers=headers)
    amqp.publish(ORPHANS, routing_key(timedelta(seconds=1), address), body, properties)


def bodies(amqp, queue):
    """Look at what is in a queue, and give it back."""
    found = []
    for delivery in amqp.consume(queue, prefetch=1000, patience=1):
        if delivery is None:
            break
        found.append(delivery)
    amqp.cancel()
    for delivery in found:
        amqp.reject(delivery.tag, requeue=True)
    wait_until("the look is not over", lambda: amqp.count_ready(queue) == len(found), within=10)
    return found


def settled(amqp, count, queue=ORPHANS):
    wait_until(f"{queue} has not {count}", lambda: amqp.count_ready(queue) == count, within=20)


def test_orphans_of_a_living_consumer_come_home_in_their_order(ready):
    for number in range(20):
        orphan(ready, b"%d" % number)
    found = reclaim(ready, HOMES, most=MOST)
    assert (found.put_back, found.left, found.unseen) == ({"shop/orders": 20}, 0, 0)
    assert [int(one.body) for one in bodies(ready, "orders")] == list(range(20))
    settled(ready, 0)


def test_nothing_to_do_is_done_at_once(ready):
    assert reclaim(ready, HOMES, most=MOST) == Reclaimed({}, 0)


def test_sleeper_of_a_deleted_queue_comes_home_to_the_one_made_again(ready, management):
    sent = Properties(delivery_mode=2, message_id="m", headers={"redrive-attempt": 3, "country": "at"})
    ready.delete_queue("orders")
    ready.publish(RETRY, routing_key(timedelta(milliseconds=250), "shop/orders"), b"m", sent)
    settled(ready, 1)
    ensure(ORDERS, owner=Owner("a-cluster"), amqp=ready, management=management)
    assert reclaim(ready, HOMES, most=MOST).put_back == {"shop/orders": 1}
    [home] = bodies(ready, "orders")
    headers = home.properties.headers
    assert (headers["redrive-attempt"], headers["country"], home.properties.message_id) == (3, "at", "m")
    assert not [name for name in headers if name.startswith(("x-death", "x-first-death", "x-last-death"))]
    assert home.properties.delivery_mode == 2


def test_reclaimed_message_can_be_retried_again(ready):
    """A message that carries its death with it is dropped by 3.10 when it comes by a second time."""
    ready.unbind(HOME)
    ready.publish(RETRY, routing_key(timedelta(milliseconds=125), "shop/orders"), b"m", Properties(delivery_mode=2))
    settled(ready, 1)
    ready.declare(HOME)
    reclaim(ready, HOMES, most=MOST)
    [home] = bodies(ready, "orders")
    ready.publish(RETRY, routing_key(timedelta(milliseconds=125), "shop/orders"), b"again", home.properties)
    settled(ready, 2, "orders")


def test_ours_behind_hundreds_of_others_come_home_and_the_others_keep_their_order(ready):
    for number in range(300):
        orphan(ready, b"f%d" % number, "shop/gone")
    for number in range(5):
        orphan(ready, b"%d" % number)
    found = reclaim(ready, HOMES, most=MOST)
    assert (found.put_back, found.left, found.unseen) == ({"shop/orders": 5}, 300, 0)
    settled(ready, 300)
    assert [one.body for one in bodies(ready, ORPHANS)] == [b"f%d" % number for number in range(300)]


def test_ours_among_others_leave_them_in_their_order_look_after_look(ready):
    for number in range(120):
        orphan(ready, b"%d" % number, "shop/orders" if number % 3 == 0 else "shop/gone")
    assert reclaim(ready, HOMES, most=MOST).put_back == {"shop/orders": 40}
    for _ in range(3):
        settled(ready, 80)
        assert reclaim(ready, HOMES, most=MOST) == Reclaimed({}, 80)
    settled(ready, 80)
    expected = [number for number in range(120) if number % 3]
    assert [int(one.body) for one in bodies(ready, ORPHANS)] == expected


def test_no_more_are_looked_at_than_asked_for(ready):
    for number in range(30):
        orphan(ready, b"%d" % number)
    found = reclaim(ready, HOMES, most=10)
    assert (found.put_back, found.left, found.unseen) == ({"shop/orders": 10}, 20, 20)
    assert [int(one.body) for one in bodies(ready, "orders")] == list(range(10))


def test_look_at_some_leaves_them_in_front_of_the_rest(ready):
    for number in range(100):
        orphan(ready, b"%d" % number, "shop/gone")
    assert reclaim(ready, HOMES, most=50) == Reclaimed({}, 100, unseen=50)
    settled(ready, 100)
    assert [int(one.body) for one in bodies(ready, ORPHANS)] == list(range(100))


def test_orphan_without_a_readable_key_stays(ready):
    for key in ("nonsense", "1.2.3.shop/orders", "g.0.0.0.0.shop/orders"):
        ready.publish(ORPHANS, key, b"m", Properties(delivery_mode=2))
    assert reclaim(ready, HOMES, most=MOST) == Reclaimed({}, 3)
    settled(ready, 3)


def test_each_consumer_gets_its_own(ready, management):
    other = Wanted("shop/other", "other", timedelta(seconds=1))
    ensure(other, owner=Owner("a-cluster"), amqp=ready, management=management)
    for number in range(6):
        orphan(ready, b"%d" % number, "shop/orders" if number % 2 else "shop/other")
    found = reclaim(ready, {**HOMES, "shop/other": "other"}, most=MOST)
    assert found.put_back == {"shop/orders": 3, "shop/other": 3}
    assert [int(one.body) for one in bodies(ready, "other")] == [0, 2, 4]


def test_orphans_whose_queue_is_not_there_stay_and_hold_up_nobody(ready):
    for number in range(4):
        orphan(ready, b"%d" % number, "shop/orders" if number % 2 else "shop/nowhere")
    found = reclaim(ready, {**HOMES, "shop/nowhere": "nowhere"}, most=MOST)
    assert (found.put_back, found.left) == ({"shop/orders": 2}, 2)
    settled(ready, 2)


def test_large_orphans_are_taken_few_at_a_time(ready, monkeypatch):
    monkeypatch.setattr(looking, "FIRST_WINDOW", 8)
    monkeypatch.setattr(looking, "WINDOW_BYTES", 4096)
    for number in range(30):
        orphan(ready, b"%01000d" % number)
    asked = []
    take = ready.take
    monkeypatch.setattr(ready, "take", lambda *args, **more: asked.append(more["at_most"]) or take(*args, **more))
    assert reclaim(ready, HOMES, most=MOST).put_back == {"shop/orders": 30}
    assert asked == [8, 4, 4, 4, 4, 4, 2]


def test_large_orphans_behind_small_ones_are_not_all_in_memory_at_once(ready, monkeypatch):
    """What is taken next is chosen by those before: hundreds of the largest came at once behind some small ones."""
    monkeypatch.setattr(looking, "MOST_BYTES", 50_000)
    for number in range(60):
        orphan(ready, b"%d" % number)
    for number in range(40):
        orphan(ready, b"%010000d" % number)
    sizes = []
    take = ready.take

    def measured(*args, **more):
        taken = take(*args, **more)
        sizes.append(sum(len(delivery.body) for delivery in taken))
        return taken

    monkeypatch.setattr(ready, "take", measured)
    assert reclaim(ready, HOMES, most=MOST).put_back == {"shop/orders": 100}
    assert max(sizes) <= 60_000


class Dying(Amqp):
    """Loses its connection where a crash hurts most: the queue has the message, and the orphans still have it."""

    def ack_several(self, tags, **more):
        self.close()
        super().ack_several(tags, **more)


def test_crash_between_confirm_and_ack_doubles_a_message_and_loses_none(ready, vhost):
    for number in range(10):
        orphan(ready, b"%d" % number)
    with Dying([parse_amqp_url(vhost.amqp_url)]) as dying, pytest.raises(Unreachable):
        reclaim(dying, HOMES, most=MOST)
    settled(ready, 10)
    settled(ready, 1, "orders")
    assert reclaim(ready, HOMES, most=MOST).put_back == {"shop/orders": 10}
    assert sorted(int(one.body) for one in bodies(ready, "orders")) == [0, *range(10)]


class Picky(Amqp):
    """Refuses one message for its own sake, as a broker does whose longest message was made shorter."""

    def publish(self, exchange, routing_key, body, properties, **more):
        if body == b"3":
            raise Conflict("publishing: message size is larger than configured max size")
        super().publish(exchange, routing_key, body, properties, **more)


def test_orphan_that_cannot_be_published_stays_alone(ready, vhost):
    for number in range(6):
        orphan(ready, b"%d" % number)
    with Picky([parse_amqp_url(vhost.amqp_url)]) as picky:
        found = reclaim(picky, HOMES, most=MOST)
    assert (found.put_back, found.left) == ({"shop/orders": 5}, 1)
    assert [one.body for one in bodies(ready, ORPHANS)] == [b"3"]


def test_who_may_not_publish_to_a_queue_gives_everything_back(ready, broker, vhost):
    user = f"reader-{vhost.name}"
    broker.api.put("users", user, body={"password": "reader", "tags": ""})
    broker.api.put("permissions", vhost.name, user, body={"configure": "", "write": "^$", "read": ".*"})
    orphan(ready, b"m")
    with Amqp([parse_amqp_url(vhost.amqp_url).as_user(user, "reader")]) as reader:
        with pytest.raises(AccessRefused):
            reclaim(reader, HOMES, most=MOST)
        settled(ready, 1)
    broker.api.delete("users", user)


def test_orphans_that_would_not_survive_a_look_are_not_looked_at(ready, broker, vhost, management):
    body = {"pattern": "^redrive", "definition": {"delivery-limit": 5}, "priority": 1, "apply-to": "queues"}
    broker.api.put("operator-policies", vhost.name, "low", body=body)
    orphan(ready, b"m")
    with pytest.raises(Conflict, match="delivery limit of 5"):
        reclaim(ready, HOMES, most=MOST, reading=management.read())


def test_usual_orphans_may_be_looked_at(ready, management):
    orphan(ready, b"m")
    assert reclaim(ready, HOMES, most=MOST, reading=management.read()).put_back == {"shop/orders": 1}


def test_orphan_is_what_no_consumer_is_bound_for(ready):
    ready.publish(DELIVERY, routing_key(timedelta(0), "shop/gone"), b"m", Properties(delivery_mode=2))
    assert reclaim(ready, {"shop/gone": "orders"}, most=MOST).put_back == {"shop/gone": 1}
