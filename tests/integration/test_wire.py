"""The wire contract on real brokers: sent on as it came, a message breaks; as Redrive sends it on, it comes home."""

import struct
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pika
import pytest
from wire_tables import VALUES, table
from workers.bed import Bed, manifest

from redrive.amqp import Amqp, from_pika
from redrive.elements import Binding, Queue, freeze
from redrive.endpoints import parse_amqp_url
from redrive.errors import BrokerError
from redrive.ladder import RETRY, routing_key
from redrive.message import read_message
from redrive.outcome import Cause, RetryLater
from redrive.properties import Properties, is_writable
from redrive.provision import ensure
from redrive.republish import build_retry
from redrive.story import read_story
from redrive.topology import Owner, Wanted
from redrive_testbed.errors import NotReady
from redrive_testbed.shell import wait_until

ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=30))
DELAY = timedelta(seconds=0.5)  # one rung, redrive.delay.0.4
KEY = routing_key(DELAY, "shop/orders")
TWO_RUNGS = routing_key(timedelta(seconds=2.125), "shop/orders")


@pytest.fixture
def made(amqp, management):
    ensure(ORDERS, owner=Owner("a-cluster"), amqp=amqp, management=management)
    return amqp


def take(amqp, queue="orders", within=20):
    """Take one message for good."""
    for delivery in amqp.consume(queue, prefetch=1, patience=within):
        assert delivery is not None, f"nothing came to {queue!r} in {within} s"
        amqp.ack(delivery.tag)
        amqp.cancel()
        return delivery
    raise AssertionError("consuming ended")


def retried(delivery):
    """Build the retry that Redrive would send."""
    now = datetime.now(UTC)
    message = read_message(delivery, now=now, max_attempts=10, new_id=lambda: "made-up")
    return build_retry(message, RetryLater(DELAY, message.attempt + 1, cause=Cause("E", "e")), now=now)


def deliver(amqp, properties, body=b"m"):
    amqp.publish("", "orders", body, properties)
    return take(amqp)


def publish_retry(amqp, delivery, properties):
    amqp.publish(RETRY, KEY, delivery.body, properties)


def test_user_id_of_the_publisher_is_refused_when_it_is_sent_on_by_another(made, vhost, broker):
    delivery = deliver(made, Properties(user_id=vhost.user))
    broker.add_user("worker", "secret")
    broker.permit("worker", vhost.name)
    try:
        with Amqp([parse_amqp_url(vhost.amqp_url).as_user("worker", "secret")]) as worker:
            with pytest.raises(BrokerError, match="user_id"):
                publish_retry(worker, delivery, delivery.properties)
            publish_retry(worker, delivery, retried(delivery))
    finally:
        broker.delete_user("worker")
    assert take(made).properties.user_id is None


def test_expiration_ends_a_message_early_unless_it_is_left_out(made, collect):
    delivery = deliver(made, Properties(expiration="100"))
    publish_retry(made, delivery, delivery.properties)
    raw = take(made)
    assert raw.properties.headers["x-death"][0]["queue"] == "redrive.delay.0.4"
    assert "original-expiration" in raw.properties.headers["x-death"][0]  # it was the message's own that ended it
    publish_retry(made, delivery, retried(delivery))
    ours = take(made)
    assert "original-expiration" not in ours.properties.headers["x-death"][0]
    assert read_story(ours.properties.headers).expires_at is not None


def test_priority_does_not_travel_in_the_ladder_and_is_remembered(made):
    delivery = deliver(made, Properties(priority=9))
    publish_retry(made, delivery, delivery.properties)
    assert take(made).properties.priority == 9
    publish_retry(made, delivery, retried(delivery))
    ours = take(made)
    assert ours.properties.priority is None
    assert read_story(ours.properties.headers).priority == 9


@pytest.mark.parametrize("header", ["CC", "BCC"])
def test_copies_fan_out_again_unless_they_are_left_out(header, made):
    """A message that was copied to a second consumer's retries would be retried for both."""
    made.declare(Queue("copies", freeze({"x-queue-type": "quorum"})))
    made.declare(Binding(RETRY, "copies", "queue", "copy"))
    raw = Properties(headers={header: ["copy"]})
    made.publish(RETRY, KEY, b"raw", raw)
    assert made.count_ready("copies") == 1
    take(made)
    delivery = deliver(made, raw) if header == "CC" else _as_if_delivered(made, raw)
    before = made.count_ready("copies")
    publish_retry(made, delivery, retried(delivery))
    take(made)
    assert made.count_ready("copies") == before


def _as_if_delivered(amqp, properties):
    """The broker takes BCC away when it delivers, so one that is there was written by a stranger's import."""
    delivery = deliver(amqp, Properties())
    return type(delivery)(0, "", "orders", False, delivery.body, properties)


def test_deaths_of_the_past_lose_a_message_on_3_10_unless_they_are_left_out(made, broker):
    """The second time from one rung to the next, 3.10 takes the old x-death for a cycle and drops the message."""
    made.publish(RETRY, TWO_RUNGS, b"m", Properties(message_id="m-1"))
    home = take(made)
    assert len(home.properties.headers["x-death"]) == 2
    ours = retried(home)
    assert not [name for name in ours.headers if name.startswith("x-")]
    made.publish(RETRY, TWO_RUNGS, home.body, ours)
    assert take(made).properties.message_id == "m-1"
    made.publish(RETRY, TWO_RUNGS, home.body, home.properties)
    assert _comes_home(made) is not broker.version.startswith("3.10.")


def _comes_home(amqp):
    try:
        wait_until("nothing came", lambda: amqp.count_ready("orders") == 1, within=10)
    except NotReady:
        return False
    return True


