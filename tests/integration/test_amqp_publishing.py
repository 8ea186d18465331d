"""Publishing to a real broker: every message has one verdict, and nobody is refused for another's sake."""

from collections import Counter

import pytest
from integration.turning import WORK, Taker, Turning

from redrive.amqp import Amqp, link, publishing
from redrive.elements import Binding, Exchange, Queue, freeze
from redrive.endpoints import parse_amqp_url


@pytest.fixture
def turning(vhost, amqp):
    amqp.declare(WORK)
    turning = Turning(vhost.amqp_url)
    yield turning
    turning.close()


def send_many(turning, publisher, count, first=0, **others):
    bodies = [b"%d" % number for number in range(first, first + count)]
    for body in bodies:
        turning.send(publisher, body, **others)
    return bodies


def take_all(turning, count):
    """Take this many different messages; give all that came."""
    taker = Taker()
    consumer = turning.consumer(taker, prefetch=500)
    turning.until(lambda: len(set(taker.bodies)) >= count)
    turning.barrier(taker.sessions[-1])
    turning.stop(consumer)
    return taker.bodies


def accepted(turning, bodies):
    return all(turning.verdicts[body] == [None] for body in bodies)


def test_messages_are_confirmed_once_and_come_in_their_order(turning):
    publisher = turning.publisher()
    bodies = send_many(turning, publisher, 2000)
    turning.until(turning.settled)
    assert accepted(turning, bodies)
    assert take_all(turning, 2000) == bodies


def test_properties_arrive_as_they_were_sent(turning):
    headers = {
        "text": "é",
        "number": 7,
        "large": 2**40,
        "flag": True,
        "half": 0.5,
        "list": [1, {"a": None}],
        "b": b"\xff",
    }
    publisher = turning.publisher()
    others = {"content_type": "text/plain", "priority": 3, "timestamp": 1_700_000_000, "type": "t", "app_id": "shop"}
    turning.send(publisher, b"all", headers=headers, correlation_id="c", reply_to="r", **others)
    turning.send(publisher, b"none", message_id=None, delivery_mode=None)
    turning.until(turning.settled)
    taker = Taker()
    turning.consumer(taker)
    turning.until(lambda: len(taker.deliveries) == 2)
    # By body: RabbitMQ 4.3 hands out a priority of 3 after none at all, where both wait.
    full, bare = (delivery.properties for delivery in sorted(taker.deliveries, key=lambda delivery: delivery.body))
    assert full.headers == headers
    assert (full.message_id, full.delivery_mode, full.correlation_id, full.reply_to) == ("all", 2, "c", "r")
    assert {name: getattr(full, name) for name in others} == others
    assert (bare.headers, bare.message_id) == ({}, None)


def test_large_body_is_sent_in_several_frames(turning):
    publisher = turning.publisher()
    turning.until(lambda: publisher.connected)
    assert publisher.frame_max == 131_072
    for size in (131_064, 131_065, 500_000):
        turning.send(publisher, b"x" * size, message_id=str(size))
    turning.send(publisher, b"", message_id="empty")
    assert Counter(map(len, take_all(turning, 4))) == {131_064: 1, 131_065: 1, 500_000: 1, 0: 1}


def test_what_is_sent_before_there_is_a_broker_is_published_later(turning):
    right = turning.endpoint
    turning.endpoint = parse_amqp_url("amqp://guest:guest@127.0.0.1:1/")
    publisher = turning.publisher(random=lambda: 0)
    bodies = send_many(turning, publisher, 10)
    turning.until(lambda: turning.troubles)
    assert not publisher.connected
    turning.endpoint = right
    turning.until(turning.settled)
    assert accepted(turning, bodies)


def test_message_that_no_queue_is_bound_for_is_refused_and_no_other(turning):
    publisher = turning.publisher()
    for number in range(600):
        turning.send(publisher, b"%d" % number, key="nowhere" if number % 3 == 0 else "orders")
    turning.until(turning.settled)
    refused = {body for body, [verdict] in turning.verdicts.items() if verdict is not None}
    assert refused == {b"%d" % number for number in range(0, 600, 3)}
    [refusal] = turning.verdicts[b"3"]
    assert (refusal.reason, refusal.hopeless, refusal.kind) == ("no queue is bound for it", False, "returned")


def test_message_that_the_queue_does_not_take_is_refused(turning, amqp):
    full = {"x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish"}
    amqp.declare(Queue("full", freeze(full)))
    publisher = turning.publisher()
    refusals = []
    while not refusals:  # it takes some more than it should, before its publishers know
        assert len(turning.verdicts) < 500
        bodies = send_many(turning, publisher, 10, first=len(turning.verdicts), key="full")
        turning.until(turning.settled)
        refusals = [turning.verdicts[body][0] for body in bodies if turning.verdicts[body] != [None]]
    assert {(one.kind, one.hopeless) for one in refusals} == {("nacked", False)}


GUILTY = {
    "missing exchange": ({"exchange": "gone"}, "NOT_FOUND - no exchange 'gone'", False),
    "forbidden exchange": ({"exchange": "forbidden"}, "ACCESS_REFUSED", False),
    "another's user": ({"user_id": "somebody"}, "PRECONDITION_FAILED - user_id", True),
    "header that a broker cannot read": ({"headers": {"x": float("nan")}}, "INTERNAL_ERROR", False),
}


