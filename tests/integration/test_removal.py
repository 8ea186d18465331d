"""A consumer's queues taken away, on real brokers: ours go, the rest stays, and every step can be repeated."""

from dataclasses import replace
from datetime import timedelta

import pika
import pytest

from redrive.amqp import Amqp, OnDemand
from redrive.elements import Binding, Exchange, Queue, freeze
from redrive.endpoints import parse_amqp_url
from redrive.errors import NotAccepted, Unreachable
from redrive.ladder import ORPHANS, RETRY, delivery_binding, routing_key
from redrive.orphans import reclaim
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.removal import Counted, Removed, count, detach, have_answer, remove
from redrive.topology import DEAD, Owner, Wanted, mark
from redrive_testbed.shell import wait_until

SHORT = timedelta(seconds=1)
BOUND = Binding("events", "orders", "queue", "order.*")
ORDERS = Wanted("shop/orders", "orders", SHORT, bindings=(BOUND,), retention=timedelta(hours=1))
OTHER = Wanted("shop/other", "other", SHORT, bindings=(replace(BOUND, destination="other"),))
HOME = delivery_binding("shop/orders", "orders")
BARE = Queue("orders", freeze({"x-queue-type": "quorum"}))


def publish(amqp, exchange, key, times=1):
    for _ in range(times):
        amqp.publish(exchange, key, b"m", Properties(delivery_mode=2))


def make(amqp, management, *wanted):
    amqp.declare(Exchange("events"))
    return [ensure(one, owner=Owner("a-cluster"), amqp=amqp, management=management) for one in wanted]


@pytest.fixture
def made(amqp, management):
    """Two consumers, of which one is to go."""
    return make(amqp, management, ORDERS, OTHER)


@pytest.fixture
def go(amqp, management):
    """Remove with a reading of this moment."""
    return lambda wanted=ORDERS, **more: remove(
        wanted, amqp=amqp, management=management, reading=management.read(), **more
    )


def ours(management, name="orders"):
    """List what a consumer of this queue has in the vhost."""
    reading = management.read()
    queues = [queue for queue in reading.queues if queue in (name, f"redrive.dead.{name}")]
    bindings = [binding for binding in reading.bindings if binding.source and binding.destination in queues]
    policies = [one.name for one in reading.policies if one.name in (f"redrive.dead.{name}", f"redrive.work.{name}")]
    return queues + bindings + policies


def test_removed_consumer_leaves_nothing_of_its_own_and_all_of_the_others(made, go, management):
    before = ours(management, "other")
    assert go() == Removed(0, 0, ())
    assert ours(management) == []
    assert sorted(map(str, ours(management, "other"))) == sorted(map(str, before))
    assert {DEAD, RETRY, ORPHANS} <= set(management.read().exchanges)


def test_destroyed_messages_are_counted_by_the_broker(made, go, amqp):
    publish(amqp, "", "orders", times=3)
    publish(amqp, DEAD, "shop/orders", times=2)
    assert go() == Removed(ready=3, dead=2)


def test_removing_again_changes_nothing(made, go, amqp, management):
    stale = management.read()
    go()
    assert go() == Removed()
    assert remove(ORDERS, amqp=amqp, management=management, reading=stale) == Removed()
    assert ours(management) == []


def test_removing_works_without_a_management_api(amqp, management):
    ensure(replace(ORDERS, bindings=()), owner=Owner("a-cluster"), amqp=amqp)
    publish(amqp, "", "orders")
    assert remove(ORDERS, amqp=amqp) == Removed(ready=1)
    assert ours(management) == []


class Dying(Amqp):
    """Loses its connection right before its n-th deletion of a queue."""

    def delete_queue(self, name):
        self.deletions = getattr(self, "deletions", 0) + 1
        if self.deletions == self.dies_at:
            self.close()
        return super().delete_queue(name)


@pytest.mark.parametrize("dies_at", [1, 2])
def test_next_remover_finishes_what_a_killed_one_began(dies_at, made, go, vhost, management):
    with Dying([parse_amqp_url(vhost.amqp_url)]) as dying:
        dying.dies_at = dies_at
        with pytest.raises(Unreachable):
            remove(ORDERS, amqp=dying, management=management, reading=management.read())
    assert ours(management)
    assert go().kept == ()
    assert ours(management) == []


