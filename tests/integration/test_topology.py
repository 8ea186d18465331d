"""Everything a consumer needs, declared on real brokers: once is enough, twice is the same, and drift is found."""

import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from redrive.amqp import Amqp
from redrive.drift import Different, Missing, Unwanted, compare, find_unwanted
from redrive.elements import Binding, Exchange, Policy, Queue, freeze
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.errors import VhostTaken
from redrive.ladder import DELIVERY, ORPHANS, RETRY, Rung, delivery_binding, routing_key
from redrive.management import Management
from redrive.properties import Properties
from redrive.provision import ensure, ensure_consumer
from redrive.topology import DEAD, GUARD, MARK, OWNER, RETENTION, Owner, Wanted, mark, plan, work_queue
from redrive_testbed.shell import wait_until

US = Owner("a-cluster")
ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=30))
EVERYTHING = plan(ORDERS, US)
# Every byte that a name may have is legal; these are the ones that URLs, patterns and sentences trip over.
STRANGE = [
    "a b",
    "a/b",
    "ü-日本-🐇",
    "it's",
    '"quoted"',
    "100%",
    "%2F",
    "a+b?c=d&e#f",
    "^(a|b)*[c]$.\\",
    "..",
    "{vhost}",
]


@pytest.fixture
def made(amqp, management):
    return ensure(ORDERS, owner=US, amqp=amqp, management=management)


def bound_to(exchange, key="order.*", arguments=(), queue="orders"):
    return Binding(exchange, queue, "queue", key, freeze(dict(arguments)))


def with_bindings(*bindings):
    return replace(ORDERS, bindings=bindings)


def again(amqp, management, wanted=ORDERS, **more):
    return ensure(wanted, owner=US, amqp=amqp, management=management, **more)


def publish(amqp, exchange, key):
    amqp.publish(exchange, key, b"m", Properties(delivery_mode=2))


def test_first_run_makes_everything_and_says_so(made, broker):
    assert made.ready
    _, *rest = EVERYTHING  # who manages the vhost is recorded before anything is compared
    assert {drift.element for drift in made.repaired} == set(rest)
    assert len(made.repaired) == len(rest)
    assert (made.missing, made.broken, made.version) == ((), (), broker.version)


def test_second_run_changes_nothing(made, amqp, management):
    report = again(amqp, management)
    assert report.ready
    assert (report.repaired, report.missing) == ((), ())


def test_what_was_made_is_what_was_planned(made, management):
    assert compare(EVERYTHING, management.read()) == ()


def test_two_at_once_do_no_harm(vhost, management):
    reports = []

    def run():
        with Amqp([parse_amqp_url(vhost.amqp_url)]) as amqp:
            reports.append(again(amqp, management))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [report.ready for report in reports] == [True, True]
    assert compare(EVERYTHING, management.read()) == ()


def test_second_cluster_is_refused_and_told_by_whom(made, amqp, management):
    with pytest.raises(VhostTaken, match=r"managed by 'redrive\.owner/125ms/a-cluster'"):
        ensure(ORDERS, owner=Owner("another"), amqp=amqp, management=management)


def test_second_cluster_is_refused_without_a_management_api(made, amqp):
    with pytest.raises(VhostTaken, match="a-cluster"):
        ensure(ORDERS, owner=Owner("another"), amqp=amqp)


