"""Queues that were there before Redrive, on real brokers: which are used, with what missing, and which are refused."""

from dataclasses import replace
from datetime import timedelta

import pika
import pytest

from redrive.adoption import Accepted, Fine, NeedsPolicy, Refused, judge_queue
from redrive.elements import Binding, Queue, freeze
from redrive.ladder import ORPHANS, RETRY, delivery_binding, routing_key
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.topology import Owner, Wanted
from redrive_testbed.shell import wait_until

ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=1.5))
HOME = delivery_binding("shop/orders", "orders")
QUORUM = {"x-queue-type": "quorum"}


@pytest.fixture
def channel(vhost):
    """Declare as a person would, by the client library: Redrive's own door cannot make such queues."""
    connection = pika.BlockingConnection(pika.URLParameters(vhost.amqp_url))
    yield connection.channel()
    connection.close()


@pytest.fixture
def run(amqp, management):
    return lambda wanted=ORDERS: ensure(wanted, owner=Owner("a-cluster"), amqp=amqp, management=management)


@pytest.fixture
def policy(broker, vhost):
    def put(name, definition, pattern="^orders$", kind="policies", priority=5):
        body = {"pattern": pattern, "definition": definition, "priority": priority, "apply-to": "queues"}
        broker.api.put(kind, vhost.name, name, body=body)

    return put


def test_plain_quorum_queue_is_completed_by_a_policy(amqp, management, run):
    amqp.declare(Queue("orders", freeze(QUORUM)))
    assert isinstance(judge_queue(ORDERS, management.read()), NeedsPolicy)
    report = run()
    assert (report.ready, report.missing) == (True, ())
    assert judge_queue(ORDERS, management.read()) == Fine()
    assert run().repaired == ()


@pytest.mark.parametrize("kind", ["quorum", "classic"])
def test_message_rejected_in_an_adopted_queue_reaches_the_dead_letters(kind, amqp, run):
    amqp.declare(Queue("orders", freeze({"x-queue-type": kind})))
    run()
    wait_until("the policy has no effect", lambda: _reject_one(amqp), within=30)


def _reject_one(amqp):
    amqp.publish("", "orders", b"m", Properties(delivery_mode=2))
    delivery = next(one for one in amqp.consume("orders", prefetch=1, patience=5) if one)
    amqp.reject(delivery.tag, requeue=False)
    amqp.cancel()
    amqp.wait(0.5)
    return amqp.count_ready("redrive.dead.orders") > 0


def test_adopted_queue_keeps_what_its_own_policy_said(amqp, management, run, policy):
    amqp.declare(Queue("orders", freeze(QUORUM)))
    policy("theirs", {"queue-leader-locator": "balanced"})
    run()
    ours = next(one for one in management.read().policies if one.name == "redrive.work.orders")
    assert dict(ours.definition)["queue-leader-locator"] == "balanced"
    assert run().repaired == ()


def test_limit_of_a_hidden_policy_does_not_come_into_force_by_ours(amqp, management, run, policy):
    amqp.declare(Queue("orders", freeze(QUORUM)))
    run()
    policy("theirs", {"expires": 1000, "queue-leader-locator": "balanced"})
    assert run().ready
    ours = next(one for one in management.read().policies if one.name == "redrive.work.orders")
    assert dict(ours.definition)["queue-leader-locator"] == "balanced"
    amqp.wait(3)
    assert amqp.count_ready("orders") == 0
    assert (run().ready, run().repaired) == (True, ())


def test_limit_in_a_policy_of_ours_is_mended(amqp, management, run, policy):
    amqp.declare(Queue("orders", freeze(QUORUM)))
    run()
    ours = next(one for one in management.read().policies if one.name == "redrive.work.orders")
    policy(ours.name, {**dict(ours.definition), "max-length": 5}, priority=ours.priority)
    assert run().ready
    assert ours in management.read().policies


def test_policy_of_an_adopted_queue_goes_when_the_queue_is_made_anew(amqp, management, run):
    amqp.declare(Queue("orders", freeze(QUORUM)))
    run()
    amqp.delete_queue("orders")
    report = run()
    assert "policy 'redrive.work.orders' is no longer wanted" in map(str, report.repaired)
    assert "redrive.work.orders" not in {policy.name for policy in management.read().policies}
    assert (judge_queue(ORDERS, management.read()), run().repaired) == (Fine(), ())


def test_classic_queue_is_accepted_and_its_owner_told_what_is_missing(amqp, management, run):
    amqp.declare(Queue("orders", freeze({"x-queue-type": "classic"})))
    report = run()
    assert report.ready
    assert len([sentence for sentence in report.missing if "is classic" in sentence]) == 2
    assert isinstance(judge_queue(ORDERS, management.read()), Accepted)
    assert HOME in management.read().bindings
    assert run().repaired == ()


def test_existing_queue_is_never_made_anew(amqp, management, run):
    amqp.declare(Queue("orders", freeze(QUORUM)))
    amqp.publish("", "orders", b"m", Properties(delivery_mode=2))
    run()
    assert amqp.count_ready("orders") == 1
    assert dict(management.read().queues["orders"].arguments) == QUORUM


