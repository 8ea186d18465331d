"""The plan of a vhost, without one: what is in it, in which order, and that no name gets out of its pattern."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access import Permission, TopicPermission, User, plan_access, user_name
from redrive.elements import Binding, Exchange, Policy, Queue, freeze
from redrive.ladder import DELIVERY, RETRY, plan_ladder, routing_key
from redrive.spec import parse_consumer
from redrive.topology import (
    DEAD,
    MARK,
    OWNER,
    Owner,
    Wanted,
    dead_queue,
    dead_queue_name,
    exactly,
    mark,
    plan,
    plan_consumer,
    plan_vhost,
    work_queue,
)

US = Owner("a-cluster")
ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=300))
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)


def policies(elements):
    return {element.name: element for element in elements if isinstance(element, Policy)}


def test_whole_plan_is_the_vhosts_then_the_consumers():
    assert plan(ORDERS, US) == (*plan_vhost(3, US), *plan_consumer(ORDERS))


def test_vhost_is_claimed_before_anything_is_made():
    first, *_ = plan(ORDERS, US)
    assert first == Exchange(OWNER, "fanout", arguments=freeze({"alternate-exchange": "redrive.owner/125ms/a-cluster"}))


def test_every_binding_comes_after_its_ends_and_every_policy_before_its_queues():
    seen = set()
    for element in plan(ORDERS, US):
        match element:
            case Binding(source, destination):
                assert {source, destination} <= seen
            case Policy(_, pattern):
                assert not [name for name in seen if re.search(pattern, name)]
            case _:
                seen.add(element.name)


def test_whole_ladder_is_in_the_plan():
    assert set(plan_ladder(3)) <= set(plan(ORDERS, US))


def test_work_queue_is_as_the_contract_says():
    assert dict(work_queue(ORDERS).arguments) == {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "redrive.dead",
        "x-dead-letter-routing-key": "shop/orders",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
        "x-delivery-limit": 1_000_000,
    }


def test_dead_queue_refuses_what_does_not_fit_instead_of_dropping_the_oldest():
    assert dict(dead_queue("orders").arguments) == {
        "x-queue-type": "quorum",
        "x-overflow": "reject-publish",
        "x-delivery-limit": 1_000_000,
    }


def test_dead_queue_is_bound_by_the_address():
    assert Binding(DEAD, "redrive.dead.orders", "queue", "shop/orders") in plan_consumer(ORDERS)


def test_guard_covers_every_rung_and_the_orphans_and_nothing_of_anybodys():
    guard = policies(plan_vhost(5, US))["redrive.guard"]
    ours = [element.name for element in plan_ladder(5) if isinstance(element, Queue)]
    assert all(re.search(guard.pattern, name) for name in ours)
    for name in ("orders", "redrive.dead.orders", "my.redrive.delay.0.1", "redrive.orphans.mine", "redrive-delay"):
        assert not re.search(guard.pattern, name)


def test_usual_retention_needs_no_policy_of_its_own():
    assert policies(plan_consumer(ORDERS)) == {}
    usual = policies(plan_vhost(1, US))["redrive.retention"]
    assert dict(usual.definition)["message-ttl"] == 14 * 24 * 3600 * 1000


@pytest.mark.parametrize(("retention", "ttl"), [(timedelta(hours=1), 3_600_000), (None, None)])
def test_other_retention_has_a_policy_that_outranks_the_vhosts(retention, ttl):
    wanted = Wanted("shop/orders", "orders", timedelta(seconds=1), retention=retention)
    own = policies(plan_consumer(wanted))["redrive.dead.orders"]
    assert dict(own.definition).get("message-ttl") == ttl
    assert own.priority > policies(plan_vhost(1, US))["redrive.retention"].priority


def test_wanted_is_what_the_object_says():
    body = {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": {"name": "orders.eu", "namespace": "shop"},
        "spec": {
            "broker": {"secretRef": {"name": "rabbitmq"}},
            "queue": {"bindings": [{"exchange": "events", "routingKey": "a.*", "arguments": {"n": 1}}]},
            "retry": {"backoff": {"max": "60s"}},
            "deadLetter": {"retention": "Forever"},
        },
    }
    assert Wanted.of(parse_consumer(body)) == Wanted(
        address="shop/orders_eu",
        queue="shop.orders.eu",
        max_delay=timedelta(seconds=60),
        bindings=(Binding("events", "shop.orders.eu", "queue", "a.*", (("n", 1),)),),
        retention=None,
    )


def test_binding_of_a_consumer_is_marked_as_its_own():
    binding = Binding("events", "orders", "queue", "a", freeze({"x-match": "any", "a": 1}))
    assert dict(mark(binding, "shop/orders").arguments) == {"x-match": "any", "a": 1, MARK: "shop/orders"}


@pytest.mark.parametrize("match", ["all-with-x", "any-with-x"])
def test_binding_that_would_see_the_mark_bears_none(match):
    binding = Binding("events", "orders", "queue", "", freeze({"x-match": match}))
    assert mark(binding, "shop/orders") == binding


@given(NAMES, NAMES)
def test_pattern_matches_its_own_name_alone(name, other):
    assert re.search(exactly(name), name)
    assert bool(re.search(exactly(name), other)) == (name == other)


@given(NAMES, NAMES)
def test_own_retention_reaches_no_other_dead_queue(name, other):
    own = policies(plan_consumer(Wanted("shop/orders", name, timedelta(seconds=1), retention=None)))
    [policy] = own.values()
    assert bool(re.search(policy.pattern, dead_queue_name(other))) == (name == other)


def test_topic_permissions_are_given_before_the_permission_to_write():
    assert [type(grant) for grant in plan_access(ORDERS, "/")] == [User, TopicPermission, TopicPermission, Permission]


def test_user_may_configure_nothing_and_bind_nothing():
    *_, permission = plan_access(ORDERS, "/")
    names = ("", "orders", RETRY, DEAD, DELIVERY, "amq.default", "anything")
    assert [name for name in names if re.search(permission.configure, name)] == [""]
    assert [name for name in names if re.search(permission.write, name)] == [RETRY, DEAD]
    assert [name for name in names if re.search(permission.read, name)] == ["orders"]


def test_no_pattern_of_a_user_lets_a_line_break_follow():
    _, retry, dead, permission = plan_access(ORDERS, "/")
    assert not re.search(retry.write, f"{routing_key(timedelta(0), 'shop/orders')}\n")
    assert not re.search(dead.write, "shop/orders\n")
    assert not re.search(permission.write, f"{RETRY}\n")
    assert not re.search(permission.read, "orders\n")


@pytest.mark.parametrize("seconds", [0, 0.125, 300, 131_071])
def test_user_may_ask_for_any_delay_of_its_own_address(seconds):
    _, retry, dead, _ = plan_access(ORDERS, "/")
    assert re.search(retry.write, routing_key(timedelta(seconds=seconds), "shop/orders"))
    assert re.search(dead.write, "shop/orders")


@pytest.mark.parametrize("address", ["shop/orders-eu", "shop/order", "a/shop/orders", "shop/orders/x", "Shop/orders"])
def test_user_may_write_nobody_elses_address(address):
    _, retry, dead, _ = plan_access(ORDERS, "/")
    assert not re.search(retry.write, routing_key(timedelta(0), address))
    assert not re.search(dead.write, address)


def test_users_of_one_address_in_two_vhosts_are_two():
    assert user_name("shop/orders", "a") != user_name("shop/orders", "b")


def test_users_of_long_addresses_are_short_enough_and_apart():
    names = {user_name("n" * 63 + "/" + "c" * 179 + last, "v" * 255) for last in "ab"}
    assert len(names) == 2
    assert max(map(len, names)) <= 255