def test_queue_that_redrive_did_not_make_is_only_unbound(amqp, management, go):
    amqp.declare(BARE)
    make(amqp, management, ORDERS)
    publish(amqp, "", "orders", times=2)
    removed = go()
    assert removed.ready == 0
    assert [sentence for sentence in removed.kept if "'orders' was not made by Redrive" in sentence]
    assert amqp.count_ready("orders") == 2
    assert ours(management) == ["orders"]


def test_queue_that_redrive_did_not_make_is_kept_without_a_reading(amqp, management):
    amqp.declare(BARE)
    make(amqp, management, ORDERS)
    assert "'orders'" in remove(ORDERS, amqp=amqp).kept[0]
    assert amqp.count_ready("orders") == 0


def test_broker_is_read_where_no_reading_is_given(amqp, management):
    amqp.declare(BARE)
    make(amqp, management, ORDERS)
    remove(ORDERS, amqp=amqp, management=management)
    assert ours(management) == ["orders"]


def test_dead_letters_of_whoever_has_the_queue_are_kept_without_a_reading(amqp):
    """Its dead-letter key is another consumer's: the work queue is not ours, and so its dead letters are not."""
    ensure(replace(OTHER, queue="orders", bindings=()), owner=Owner("a-cluster"), amqp=amqp)
    publish(amqp, DEAD, "shop/other")
    removed = remove(replace(ORDERS, bindings=()), amqp=amqp)
    assert (removed.dead, len(removed.kept)) == (0, 2)
    assert "'redrive.dead.orders' stays" in removed.kept[1]
    assert amqp.count_ready("redrive.dead.orders") == 1


def test_dead_letters_that_have_outlived_their_queue_are_kept_without_a_reading(amqp):
    ensure(replace(ORDERS, bindings=()), owner=Owner("a-cluster"), amqp=amqp)
    publish(amqp, DEAD, "shop/orders")
    amqp.delete_queue("orders")
    [kept] = remove(replace(ORDERS, bindings=()), amqp=amqp).kept
    assert "'redrive.dead.orders' stays" in kept
    assert amqp.count_ready("redrive.dead.orders") == 1


@pytest.mark.parametrize("dies_at", [1, 2])
def test_next_remover_finishes_what_a_killed_one_began_without_a_reading(dies_at, vhost, amqp, management):
    wanted = replace(ORDERS, bindings=())
    ensure(wanted, owner=Owner("a-cluster"), amqp=amqp)
    with Dying([parse_amqp_url(vhost.amqp_url)]) as dying:
        dying.dies_at = dies_at
        with pytest.raises(Unreachable):
            remove(wanted, amqp=dying)
    assert remove(wanted, amqp=amqp).kept == ()
    assert ours(management) == []


def test_queue_that_somebody_made_after_the_reading_is_kept(made, amqp, management):
    reading = management.read()
    amqp.delete_queue("orders")
    amqp.declare(BARE)
    assert remove(ORDERS, amqp=amqp, management=management, reading=reading).kept
    assert amqp.count_ready("orders") == 0


def test_queue_that_another_consumer_uses_too_is_kept_with_its_dead_letters(made, amqp, go, management):
    make(amqp, management, replace(OTHER, queue="orders", bindings=()))
    publish(amqp, "", "orders")
    publish(amqp, DEAD, "shop/other")
    assert "also used by shop/other" in go().kept[0]
    assert (amqp.count_ready("orders"), amqp.count_ready("redrive.dead.orders")) == (1, 1)
    publish(amqp, DEAD, "shop/other")
    with pytest.raises(NotAccepted):
        publish(amqp, DEAD, "shop/orders")


def test_detached_queue_gets_nothing_more_and_its_sleepers_become_orphans(made, amqp, management):
    publish(amqp, RETRY, routing_key(SHORT, "shop/orders"))
    amqp.unbind(mark(replace(BOUND, destination="other"), "shop/other"))
    assert detach(ORDERS, amqp=amqp) == ()
    with pytest.raises(NotAccepted):
        publish(amqp, "events", "order.created")
    wait_until("the sleeper is not among the orphans", lambda: amqp.count_ready(ORPHANS) == 1, within=20)
    assert amqp.count_ready("orders") == 0


