"""The two doors to RabbitMQ: what goes wrong there comes out as our errors, and without secrets."""

import gc
import threading
import time
from dataclasses import replace
from itertools import islice

import pytest

from redrive.amqp import Amqp, blocking
from redrive.amqp.taking import Taking
from redrive.elements import Binding, Exchange, Queue, freeze
from redrive.endpoints import Endpoint, parse_amqp_url, parse_management_url
from redrive.errors import AccessRefused, BadAnswer, BrokerError, Conflict, NotAccepted, NotFound, Unreachable
from redrive.management import Management
from redrive.properties import Properties
from redrive_testbed.shell import wait_until

from .stalling_proxy import StallingProxy

QUORUM = freeze({"x-queue-type": "quorum"})


def test_refused_declare_costs_no_delivery(amqp):
    amqp.declare(Queue("orders", QUORUM))
    amqp.publish("", "orders", b"m", Properties())
    delivery = next(one for one in amqp.consume("orders", prefetch=1, patience=5) if one)
    with pytest.raises(Conflict, match="x-delivery-limit"):
        amqp.declare(Queue("orders", freeze({"x-queue-type": "quorum", "x-delivery-limit": 3})))
    with pytest.raises(NotFound, match="no exchange 'none'"):
        amqp.publish("none", "key", b"m", Properties())
    amqp.ack(delivery.tag)
    amqp.close()


def test_declaring_goes_on_after_a_refusal(amqp):
    amqp.declare(Exchange("events", "topic"))
    with pytest.raises(Conflict, match="type"):
        amqp.declare(Exchange("events", "fanout"))
    amqp.declare(Queue("orders", QUORUM))
    amqp.declare(Binding("events", "orders", "queue", "#"))
    amqp.publish("events", "any", b"m", Properties())
    assert amqp.count_ready("orders") == 1


def test_what_no_queue_takes_is_not_accepted(amqp):
    with pytest.raises(NotAccepted, match="no queue is bound"):
        amqp.publish("", "nowhere", b"m", Properties())


def test_full_queue_does_not_accept(amqp):
    full = {"x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish"}
    amqp.declare(Queue("orders", freeze(full)))
    with pytest.raises(NotAccepted, match="did not take it"):
        for _ in range(50):
            amqp.publish("", "orders", b"m", Properties())


def test_broker_that_is_short_of_memory_is_told_as_that_and_no_queue_is_blamed(broker, vhost):
    with broker.memory_alarm(), Amqp([parse_amqp_url(vhost.amqp_url)]) as amqp:
        amqp.declare(Queue("orders", QUORUM))
        with pytest.raises(Unreachable, match="short of memory"):
            amqp.publish("", "orders", b"x", Properties(), within=2)


def test_deleted_queue_ends_consuming_with_an_error(amqp, vhost):
    amqp.declare(Queue("orders", QUORUM))
    consuming = amqp.consume("orders", prefetch=1, patience=0.1)
    assert next(consuming) is None
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as other:
        other.delete_queue("orders")
    with pytest.raises(Unreachable, match="cancelled"):
        for _ in consuming:
            pass


def test_tag_of_a_lost_channel_acknowledges_nothing(amqp):
    amqp.declare(Queue("orders", QUORUM))
    amqp.publish("", "orders", b"m", Properties())
    next(one for one in amqp.consume("orders", prefetch=1, patience=5) if one)
    amqp.ack(99)  # the broker closes the channel for it
    amqp.wait(0.5)
    with pytest.raises(Unreachable, match="taken its deliveries back"):
        amqp.ack(1)


def test_wrong_password_is_refused_without_being_shown(broker, vhost):
    wrong = parse_amqp_url(vhost.amqp_url).as_user(vhost.user, "not-my-secret")
    with pytest.raises(AccessRefused) as refused:
        Amqp([wrong])
    with pytest.raises(AccessRefused) as refused_too:
        Management(parse_management_url(broker.management_url).as_user("x", "not-my-secret"), vhost="/").read()
    assert "not-my-secret" not in f"{refused.value!r} {refused_too.value!r} {wrong!r} {wrong}"


