"""A consumer's own broker user, on real brokers: it can do its work, and nothing to anybody else's."""

import secrets
from dataclasses import replace
from datetime import timedelta

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from redrive.access import Account, Permission, TopicPermission, User, plan_access, user_name
from redrive.amqp import Amqp
from redrive.elements import Binding, Exchange, Queue, freeze
from redrive.endpoints import parse_amqp_url
from redrive.errors import AccessRefused, BrokerError
from redrive.granting import ensure_access, revoke_access
from redrive.ladder import DELIVERY, ORPHANS, RETRY, routing_key
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.topology import DEAD, Owner, Wanted
from redrive_testbed.shell import wait_until

ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=1))
OTHERS = Wanted("shop/orders-eu", "orders-eu", timedelta(seconds=1))
NOW = timedelta(0)
MESSAGE = (b"m", Properties(delivery_mode=2))


@pytest.fixture
def password():
    return secrets.token_urlsafe(12)


@pytest.fixture
def granted(amqp, management, vhost, password):
    """Two consumers in one vhost; the first has a user of its own."""
    for wanted in (ORDERS, OTHERS):
        ensure(wanted, owner=Owner("a-cluster"), amqp=amqp, management=management)
    yield ensure_access(ORDERS, vhost=vhost.name, management=management, password=password)
    revoke_access("shop/orders", vhost=vhost.name, management=management)


@pytest.fixture
def worker(granted, vhost, password):
    with Amqp([parse_amqp_url(vhost.amqp_url).as_user(granted.user, password)]) as door:
        yield door


def key(address="shop/orders", delay=NOW):
    return routing_key(delay, address)


def test_worker_retries_and_dead_letters_its_own_messages(worker, amqp):
    worker.publish(RETRY, key(delay=timedelta(seconds=1)), *MESSAGE)
    worker.publish(RETRY, key(), *MESSAGE)
    worker.publish(DEAD, "shop/orders", *MESSAGE)
    wait_until("the retry has not come", lambda: amqp.count_ready("orders") == 2, within=20)
    assert amqp.count_ready("redrive.dead.orders") == 1


def test_worker_consumes_its_own_queue(worker, amqp):
    amqp.publish("", "orders", *MESSAGE)
    delivery = next(one for one in worker.consume("orders", prefetch=1, patience=5) if one)
    worker.ack(delivery.tag)