def test_message_retried_five_times_comes_home_five_times(made):
    delivery = deliver(made, Properties(message_id="m-1", headers={"shop": "eu"}))
    for attempt in range(2, 7):
        publish_retry(made, delivery, retried(delivery))
        delivery = take(made)
        story = read_story(delivery.properties.headers)
        assert (story.attempt, story.origin_exchange, story.origin_routing_key) == (attempt, "", "orders")
    assert delivery.properties.headers["shop"] == "eu"


def test_transient_message_becomes_persistent(made):
    delivery = deliver(made, Properties(delivery_mode=1))
    publish_retry(made, delivery, retried(delivery))
    assert take(made).properties.delivery_mode == 2


HOSTILE = {
    "wrong types": {"redrive-attempt": "many", "redrive-crashes": [1], "redrive-due-at": {"a": 1}, "x-death": "no"},
    "absurd numbers": {"redrive-attempt": -(2**62), "redrive-crashes": 2**62, "redrive-priority": -1},
    "no text": {"redrive-error": b"\xff\xfe", "redrive-origin-exchange": b"\x00\xff"},
    "huge": {"redrive-error": "x" * 60_000, "redrive-trace": "y" * 30_000},
    "floats": {"redrive-attempt": 1e300, "redrive-crashes": -0.5, "redrive-due-at": 5e-324},
    "deaths": {"x-death": [{"reason": 1}, None, "x"], "x-first-death-reason": 5, "x-delivery-count": "9"},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_headers_come_in_go_round_and_stop_nobody(kind, made):
    delivery = deliver(made, Properties(headers=HOSTILE[kind]))
    publish_retry(made, delivery, retried(delivery))
    story = read_story(take(made).properties.headers)
    assert 1 <= story.attempt <= 1_000_001


def test_float_header_is_the_same_after_a_retry(made):
    delivery = deliver(made, Properties(headers={"price": 1.25, "list": [0.5, {"x": -1e300}]}))
    publish_retry(made, delivery, retried(delivery))
    headers = take(made).properties.headers
    assert (headers["price"], headers["list"]) == (1.25, [0.5, {"x": -1e300}])


class Raw:
    """Header tables as bytes: what no client library would write."""

    def table(self, *entries):
        body = b"".join(bytes([len(name)]) + name + value for name, value in entries)
        return struct.pack(">I", len(body)) + body

    def nested(self, depth):
        inner = self.table()
        for _ in range(depth):
            inner = self.table((b"t", b"F" + inner))
        return inner


RAW = Raw()
UNREADABLE = {
    "time beyond all calendars": RAW.table((b"when", b"T" + struct.pack(">Q", 2**63))),
    "time of the last year": RAW.table((b"when", b"T" + struct.pack(">Q", 253402300799))),
    "deep table": RAW.nested(5000),
    "name that is no text": RAW.table((b"\xff\xfe", b"t\x01")),
}


def test_float_that_is_no_number_never_comes_from_a_broker_so_it_is_not_sent_on(made):
    with pytest.raises(BrokerError):
        made.publish("", "orders", b"m", Properties(headers={"n": float("nan")}))
    assert not is_writable({"n": float("nan")})
    assert not is_writable({"n": float("-inf")})


@pytest.fixture
def publish_table(vhost, monkeypatch):
    """Give a function that publishes a message with this header table, written as it is."""
    connection = pika.BlockingConnection(pika.URLParameters(vhost.amqp_url))
    channel = connection.channel()
    channel.confirm_delivery()

    def publish(table, body, name):
        def encode_table(pieces, _table):
            pieces.append(table)
            return len(table)

        with monkeypatch.context() as patched:
            patched.setattr(pika.data, "encode_table", encode_table)
            channel.basic_publish("", "orders", body, pika.BasicProperties(headers={"any": 1}, message_id=name))

    yield publish
    connection.close()


@pytest.mark.parametrize("kind", UNREADABLE)
def test_strange_header_table_does_not_end_the_connection(kind, made, publish_table):
    publish_table(UNREADABLE[kind], b"m", "m-1")
    delivery = take(made)
    publish_retry(made, delivery, retried(delivery))
    assert take(made).body == b"m"


TABLES = {**UNREADABLE, **{f"value {number}": table((b"v", raw)) for number, (raw, _) in enumerate(VALUES)}}


@pytest.mark.parametrize("mode", ["Process", "Thread"])
def test_strange_header_tables_stop_no_worker(mode, vhost, tmp_path, publish_table):
    with closing(Bed(vhost.amqp_url, tmp_path, manifest(vhost.name, mode=mode))) as bed:
        for kind, strange in TABLES.items():
            publish_table(strange, b'{"do": ["fail", "ok"]}', kind)
        bed.published.extend(TABLES)
        worker = bed.start()
        bed.publish(["plain"])
        bed.wait_done()
        assert worker.stop() == 0
        assert [worker.lines(event) for event in ("lost", "cancelled", "failed")] == [[], [], []]
        assert bed.done() == dict.fromkeys([*TABLES, "plain"], 1)


def test_properties_are_the_same_on_both_sides_of_the_door(made):
    properties = Properties(
        content_type="application/json",
        content_encoding="utf-8",
        headers={"n": 1, "big": 2**40, "t": True, "none": None, "list": [1, "a"], "table": {"x": "y"}},
        delivery_mode=2,
        correlation_id="c",
        reply_to="r",
        message_id="m",
        timestamp=1_700_000_000,
        type="t",
        app_id="a",
    )
    assert deliver(made, properties).properties == properties
    assert from_pika(pika.BasicProperties()) == Properties()
