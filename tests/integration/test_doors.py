"""The two doors to RabbitMQ: what goes wrong there comes out as our errors, and without secrets."""

import pytest

from redrive.amqp import Amqp
from redrive.elements import Binding, Exchange, Queue, freeze
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.errors import AccessRefused, BadAnswer, Conflict, NotAccepted, NotFound, Unreachable
from redrive.management import Management
from redrive.properties import Properties

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