def test_missing_vhost_is_named(vhost, broker):
    with pytest.raises((NotFound, AccessRefused), match="nowhere"):
        Amqp([parse_amqp_url(vhost.amqp_url).in_vhost("nowhere")])
    admin = broker.settings.credentials
    with pytest.raises(NotFound, match="nowhere"):
        Management(
            parse_management_url(broker.management_url).as_user(admin.user, admin.password), vhost="nowhere"
        ).read()


def test_silence_is_unreachable(broker):
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        Amqp([parse_amqp_url("amqp://guest:guest@127.0.0.1:1/")])
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        Management(parse_management_url("http://guest:guest@127.0.0.1:1"), vhost="/").read()


def test_what_is_not_a_management_api_is_a_bad_answer(broker):
    port = broker.settings.ports.amqp
    with pytest.raises((BadAnswer, Unreachable)):
        Management(parse_management_url(f"http://guest:guest@127.0.0.1:{port}"), vhost="/").read()


def test_host_that_cannot_be_encoded_is_an_error_of_ours():
    with pytest.raises(BrokerError, match="connecting"):
        Amqp([Endpoint("rabbit..svc", 5672, "u", "p")])


def test_counters_of_a_queue_are_read(amqp, management):
    amqp.declare(Queue("orders", QUORUM))
    for _ in range(3):
        amqp.publish("", "orders", b"m", Properties())
    held = amqp.take("orders", at_most=2, patience=5)
    amqp.ack(held[0].tag)
    amqp.wait(0.1)

    def counters():
        queue = management.read_queues()["orders"]
        return queue.published, queue.delivered, queue.acked

    wait_until("the broker has not counted", lambda: counters() == (3, 2, 1), within=20)


@pytest.fixture
def stalled(broker, vhost, monkeypatch):
    """Give a door whose broker answers nothing any more; heartbeats would end that only after a minute."""
    proxy = StallingProxy(broker.settings.ports.amqp)
    door = Amqp([replace(parse_amqp_url(vhost.amqp_url), port=proxy.port)])
    door.declare(Queue("orders", QUORUM))
    door.publish("", "orders", b"m", Properties())
    assert door.take("orders", at_most=1, patience=5)
    monkeypatch.setattr(blocking, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(blocking, "CLOSE_SECONDS", 0.5)
    proxy.stall()
    yield door
    door.close()
    proxy.close()


WAITS = {
    "declare": lambda door: door.declare(Queue("other", QUORUM)),
    "unbind": lambda door: door.unbind(Binding("amq.topic", "orders", "queue", "#")),
    "count": lambda door: door.count_ready("orders"),
    "look": lambda door: door.has_exchange("amq.topic"),
    "delete": lambda door: door.delete_queue("orders"),
    "publish": lambda door: door.publish("", "orders", b"m", Properties()),
    "publish several": lambda door: door.publish_several([("", "orders", b"m", Properties())]),
    "take": lambda door: door.take("orders", at_most=1, patience=0.1),
    "give back": lambda door: door.give_back("orders", [[1]]),
}


@pytest.mark.parametrize("what", WAITS)
def test_broker_that_never_answers_is_given_up(what, stalled):
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="no answer in time"):
        WAITS[what](stalled)
    assert stalled.gone
    assert time.monotonic() - begun < 5


def test_who_waits_with_a_connection_that_is_gone_is_told_so(vhost):
    door = Amqp([parse_amqp_url(vhost.amqp_url)])
    door.close()
    with pytest.raises(Unreachable, match="is gone"):
        door.wait(0.1)


def test_door_closes_though_nobody_answers(stalled):
    begun = time.monotonic()
    stalled.close()
    assert time.monotonic() - begun < 5
    assert stalled.gone