def test_of_clusters_that_come_at_once_one_wins(vhost):
    won, lost = [], []

    def run(name):
        with Amqp([parse_amqp_url(vhost.amqp_url)]) as amqp:
            try:
                ensure(ORDERS, owner=Owner(name), amqp=amqp)
                won.append(name)
            except VhostTaken:
                lost.append(name)

    threads = [threading.Thread(target=run, args=(f"cluster-{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (len(won), len(lost)) == (1, 3)


def test_without_management_all_but_policies_is_made(amqp, management):
    report = ensure(ORDERS, owner=US, amqp=amqp)
    assert report.ready
    assert [sentence for sentence in report.missing if "retention" in sentence]
    lacking = compare(EVERYTHING, management.read())
    assert {drift.element.name for drift in lacking} == {GUARD, RETENTION}


def test_without_management_a_different_queue_is_refused_and_nothing_is_bound_to_it(amqp, management):
    amqp.declare(Queue("orders", freeze({"x-queue-type": "classic"})))
    report = ensure(ORDERS, owner=US, amqp=amqp)
    assert not report.ready
    assert "inequivalent arg" in report.refused[0]
    assert delivery_binding("shop/orders", "orders") not in management.read().bindings


DRIFT = {
    "work queue": (lambda amqp, api: amqp.delete_queue("orders"), Queue("orders", work_queue(ORDERS).arguments)),
    "rung": (lambda amqp, api: amqp.delete_queue("redrive.delay.1.3"), Rung(1, 3).queue),
    "binding home": (
        lambda amqp, api: amqp.unbind(delivery_binding("shop/orders", "orders")),
        delivery_binding("shop/orders", "orders"),
    ),
    "binding of the ladder": (
        lambda amqp, api: amqp.unbind(Binding(RETRY, "redrive.delay.0.5", "queue", "0.0.0.0.5.*")),
        Binding(RETRY, "redrive.delay.0.5", "queue", "0.0.0.0.5.*"),
    ),
    "exchange": (lambda amqp, api: api.delete("exchanges", DEAD), Exchange(DEAD)),
    "policy": (lambda amqp, api: api.delete("policies", GUARD), next(e for e in EVERYTHING if isinstance(e, Policy))),
}


class VhostApi:
    """What a person would do by hand in the management UI."""

    def __init__(self, broker, vhost):
        self._api, self._vhost = broker.api, vhost.name

    def put(self, kind, name, **body):
        self._api.put(kind, self._vhost, name, body={key.replace("_", "-"): value for key, value in body.items()})

    def delete(self, kind, name):
        self._api.delete(kind, self._vhost, name)


@pytest.fixture
def by_hand(broker, vhost):
    return VhostApi(broker, vhost)


@pytest.mark.parametrize("kind", DRIFT)
def test_missing_thing_is_named_and_made_again(kind, made, amqp, management, by_hand):
    break_it, element = DRIFT[kind]
    break_it(amqp, by_hand)
    found = compare(EVERYTHING, management.read())
    assert Missing(element) in found
    report = again(amqp, management)
    assert set(report.repaired) == set(found)
    assert compare(EVERYTHING, management.read()) == ()


def test_changed_policy_is_named_by_field_and_set_again(made, amqp, management, by_hand):
    by_hand.put(
        "policies", GUARD, pattern="^nothing$", definition={"delivery-limit": 20}, priority=1, apply_to="queues"
    )
    guard = next(element for element in EVERYTHING if isinstance(element, Policy))
    found = {(drift.field, drift.wanted, drift.found) for drift in compare([guard], management.read())}
    assert found == {
        ("pattern", guard.pattern, "^nothing$"),
        ("delivery-limit", 1_000_000, 20),
        ("priority", guard.priority, 1),
    }
    assert again(amqp, management).ready
    assert compare(EVERYTHING, management.read()) == ()


def test_different_rung_is_reported_and_left_alone_and_unbound(amqp, management):
    amqp.declare(Queue("redrive.delay.0.1", freeze({"x-queue-type": "quorum", "x-message-ttl": 9})))
    report = again(amqp, management)
    assert not report.ready
    assert Different(Rung(0, 1).queue, "argument x-message-ttl", 125, 9) in report.broken
    reading = management.read()
    assert dict(reading.queues["redrive.delay.0.1"].arguments)["x-message-ttl"] == 9
    assert Binding(RETRY, "redrive.delay.0.1", "queue", "0.0.0.0.1.*") not in reading.bindings


def test_wanted_binding_is_made_and_brings_messages(amqp, management):
    amqp.declare(Exchange("shop.events"))
    report = again(amqp, management, with_bindings(bound_to("shop.events")))
    publish(amqp, "shop.events", "order.created")
    assert amqp.count_ready("orders") == 1
    assert report.bindings == (mark(bound_to("shop.events"), "shop/orders"),)


def test_binding_no_longer_wanted_is_removed(amqp, management):
    amqp.declare(Exchange("shop.events"))
    again(amqp, management, with_bindings(bound_to("shop.events")))
    report = again(amqp, management)
    assert report.repaired == (Unwanted(mark(bound_to("shop.events"), "shop/orders")),)
    assert not [binding for binding in management.read().bindings if binding.source == "shop.events"]


def test_binding_that_a_person_made_is_never_removed(made, amqp, management):
    amqp.declare(Exchange("shop.events"))
    amqp.declare(bound_to("shop.events", "by.hand"))
    assert again(amqp, management).repaired == ()
    assert bound_to("shop.events", "by.hand") in management.read().bindings


def test_recorded_binding_is_removed_without_a_management_api(amqp, management):
    amqp.declare(Exchange("shop.events"))
    first = ensure(with_bindings(bound_to("shop.events")), owner=US, amqp=amqp)
    ensure(ORDERS, owner=US, amqp=amqp, recorded=first.bindings)
    assert not [binding for binding in management.read().bindings if binding.source == "shop.events"]


def test_binding_to_a_missing_exchange_is_reported_and_the_exchange_not_made(amqp, management):
    report = again(amqp, management, with_bindings(bound_to("no.such"), bound_to("amq.topic")))
    assert report.ready
    [sentence] = report.missing
    assert "no exchange 'no.such'" in sentence
    reading = management.read()
    assert "no.such" not in reading.exchanges
    assert mark(bound_to("amq.topic"), "shop/orders") in reading.bindings


def test_headers_binding_matches_as_if_it_bore_no_mark(amqp, management):
    binding = bound_to("amq.headers", "", {"x-match": "all", "country": "at"})
    again(amqp, management, with_bindings(binding))
    amqp.publish("amq.headers", "", b"m", Properties(headers={"country": "at"}))
    assert MARK in dict(next(b for b in management.read().bindings if b.source == "amq.headers").arguments)


def test_headers_binding_that_looks_at_every_header_still_matches(amqp, management):
    binding = bound_to("amq.headers", "", {"x-match": "all-with-x", "x-country": "at"})
    report = again(amqp, management, with_bindings(binding))
    amqp.publish("amq.headers", "", b"m", Properties(headers={"x-country": "at"}))
    again(amqp, management, recorded=report.bindings)
    assert not [left for left in management.read().bindings if left.source == "amq.headers"]


def test_consumer_that_moved_to_another_queue_leaves_no_second_way_home(made, amqp, management):
    moved = Wanted("shop/orders", "orders.new", timedelta(seconds=30))
    left = find_unwanted(moved, management.read())
    assert {drift.element.destination for drift in left} == {"orders", "redrive.dead.orders"}
    again(amqp, management, moved)
    publish(amqp, RETRY, routing_key(timedelta(0), "shop/orders"))
    wait_until("the message has not come", lambda: amqp.count_ready("orders.new") == 1, within=10)
    assert amqp.count_ready("orders") == 0


def test_rejected_message_is_parked_with_the_dead_letters(made, amqp):
    publish(amqp, "", "orders")
    delivery = next(one for one in amqp.consume("orders", prefetch=1, patience=5) if one)
    amqp.reject(delivery.tag, requeue=False)
    wait_until("the letter has not come", lambda: amqp.count_ready("redrive.dead.orders") == 1, within=20)


def test_consumers_own_retention_outranks_the_vhosts(made, amqp, management):
    brief = Wanted("shop/brief", "brief", timedelta(seconds=30), retention=timedelta(seconds=1))
    again(amqp, management, brief)
    publish(amqp, DEAD, "shop/brief")
    publish(amqp, DEAD, "shop/orders")
    wait_until("the letter outlives its retention", lambda: amqp.count_ready("redrive.dead.brief") == 0, within=20)
    assert amqp.count_ready("redrive.dead.orders") == 1


def test_policy_of_a_retention_that_is_usual_again_is_removed(amqp, management):
    again(amqp, management, Wanted("shop/orders", "orders", timedelta(seconds=30), retention=None))
    assert "redrive.dead.orders" in {policy.name for policy in management.read().policies}
    report = again(amqp, management)
    assert [drift.element.name for drift in report.repaired] == ["redrive.dead.orders"]
    assert "redrive.dead.orders" not in {policy.name for policy in management.read().policies}


def test_somebodys_policy_for_every_queue_does_not_shorten_a_delay(made, amqp, by_hand, collect):
    by_hand.put("policies", "ttl", pattern=".*", definition={"message-ttl": 500}, priority=1000, apply_to="queues")
    orders = collect("orders")
    sent = time.monotonic()
    publish(amqp, RETRY, routing_key(timedelta(seconds=4), "shop/orders"))
    assert orders.wait_for(["m"], within=20)["m"] - sent >= 4


def test_the_same_policy_shortens_it_when_there_is_no_guard(amqp, management, by_hand, collect):
    """Otherwise the test above could not fail."""
    ensure(ORDERS, owner=US, amqp=amqp)
    by_hand.put("policies", "ttl", pattern=".*", definition={"message-ttl": 500}, priority=1000, apply_to="queues")
    orders = collect("orders")
    sent = time.monotonic()
    publish(amqp, RETRY, routing_key(timedelta(seconds=4), "shop/orders"))
    assert orders.wait_for(["m"], within=20)["m"] - sent < 4


def test_policy_that_outranks_the_guard_is_reported(made, amqp, management, by_hand):
    by_hand.put("policies", "mine", pattern="^redrive", definition={"expires": 99000000}, priority=9_000_000)
    report = again(amqp, management)
    assert not report.ready
    assert Different(Rung(0, 1).queue, "expires by policy 'mine'", None, 99000000) in report.broken


def test_operator_policy_on_a_rung_is_reported(made, amqp, management, by_hand):
    by_hand.put("operator-policies", "cap", pattern=".*", definition={"max-length": 9}, priority=0, apply_to="queues")
    report = again(amqp, management)
    assert Different(Rung(0, 1).queue, "max-length by operator policy 'cap'", None, 9) in report.broken


def test_user_who_may_not_set_policies_gets_all_else_and_is_told(broker, vhost, amqp):
    theirs = parse_management_url(broker.management_url).as_user(vhost.user, vhost.password)
    report = ensure(ORDERS, owner=US, amqp=amqp, management=Management(theirs, vhost=vhost.name))
    assert report.ready
    assert len([sentence for sentence in report.missing if "policymaker" in sentence]) == 2


@pytest.mark.parametrize("name", STRANGE)
def test_queue_of_any_name_works(name, amqp, management):
    wanted = Wanted("shop/orders", name, timedelta(seconds=1), (bound_to("amq.topic", queue=name),), retention=None)
    assert again(amqp, management, wanted).ready
    assert again(amqp, management, wanted).repaired == ()
    publish(amqp, RETRY, routing_key(timedelta(0), "shop/orders"))
    wait_until("the message has not come", lambda: amqp.count_ready(name) == 1, within=10)
    publish(amqp, DEAD, "shop/orders")
    assert amqp.count_ready(f"redrive.dead.{name}") == 1


def test_one_reading_serves_many_consumers(made, amqp, management):
    reading = management.read()
    wanted = [Wanted(f"shop/c{i}", f"c{i}", timedelta(seconds=30)) for i in range(3)]
    assert all(ensure_consumer(one, amqp=amqp, management=management, reading=reading).ready for one in wanted)
    reading = management.read()
    assert {ensure_consumer(one, amqp=amqp, management=management, reading=reading).repaired for one in wanted} == {()}


def test_every_queue_of_redrives_survives_many_looks(made, management):
    limits = {name: dict(queue.arguments)["x-delivery-limit"] for name, queue in management.read().queues.items()}
    assert set(limits.values()) == {1_000_000}
    assert {"orders", "redrive.dead.orders", ORPHANS, "redrive.delay.0.1"} <= set(limits)


def test_exchanges_that_dead_letter_have_the_orphans_behind_them(made, management):
    exchanges = management.read().exchanges
    assert dict(exchanges[DELIVERY].arguments) == {"alternate-exchange": ORPHANS}
    assert exchanges[OWNER].arguments == US.exchange.arguments