FORBIDDEN = {
    "retry for another": lambda door: door.publish(RETRY, key("shop/orders-eu"), *MESSAGE),
    "retry for one whose name ends like its own": lambda door: door.publish(RETRY, key("a/shop/orders"), *MESSAGE),
    "retry with a key that is none": lambda door: door.publish(RETRY, "shop/orders", *MESSAGE),
    "dead letter of another": lambda door: door.publish(DEAD, "shop/orders-eu", *MESSAGE),
    "delivery without a delay": lambda door: door.publish(DELIVERY, key(), *MESSAGE),
    "orphan": lambda door: door.publish(ORPHANS, "", *MESSAGE),
    "publish to a queue directly": lambda door: door.publish("", "orders", *MESSAGE),
    "publish to the brokers own exchange": lambda door: door.publish("amq.topic", "any", *MESSAGE),
    "read another queue": lambda door: next(door.consume("orders-eu", prefetch=1, patience=1)),
    "read its own dead letters": lambda door: next(door.consume("redrive.dead.orders", prefetch=1, patience=1)),
    "read the orphans": lambda door: next(door.consume(ORPHANS, prefetch=1, patience=1)),
    "make a queue": lambda door: door.declare(Queue("mine", freeze({"x-queue-type": "quorum"}))),
    "make an exchange": lambda door: door.declare(Exchange("mine")),
    "delete its own queue": lambda door: door.delete_queue("orders"),
    "bind its own queue to another's retries": lambda door: door.declare(Binding(DELIVERY, "orders", "queue", "#")),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_worker_may_do_nothing_else(what, worker):
    with pytest.raises(AccessRefused, match="ACCESS_REFUSED"):
        FORBIDDEN[what](worker)


def test_worker_goes_on_after_a_refusal(worker, amqp):
    with pytest.raises(AccessRefused):
        worker.publish(RETRY, key("shop/orders-eu"), *MESSAGE)
    worker.publish(RETRY, key(), *MESSAGE)
    wait_until("the retry has not come", lambda: amqp.count_ready("orders") == 1, within=20)


def test_worker_cannot_purge_anothers_queue(granted, vhost, password):
    url = parse_amqp_url(vhost.amqp_url)
    credentials = pika.PlainCredentials(granted.user, password)
    parameters = pika.ConnectionParameters(url.host, url.port, vhost.name, credentials)
    connection = pika.BlockingConnection(parameters)
    with pytest.raises(ChannelClosedByBroker, match="403"):
        connection.channel().queue_purge("orders-eu")
    connection.close()


def test_user_has_exactly_what_was_planned(granted, management, vhost):
    assert management.read_grants(granted.user) == set(plan_access(ORDERS, vhost.name))
    assert granted.repaired == plan_access(ORDERS, vhost.name)


def test_second_run_grants_nothing_and_closes_nothing(granted, worker, management, vhost, password):
    again = ensure_access(ORDERS, vhost=vhost.name, management=management, password=password)
    assert (again.repaired, again.closed_connections, again.password_changed) == ((), 0, False)


def test_one_reading_of_all_accounts_says_the_same_as_one_of_each(granted, management, vhost, password):
    accounts = management.read_accounts()
    assert accounts[granted.user] == management.read_account(granted.user)
    assert accounts[vhost.user] == management.read_account(vhost.user)
    found = accounts[granted.user]
    again = ensure_access(ORDERS, vhost=vhost.name, management=management, password=password, found=found)
    assert again.repaired == ()


def test_user_that_no_reading_shows_is_made(granted, management, vhost, password):
    assert user_name("shop/orders-eu", vhost.name) not in management.read_accounts()
    made = ensure_access(OTHERS, vhost=vhost.name, management=management, password=password, found=Account())
    assert management.read_grants(made.user) == set(plan_access(OTHERS, vhost.name))
    revoke_access("shop/orders-eu", vhost=vhost.name, management=management)


def test_password_is_known_by_its_hash(granted, management, password):
    assert management.read_password(granted.user).matches(password)
    assert not management.read_password(granted.user).matches(f"{password}!")
    assert management.read_password("redrive/no/such") is None


def can_enter(vhost, user, password):
    try:
        Amqp([parse_amqp_url(vhost.amqp_url).as_user(user, password)]).close()
    except AccessRefused:
        return False
    return True


def test_new_password_opens_the_door_and_leaves_open_connections_alone(granted, worker, management, vhost, password):
    changed = ensure_access(ORDERS, vhost=vhost.name, management=management, password="neu-日本")
    assert (changed.repaired, changed.password_changed, changed.closed_connections) == ((), True, 0)
    assert can_enter(vhost, granted.user, "neu-日本")
    assert not can_enter(vhost, granted.user, password)
    assert worker.count_ready("orders") == 0
    assert management.read_grants(granted.user) == set(plan_access(ORDERS, vhost.name))


CHANGED_BY_HAND = {
    "another password": {"password": "by-hand"},
    "no password": {"password_hash": ""},
    "sha512": {"password": "by-hand", "hashing_algorithm": "rabbit_password_hashing_sha512"},
    "unknown algorithm": {"password": "by-hand", "hashing_algorithm": "rabbit_password_hashing_md5"},
}


@pytest.mark.parametrize("how", CHANGED_BY_HAND)
def test_password_that_was_changed_by_hand_is_set_again_once(how, granted, management, broker, vhost, password):
    broker.api.put("users", granted.user, body={**CHANGED_BY_HAND[how], "tags": ""})
    runs = [ensure_access(ORDERS, vhost=vhost.name, management=management, password=password) for _ in range(2)]
    assert [run.password_changed for run in runs] == [True, False]
    assert can_enter(vhost, granted.user, password)


def test_new_password_is_put_where_the_broker_tells_no_hash_to_compare(granted, management, vhost, password):
    untold = replace(management.read_account(granted.user), password=None)
    doors = {"vhost": vhost.name, "management": management, "found": untold}
    assert not ensure_access(ORDERS, password="rotated", **doors).password_changed
    assert can_enter(vhost, granted.user, password)
    changed = ensure_access(ORDERS, password="rotated", password_changed=True, **doors)
    assert (changed.password_changed, changed.repaired) == (True, ())
    assert can_enter(vhost, granted.user, "rotated")


def test_right_password_in_the_brokers_other_hash_is_left_alone(granted, management, broker, vhost, password):
    body = {"password": password, "hashing_algorithm": "rabbit_password_hashing_sha512", "tags": ""}
    broker.api.put("users", granted.user, body=body)
    assert not ensure_access(ORDERS, vhost=vhost.name, management=management, password=password).password_changed


def test_tag_that_somebody_gave_to_the_user_is_taken_away(granted, management, broker, vhost, password):
    broker.api.put("users", granted.user, body={"password": password, "tags": "administrator"})
    again = ensure_access(ORDERS, vhost=vhost.name, management=management, password=password)
    assert again.repaired == (User(granted.user),)
    assert not broker.api.get("users", granted.user)["tags"]


def test_password_shows_nowhere(granted, management, password):
    account = management.read_account(granted.user)
    assert account.password.encoded not in f"{account!r} {granted!r}"
    assert password not in f"{account!r} {granted!r}"


@pytest.mark.parametrize("kind", [User, TopicPermission, Permission])
def test_what_was_taken_from_the_user_is_given_again(kind, granted, management, broker, vhost, password):
    paths = {
        User: ["users"],
        TopicPermission: ["topic-permissions", vhost.name],
        Permission: ["permissions", vhost.name],
    }
    broker.api.delete(*paths[kind], granted.user)
    again = ensure_access(ORDERS, vhost=vhost.name, management=management, password=password)
    assert {type(grant) for grant in again.repaired} >= {kind}
    assert management.read_grants(granted.user) == set(plan_access(ORDERS, vhost.name))


def test_widened_permission_is_narrowed_and_open_connections_are_closed(
    granted, worker, management, broker, vhost, password
):
    broker.permit(granted.user, vhost.name)
    wait_until(
        "the connection is not listed yet",
        lambda: any(one["user"] == granted.user for one in broker.api.get("connections")),
        within=20,
    )
    again = ensure_access(ORDERS, vhost=vhost.name, management=management, password=password)
    assert [type(grant) for grant in again.repaired] == [Permission]
    assert again.closed_connections == 1
    with pytest.raises(BrokerError):
        worker.count_ready("orders")


def test_revoked_user_is_gone(granted, management, vhost, password):
    revoke_access("shop/orders", vhost=vhost.name, management=management)
    assert management.read_grants(user_name("shop/orders", vhost.name)) == frozenset()
    with pytest.raises(AccessRefused):
        Amqp([parse_amqp_url(vhost.amqp_url).as_user(granted.user, password)])


@pytest.mark.parametrize("name", ["a.b", "x|orders-eu", ".*", "ü 日本", "a\\b", "it's (100%)"])
def test_pattern_of_a_strange_queue_opens_that_queue_alone(name, amqp, management, vhost, password):
    wanted = Wanted("shop/strange", name, timedelta(seconds=1))
    for one in (wanted, OTHERS):
        ensure(one, owner=Owner("a-cluster"), amqp=amqp, management=management)
    granted = ensure_access(wanted, vhost=vhost.name, management=management, password=password)
    with Amqp([parse_amqp_url(vhost.amqp_url).as_user(granted.user, password)]) as worker:
        assert next(worker.consume(name, prefetch=1, patience=0.1)) is None
        worker.cancel()
        with pytest.raises(AccessRefused):
            next(worker.consume("orders-eu", prefetch=1, patience=0.1))
    revoke_access("shop/strange", vhost=vhost.name, management=management)
