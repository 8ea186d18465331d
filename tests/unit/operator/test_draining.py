"""A consumer that goes once its queue is empty: what nobody can count is not taken for nothing."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from math import inf
from types import SimpleNamespace

import pytest
from cluster_objects import Clock, consumer_body, consumer_entry
from lent_broker import LentBroker, lent_tools

from redrive import errors
from redrive.ladder import ORPHANS
from redrive.reading import FoundQueue, Reading
from redrive.spec import format_duration
from redrive.topology import Owner, Wanted, work_queue
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

    def __init__(self, consumers, silent=None):
        self.consumers, self.silent, self.deleted, self.unbound = consumers, silent, [], []

    def count_ready(self, _queue):
        return 0

    def count_consumers(self, _queue):
        return self.consumers

    def take(self, queue, **_more):
        if queue == self.silent:
            raise errors.Unreachable(f"consuming from {queue!r}: no answer")
        return []

    def give_back(self, _queue, takes):
        assert takes == []

    def declare(self, _element):
        pass

    def unbind(self, binding):
        self.unbound.append(binding)

    def delete_queue(self, name):
        self.deleted.append(name)
        return 0


@pytest.fixture
def told():
    """Hold what is told in events."""
    return []


@pytest.fixture
def leave(told):
    """Have as many turns as it takes for a queue that stays empty to be deleted; say what is waited for at the end."""
    clock = Clock()
    tools = SimpleNamespace(
        clock=clock,
        owner=Owner("a-cluster"),
        registry=Registry(),
        kube=SimpleNamespace(set_finalizer=lambda *_: None),
        herald=SimpleNamespace(tell=lambda *event: told.append(event[-1])),
        tending=SimpleNamespace(stop=lambda _subject: True),
    )

    def leave(amqp, policy="DeleteIfEmpty", problem=None, messages=None, *, reading=None, stuck="", looked_at=inf):
        management = reading and SimpleNamespace(read=lambda: reading)
        access = SimpleNamespace(connection=None, manage=lambda: management, connect=lambda: nullcontext(amqp))
        entry = consumer_entry(queue="q", spec={"deletionPolicy": policy}, **GOING)
        found = problem, messages or MessagesSeen()
        leaving, now = Leaving(tools), Circumstances(access, *found, stuck=stuck, orphans_looked_at=looked_at)
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


@pytest.mark.parametrize("read", [False, True], ids=["by AMQP alone", "as the broker was read"])
@pytest.mark.parametrize("name", ["q", "redrive.dead.q"])
def test_queue_that_counts_as_empty_and_does_not_answer_is_not_deleted(leave, name, read):
    """What was read may be some seconds old, and its majority was lost since."""
    amqp, empty = Amqp(consumers=0, silent=name), MessagesSeen(ready=0, unacked=0, dead=0)
    waits_for = leave(amqp, messages=empty, reading=with_online(3) if read else None)
    assert waits_for.reason is ReadyReason.DELETION_BLOCKED
    assert f"consuming from {name!r}: no answer" in waits_for.waits_for
    assert (amqp.deleted, amqp.unbound) == ([], [])


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


def without_quorum(name):
    """Give a reading in which this queue has lost its quorum: what AMQP then counts is nothing."""
    return with_online(1, name)


def with_online(replicas, name="q"):
    """Give a reading in which so many of the three replicas of this queue run, and all of the others."""
    online = {"q": 3, "redrive.dead.q": 3, ORPHANS: 3, name: replicas}
    arguments = work_queue(Wanted("shop/orders", "q", None)).arguments
    queues = {name: FoundQueue(name, "quorum", members=3, online=count) for name, count in online.items()}
    queues["q"] = replace(queues["q"], arguments=arguments)
    return Reading("4.3.6", "rabbit", queues=queues)


@pytest.mark.parametrize("name", ["q", "redrive.dead.q"])
def test_queue_without_quorum_is_not_found_empty_by_what_the_broker_counts(leave, name):
    amqp, empty = Amqp(consumers=0), MessagesSeen(ready=0, unacked=0, dead=0)
    waits_for = leave(amqp, messages=empty, reading=without_quorum(name))
    assert waits_for.reason is ReadyReason.DELETION_BLOCKED
    assert f"to have a majority again: the queue {name!r} has 1 of its 3 replicas" in waits_for.waits_for
    assert amqp.deleted == []


def test_queue_without_quorum_that_is_to_be_deleted_whatever_is_in_it_is(leave, told):
    amqp = Amqp(consumers=0)
    assert leave(amqp, "Delete", reading=without_quorum("q")) is None
    assert "q" in amqp.deleted
    assert "could not be counted: the queue 'q' has 1 of its 3 replicas" in told[-1]


def test_queue_without_quorum_is_not_found_empty_by_its_old_counts(leave):
    amqp = Amqp(consumers=0)
    empty = MessagesSeen(ready=0, unacked=0, dead=0)
    waits_for = leave(amqp, messages=empty, stuck="only 1 run")
    assert (waits_for.reason, waits_for.workers_go_on) == (ReadyReason.DELETION_BLOCKED, True)
    assert "only 1 run" in waits_for.waits_for
    assert amqp.deleted == []


def test_moment_in_which_the_dead_letters_have_no_leader_does_not_begin_the_quiet_time_anew():
    clock = Clock()
    empty, access = MessagesSeen(ready=0, unacked=0, dead=0), SimpleNamespace(connection=None)
    tools = SimpleNamespace(clock=clock)
    entry = consumer_entry(queue="q", spec={"deletionPolicy": "DeleteIfEmpty"}, **GOING)
    leaving, now = Leaving(tools), Circumstances(access, None, empty)
    began = leaving.leave(entry, entry.consumer, now).waits_for
    clock.now += 5
    stuck = leaving.leave(entry, entry.consumer, replace(now, stuck_now="it has no leader"))
    assert (stuck.reason, stuck.workers_go_on) == (ReadyReason.DELETION_BLOCKED, True)
    assert "it has no leader" in stuck.waits_for
    clock.now += 5
    left = leaving.leave(entry, entry.consumer, now).waits_for
    seconds = quiet_time(entry.consumer)
    assert (format_duration(seconds) in began, format_duration(seconds - timedelta(seconds=10)) in left) == (True, True)


def test_queue_is_not_deleted_before_the_orphans_were_looked_through_for_its_messages(leave):
    amqp, empty = Amqp(consumers=0), MessagesSeen(ready=0, unacked=0, dead=0)
    waits_for = leave(amqp, messages=empty, looked_at=-inf)
    assert (waits_for.reason, waits_for.workers_go_on) == (ReadyReason.DRAINING, True)
    assert "redrive.orphans to be looked through" in waits_for.waits_for
    assert amqp.deleted == []
    assert leave(amqp, messages=empty, looked_at=1_000_000.0) is None
    assert "q" in amqp.deleted


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