def test_consumer_waits_for_messages_longer_than_for_answers(amqp, monkeypatch):
    amqp.declare(Queue("orders", QUORUM))
    monkeypatch.setattr(blocking, "ANSWER_SECONDS", 0.3)
    consuming = amqp.consume("orders", prefetch=1, patience=0.5)
    assert [next(consuming) for _ in range(3)] == [None] * 3
    amqp.cancel()


def test_taking_from_a_queue_that_is_deleted_is_told(amqp, vhost):
    amqp.declare(Queue("orders", QUORUM))

    def delete():
        with Amqp([parse_amqp_url(vhost.amqp_url)]) as other:
            other.delete_queue("orders")

    deleting = threading.Timer(0.5, delete)
    deleting.start()
    with pytest.raises(Unreachable, match="cancelled the consumer"):
        amqp.take("orders", at_most=1, patience=30)
    deleting.join()


def test_fewer_are_taken_when_no_more_come_and_nothing_is_lost_between_two_takes(amqp):
    amqp.declare(Queue("orders", QUORUM))
    for number in range(5):
        amqp.publish("", "orders", b"%d" % number, Properties())
    first = amqp.take("orders", at_most=2, patience=5)
    begun = time.monotonic()
    rest = amqp.take("orders", at_most=10, patience=0.5)
    assert 0.5 <= time.monotonic() - begun < 3
    assert [int(one.body) for one in (*first, *rest)] == list(range(5))
    amqp.give_back("orders", [[one.tag for one in first], [one.tag for one in rest]])
    consumed = list(islice(amqp.consume("orders", prefetch=10, patience=5), 5))  # by the channel that took
    assert [int(one.body) for one in consumed] == list(range(5))


def test_channel_that_is_closed_leaves_nobody_to_take_what_comes_by_its_number(amqp):
    amqp.declare(Queue("orders", QUORUM))
    amqp.publish("", "orders", b"m", Properties())
    assert amqp.take("orders", at_most=1, patience=5)
    amqp.ack(99)  # the broker closes the channel for it
    amqp.wait(0.5)
    [refusal] = amqp.publish_several([("", "nowhere", b"returned", Properties())])  # comes back by that number
    assert refusal.kind != "refused"
    [again] = amqp.take("orders", at_most=1, patience=5)
    assert (again.body, again.redelivered) == (b"m", True)


def test_what_is_too_much_for_one_take_is_there_for_the_next_in_its_order_and_nothing_of_it_is_kept(amqp):
    amqp.declare(Queue("orders", QUORUM))
    before = find_takings()  # an error of another test may have kept one
    amqp.publish_several([("", "orders", b"%04d" % number + bytes(1000), Properties()) for number in range(400)])
    takes = [amqp.take("orders", at_most=400, patience=5, most_bytes=20_000)]
    takes.append(amqp.take("orders", at_most=400, patience=2))
    numbers = [[int(one.body[:4]) for one in take] for take in takes]
    assert [len(take) for take in numbers] == [20, 380]
    assert [number for take in numbers for number in take] == list(range(400))
    assert [thing for thing in find_takings() if thing not in before] == []  # with all their bodies


def find_takings():
    return [thing for thing in gc.get_objects() if isinstance(thing, Taking)]


def test_few_letters_left_of_each_of_many_takes_are_given_back_in_their_order(amqp):
    """As of a queue of which nearly all was moved: each take is a portion, however small it is."""
    amqp.declare(Queue("orders", QUORUM))
    amqp.publish_several([("", "orders", b"%d" % number, Properties()) for number in range(300)])
    takes = [amqp.take("orders", at_most=1, patience=5) for _ in range(300)]
    amqp.give_back("orders", [[one.tag for one in take] for take in takes])
    again = amqp.take("orders", at_most=300, patience=5)
    assert [int(one.body) for one in again] == list(range(300))
