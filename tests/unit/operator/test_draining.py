"""A consumer that goes once its queue is empty: what nobody can count is not taken for nothing."""

from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace

import pytest
from cluster_objects import Clock, consumer_body, consumer_entry
from lent_broker import LentBroker, lent_tools

from redrive import errors
from redrive.topology import Owner
from redrive_operator.care import Care, Found
from redrive_operator.explaining import explain_broker
from redrive_operator.leaving import Circumstances, Leaving, quiet_time
from redrive_operator.observation import BrokerSeen, MessagesSeen, TopologySeen, WorkersSeen
from redrive_operator.reasons import ReadyReason
from redrive_operator.registry import Registry
from redrive_operator.users import UserSeen

GOING = {"finalizers": ["redrive.dev/finalizer"], "deletionTimestamp": "2026-05-01T12:00:00Z"}


class Amqp:
    """A vhost by AMQP alone, where somebody consumes from an empty queue, or nobody does."""

    def __init__(self, consumers):
        self.consumers, self.deleted, self.unbound = consumers, [], []

    def count_ready(self, _queue):
        return 0

    def count_consumers(self, _queue):
        return self.consumers

    def declare(self, _element):
        pass

    def unbind(self, binding):
        self.unbound.append(binding)

    def delete_queue(self, name):
        self.deleted.append(name)
        return 0


@pytest.fixture
def leave():
    """Have as many turns as it takes for a queue that stays empty to be deleted; say what is waited for at the end."""
    clock = Clock()
    tools = SimpleNamespace(
        clock=clock,
        owner=Owner("a-cluster"),
        registry=Registry(),
        kube=SimpleNamespace(set_finalizer=lambda *_: None),
        herald=SimpleNamespace(tell=lambda *_: None),
        tending=SimpleNamespace(stop=lambda _subject: True),
    )

    def leave(amqp, policy="DeleteIfEmpty", problem=None, messages=None):
        access = SimpleNamespace(connection=None, manage=lambda: None, connect=lambda: nullcontext(amqp))
        entry = consumer_entry(queue="q", spec={"deletionPolicy": policy}, **GOING)
        leaving, now = Leaving(tools), Circumstances(access, problem, messages or MessagesSeen())
        leaving.leave(entry, entry.consumer, now)
        clock.now += (quiet_time(entry.consumer) + timedelta(seconds=1)).total_seconds()
        return leaving.leave(entry, entry.consumer, now)

    return leave


def test_queue_whose_messages_in_hand_nobody_counts_is_not_deleted_while_somebody_consumes(leave):
    amqp = Amqp(consumers=1)
    waits_for = leave(amqp)
    assert waits_for.reason is ReadyReason.DELETION_BLOCKED
    assert "1 other consumers of the queue 'q' to end" in waits_for.waits_for
    assert (amqp.deleted, amqp.unbound) == ([], [])


def test_queue_whose_messages_in_hand_nobody_counts_is_deleted_when_nobody_consumes(leave):
    amqp = Amqp(consumers=0)
    assert leave(amqp) is None
    assert "q" in amqp.deleted


def test_queue_that_is_to_be_deleted_whatever_is_in_it_is_deleted_whoever_consumes(leave):
    amqp = Amqp(consumers=1)
    assert leave(amqp, "Delete") is None
    assert "q" in amqp.deleted


@pytest.mark.parametrize("policy", ["Delete", "DeleteIfEmpty"])
@pytest.mark.parametrize(
    ("error", "waits"), [(errors.BadAnswer("404, and not by RabbitMQ"), True), (errors.NotFound("no vhost"), False)]
)
def test_consumer_is_let_go_without_its_queues_only_when_rabbitmq_says_that_the_vhost_is_gone(
    leave, policy, error, waits
):
    waits_for = leave(Amqp(consumers=0), policy, explain_broker(error))
    assert (waits_for is not None) == waits


def test_consumer_whose_workers_cannot_be_made_says_what_its_end_waits_for(monkeypatch):
    wrong = {"image": "i", "python": {"handler": "a:b"}, "podTemplate": {"spec": {"volumes": [0]}}}
    spec = {"worker": wrong, "deletionPolicy": "DeleteIfEmpty"}
    tools = lent_tools(consumer_body("orders", connection="main", spec=spec, **GOING, generation=1))
    monkeypatch.setattr(Care, "_look", lambda *_: WorkersSeen(wanted=1))
    judged = []
    monkeypatch.setattr(Care, "_judge", lambda _care, _entry, _consumer, seen: judged.append(seen))
    tools.workforce = SimpleNamespace(
        look=lambda *_: None,
        staff=lambda *_: SimpleNamespace(replicas=1, told=""),
        spare_the_busy=lambda *_: None,
    )
    tools.tending.tend = lambda _subject, _inputs, build: build()
    (entry,) = tools.registry.consumers()
    empty = MessagesSeen(ready=0, unacked=0, dead=0)
    user = UserSeen("user", "secret", "digest")
    found = Found(BrokerSeen("/", "Connection"), LentBroker().access(), TopologySeen(), messages=empty, user=user)
    Care(tools).see_to(entry, entry.consumer, found)
    (seen,) = judged
    assert seen.deleting.reason is ReadyReason.DRAINING
    assert "to stay empty for" in seen.deleting.waits_for