def test_retry_comes_home_to_an_adopted_queue(amqp, run):
    amqp.declare(Queue("orders", freeze({"x-queue-type": "classic"})))
    run()
    amqp.publish(RETRY, routing_key(timedelta(seconds=0.25), "shop/orders"), b"m", Properties(delivery_mode=2))
    wait_until("the retry has not come", lambda: amqp.count_ready("orders") == 1, within=20)


def test_queue_with_a_dead_letter_exchange_of_its_own_is_told_apart(amqp, run):
    amqp.declare(Queue("orders", freeze({**QUORUM, "x-dead-letter-exchange": "their.dlx", "x-delivery-limit": 5})))
    report = run()
    assert report.ready
    assert any("'their.dlx'" in sentence for sentence in report.missing)
    assert any("x-delivery-limit=5" in sentence for sentence in report.missing)


REFUSED = {
    "is a stream": {"arguments": {"x-queue-type": "stream"}},
    "exclusive": {"exclusive": True},
    "last consumer": {"auto_delete": True},
    "argument x-max-length says": {"arguments": {**QUORUM, "x-max-length": 10}},
    "x-max-length-bytes says": {"arguments": {**QUORUM, "x-max-length-bytes": 1000}},
    "argument x-message-ttl": {"arguments": {**QUORUM, "x-message-ttl": 60000}},
    "argument x-expires": {"arguments": {**QUORUM, "x-expires": 6000000}},
    "go round in the ladder": {"arguments": {**QUORUM, "x-dead-letter-exchange": RETRY}},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_queue_that_cannot_be_used_is_refused_with_its_reason(reason, channel, management, run):
    channel.queue_declare("orders", **{"durable": True, **REFUSED[reason]})
    report = run()
    assert not report.ready
    assert reason in " ".join(report.refused)
    assert HOME not in management.read().bindings


def test_queue_that_is_gone_with_a_restart_is_refused(channel, management, run, broker):
    if broker.version.startswith("3."):
        channel.queue_declare("orders", durable=False)
    else:
        # 4.3 refuses transient queues that are not exclusive unless it is told to permit them.
        channel.queue_declare("orders", durable=False, exclusive=True)
    assert "is not durable" in " ".join(run().refused)


POLICIES = {"max-length": 5, "max-length-bytes": 500, "message-ttl": 60000, "expires": 6000000}


@pytest.mark.parametrize("kind", ["policies", "operator-policies"])
@pytest.mark.parametrize("key", POLICIES)
def test_limit_that_comes_by_a_policy_is_refused_at_once(kind, key, run, policy):
    run()
    policy("theirs", {key: POLICIES[key]}, kind=kind)
    report = run()
    assert not report.ready
    assert "'theirs'" in report.refused[0]
    assert str(POLICIES[key]) in report.refused[0]


def test_limit_is_seen_before_the_queue_is_made(amqp, run, policy):
    policy("theirs", {"max-length": 5}, pattern=".*")
    assert not run().ready
    assert amqp.count_ready("orders") is None


def test_queue_that_may_stop_confirming_is_unbound_and_its_sleepers_become_orphans(amqp, management, run, policy):
    run()
    amqp.publish(RETRY, routing_key(timedelta(seconds=1.5), "shop/orders"), b"m", Properties(delivery_mode=2))
    policy("theirs", {"max-length": 5})
    report = run()
    assert any("go to the orphans" in sentence for sentence in report.missing)
    assert HOME not in management.read().bindings
    wait_until("the sleeper is not among the orphans", lambda: amqp.count_ready(ORPHANS) == 1, within=30)


def test_refusal_forgets_no_binding(amqp, management, policy):
    wanted = replace(ORDERS, bindings=(Binding("amq.topic", "orders", "queue", "a"),))
    doors = {"owner": Owner("a-cluster"), "amqp": amqp, "management": management}
    made = ensure(wanted, **doors).bindings
    policy("theirs", {"max-length": 5})
    assert ensure(wanted, **doors, recorded=made).bindings == made


def test_mended_queue_is_bound_again(broker, vhost, management, run, policy):
    run()
    policy("theirs", {"max-length": 5})
    run()
    broker.api.delete("policies", vhost.name, "theirs")
    # The broker's statistics may still report the policy for some seconds.
    wait_until("the queue is still refused", lambda: run().ready, within=40)
    assert HOME in management.read().bindings


def test_policy_that_does_not_fit_the_queues_type_is_no_limit(run, policy, broker):
    if not broker.version.startswith("3."):
        policy("theirs", {"max-length": 5, "queue-mode": "lazy"})
    else:
        policy("theirs", {"max-length": 5, "ha-mode": "all"})
    assert run().ready


def test_single_active_consumer_is_seen(amqp, management):
    amqp.declare(Queue("orders", freeze({**QUORUM, "x-single-active-consumer": True})))
    assert management.read().queues["orders"].single_active


def test_refusal_is_a_value_that_says_whether_others_are_in_danger(amqp, management):
    amqp.declare(Queue("orders", freeze({**QUORUM, "x-max-length": 10})))
    verdict = judge_queue(ORDERS, management.read())
    assert isinstance(verdict, Refused)
    assert verdict.endangers_others