def test_detached_consumer_keeps_its_queues_and_its_way_to_the_dead_letters(made, amqp):
    detach(ORDERS, amqp=amqp)
    publish(amqp, DEAD, "shop/orders")
    assert count(ORDERS, amqp=amqp) == Counted(ready=0, unacked=None, dead=1)


def test_detaching_leaves_what_a_person_bound(made, amqp, management):
    by_hand = replace(BOUND, routing_key="by.hand")
    amqp.declare(by_hand)
    detach(ORDERS, amqp=amqp, reading=management.read())
    left = [binding for binding in management.read().bindings if binding.source and binding.destination == "orders"]
    assert left == [by_hand]


def test_recorded_binding_without_a_mark_is_detached_too(made, amqp, management):
    recorded = replace(BOUND, routing_key="recorded")
    amqp.declare(recorded)
    detach(ORDERS, amqp=amqp, recorded=[recorded], reading=management.read())
    assert recorded not in management.read().bindings


def test_detaching_twice_takes_no_connection(made, amqp, vhost, management):
    detach(ORDERS, amqp=amqp, recorded=[mark(BOUND, "shop/orders")])
    with OnDemand([parse_amqp_url(vhost.amqp_url)], reading=management.read()) as door:
        detach(ORDERS, amqp=door, recorded=[mark(BOUND, "shop/orders")], reading=management.read())
        assert not door.opened


def test_messages_are_counted_where_they_are(made, amqp, vhost, management):
    publish(amqp, "", "orders", times=3)
    publish(amqp, DEAD, "shop/orders")
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as worker:
        worker.take("orders", at_most=1, patience=5)
        counted = Counted(ready=2, unacked=1, dead=1)
        wait_until(
            "the broker has not counted",
            lambda: count(ORDERS, amqp=amqp, reading=management.read()) == counted,
            within=20,
        )


@pytest.mark.parametrize(
    ("counted", "empty"),
    [
        (Counted(0, 0, 0), True),
        (Counted(0, None, 0), True),
        (Counted(0, None, 0, unseen=1), False),
        (Counted(1, 0, 0), False),
        (Counted(0, 1, 0), False),
    ],
)
def test_queues_are_empty_when_nothing_can_be_in_them_nor_in_anybodys_hands(counted, empty):
    assert counted.empty is empty


def test_who_consumes_is_counted_where_nobody_says_what_they_hold(made, amqp, vhost):
    publish(amqp, "", "orders")
    connection = pika.BlockingConnection(pika.URLParameters(vhost.amqp_url))
    channel = connection.channel()
    channel.basic_consume("orders", lambda *_: None)
    wait_until("the message is not taken", lambda: amqp.count_ready("orders") == 0, within=10)
    assert count(ORDERS, amqp=amqp) == Counted(0, None, 0, unseen=1)
    channel.cancel()
    connection.close()
    wait_until("the message is not back", lambda: count(ORDERS, amqp=amqp) == Counted(1, None, 0), within=10)


def test_queues_answer_that_they_have_nothing_and_give_nothing(made, amqp, management):
    publish(amqp, "", "redrive.dead.orders")
    have_answer(ORDERS, amqp=amqp)
    assert count(ORDERS, amqp=amqp) == Counted(0, None, 1)
    amqp.delete_queue("orders")
    have_answer(ORDERS, amqp=amqp)  # who is not there need not answer


def test_what_is_gone_counts_as_empty(amqp, management):
    assert count(ORDERS, amqp=amqp, reading=management.read()) == Counted(0, 0, 0)


def test_quorum_queue_cannot_be_deleted_only_if_empty(made, vhost):
    """Otherwise `remove` would ask for that."""
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as door, pytest.raises(Exception, match="if-empty"):
        door._connection.channel().queue_delete("orders", if_empty=True)


def test_sleepers_of_a_removed_consumer_come_home_when_it_is_made_again(made, go, amqp, management):
    publish(amqp, RETRY, routing_key(SHORT, "shop/orders"))
    go()
    wait_until("the sleeper is not among the orphans", lambda: amqp.count_ready(ORPHANS) == 1, within=20)
    make(amqp, management, ORDERS)
    assert reclaim(amqp, {"shop/orders": "orders"}, most=10).put_back == {"shop/orders": 1}
    assert amqp.count_ready("orders") == 1