@pytest.mark.parametrize("kind", GUILTY)
def test_guilty_message_alone_is_refused_and_its_neighbours_are_not(kind, turning, amqp, broker, vhost):
    changes, reason, hopeless = GUILTY[kind]
    amqp.declare(Exchange("forbidden", "fanout"))
    broker.permit(vhost.user, vhost.name, write="^(orders|amq.default|gone)?$")
    publisher = turning.publisher(random=lambda: 0)
    innocent = send_many(turning, publisher, 100)
    turning.send(publisher, b"guilty", **changes)
    innocent += send_many(turning, publisher, 100, first=100)
    turning.send(publisher, b"guilty too", **changes)
    turning.until(turning.settled)
    assert accepted(turning, innocent)
    for body in (b"guilty", b"guilty too"):
        [refusal] = turning.verdicts[body]
        assert reason in refusal.reason
        assert (refusal.hopeless, refusal.kind) == (hopeless, "refused")
    assert set(innocent) == set(take_all(turning, 200))


def test_many_guilty_messages_are_refused_one_by_one(turning):
    publisher = turning.publisher(random=lambda: 0)
    guilty = send_many(turning, publisher, 60, exchange="gone")
    turning.until(turning.settled)
    assert all(turning.verdicts[body][0].kind == "refused" for body in guilty)
    [innocent] = send_many(turning, publisher, 1, first=60)
    turning.until(turning.settled)
    assert accepted(turning, [innocent])


UNWRITABLE = {
    "headers larger than a frame": {"headers": {"x": "y" * 140_000}},
    "header of no known kind": {"headers": {"x": object()}},
    "number too large": {"headers": {"x": 2**80}},
    "text too long": {"correlation_id": "x" * 300},
    "routing key too long": {"key": "x" * 300},
    "half a character": {"message_id": "\ud800"},
}


@pytest.mark.parametrize("kind", UNWRITABLE)
def test_message_that_cannot_be_written_is_hopeless_and_costs_nobody_the_connection(kind, turning):
    publisher = turning.publisher()
    send_many(turning, publisher, 10)
    turning.send(publisher, b"unwritable", **UNWRITABLE[kind])
    send_many(turning, publisher, 10, first=10)
    turning.until(turning.settled)
    [refusal] = turning.verdicts.pop(b"unwritable")
    assert refusal.hopeless
    assert accepted(turning, turning.verdicts)
    assert turning.troubles == []


def test_exchange_that_is_deleted_and_made_again_loses_nothing(turning, amqp, broker, vhost):
    amqp.declare(Exchange("events", "fanout"))
    amqp.declare(Binding("events", "orders", "queue", ""))
    publisher = turning.publisher(random=lambda: 0)
    send_many(turning, publisher, 50, exchange="events")
    turning.until(turning.settled)
    broker.api.delete("exchanges", vhost.name, "events")
    late = send_many(turning, publisher, 20, first=50, exchange="events")
    turning.until(turning.settled)
    assert all("NOT_FOUND" in turning.verdicts[body][0].reason for body in late)
    amqp.declare(Exchange("events", "fanout"))
    amqp.declare(Binding("events", "orders", "queue", ""))
    again = send_many(turning, publisher, 20, first=70, exchange="events")
    turning.until(turning.settled)
    assert accepted(turning, again)


def test_connection_that_breaks_in_the_middle_loses_nothing(turning):
    proxy = turning.detour()
    publisher = turning.publisher(random=lambda: 0)
    bodies = send_many(turning, publisher, 5000)
    for count in (500, 1500, 2500):
        turning.until(lambda count=count: sum(map(bool, turning.verdicts.values())) > count)
        proxy.cut()
    turning.until(turning.settled)
    assert accepted(turning, bodies)
    assert len(turning.troubles) >= 3
    assert set(take_all(turning, 5000)) == set(bodies)


def test_alarm_refuses_nothing_and_what_waited_goes_on_after_it(turning, broker, monkeypatch):
    """A blocked connection is given up after a while; the next one is blocked too, and everything waits on."""
    monkeypatch.setattr(publishing, "BLOCKED_SECONDS", 1)
    publisher = turning.publisher(random=lambda: 0)
    turning.until(lambda: publisher.connected)
    with broker.memory_alarm():
        bodies = send_many(turning, publisher, 1200)
        turning.until(lambda: sum("it is short of memory or disk" in one for one in turning.troubles) >= 3)
        assert not any(turning.verdicts.values())
    turning.until(turning.settled)
    assert accepted(turning, bodies)
    assert set(take_all(turning, 1200)) == set(bodies)


def test_stop_is_bounded_under_an_alarm(turning, broker, monkeypatch):
    monkeypatch.setattr(link, "GOODBYE_SECONDS", 0.5)
    publisher = turning.publisher()
    turning.until(lambda: publisher.connected)
    with broker.memory_alarm():
        send_many(turning, publisher, 10)
        turning.until(lambda: publisher.is_blocked)
        turning.stop(publisher, within=15)
    assert not any(turning.verdicts.values())


def test_everything_is_confirmed_and_comes_out_over_an_end_of_the_broker_polite_or_not(own_broker):
    turning = Turning(own_broker.amqp_url)
    with Amqp([turning.endpoint]) as amqp:
        amqp.declare(WORK)
    own_broker.wait_on_disk("/", WORK.name)
    publisher, taker = turning.publisher(), Taker()
    turning.consumer(taker, prefetch=100)
    bodies = send_many(turning, publisher, 6000)
    for losses, (count, end) in enumerate([(500, own_broker.kill), (2000, own_broker.stop)], start=1):
        turning.until(lambda count=count: len(set(taker.bodies)) > count, within=120)
        end()
        turning.until(lambda losses=losses: len(taker.losses) == losses)
        own_broker.start()
    turning.until(lambda: turning.settled() and set(bodies) <= set(taker.bodies), within=120)
    assert accepted(turning, bodies)
    turning.close()
