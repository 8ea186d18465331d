"""What is told of queues that have lost their quorum, and from when on."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from cluster_objects import Clock, consumer_body, consumer_entry, owned
from lent_broker import LentBroker, lent_tools

from redrive.reading import FoundQueue, Reading
from redrive.workshop import Report
from redrive_operator.care import Care, Found
from redrive_operator.crews import Crews
from redrive_operator.holdings import Holdings
from redrive_operator.job import Job
from redrive_operator.observation import BrokerSeen, MessagesSeen, Problem, TopologySeen
from redrive_operator.placement import PlacementSeen
from redrive_operator.reasons import TopologyReason
from redrive_operator.tending import Tended, Tending
from redrive_operator.users import UserSeen
from redrive_operator.vhost import SETTLING_SECONDS, Vhost, VhostSeen, _judge_report
from redrive_operator.workforce import Workforce

DEAD = FoundQueue("redrive.dead.orders", "quorum", members=3, online=3)
FINE = Report("4.3.6", "rabbit")


@pytest.fixture
def job():
    entry = consumer_entry(queue="orders")
    return Job(entry, entry.consumer, expected=True)


def reading(**dead):
    return Reading("4.3.6", "rabbit", queues={DEAD.name: replace(DEAD, **dead)})


def test_dead_letter_queue_without_quorum_is_told_once_that_is_sure(job):
    clock = Clock()
    vhost = Vhost(job.entry.desk, None, clock=clock)

    def told(**dead):
        seen = _judge_report(job, FINE, FINE, vhost._settle(reading(**dead), [job]))
        assert seen.problem is None  # the others of its messages go on
        return " ".join(seen.missing)

    assert "redrive.dead.orders" not in told(online=1)
    clock.now += SETTLING_SECONDS
    assert "the queue 'redrive.dead.orders' has 1 of its 3 replicas" in told(online=1)
    assert "redrive.dead.orders" not in told()


def test_dead_letter_queue_without_quorum_is_told_to_whoever_would_delete_it(job):
    def told(**dead):
        return VhostSeen(BrokerSeen("/", "Secret"), reading(**dead)).say_if_stuck(job.consumer)

    assert "the queue 'redrive.dead.orders' has 1 of its 3 replicas" in told(online=1)
    assert told() == ""


WORKER = {"image": "i", "python": {"handler": "a:b"}}
STUCK = TopologySeen(Problem(TopologyReason.QUEUE_WITHOUT_QUORUM, "1 of its 3 replicas run"))
USER = UserSeen("user", "secret", "digest")


@pytest.fixture
def see_to(monkeypatch):
    """See to a consumer of four workers whose queue is stuck; say how many are asked for, or None where nobody is."""

    def see_to(topology=STUCK, *, deployed=True, user=USER, connection="main", **spec):
        body = consumer_body(connection=connection, generation=1, spec={"worker": WORKER, **spec})
        tools, asked, judged = lent_tools(body), [], []
        tools.holdings = Holdings()
        (entry,) = tools.registry.consumers()
        if deployed:
            tools.holdings.note(owned("Deployment", spec={"replicas": 4}))
        tools.workforce = Workforce(None, Crews(), tools.holdings, ask=None, clock=Clock(), now=None)
        monkeypatch.setattr(tools.workforce, "look", lambda *_: PlacementSeen())
        monkeypatch.setattr(tools.workforce, "spare_the_busy", lambda *_: None)
        tools.tending = Tending(None, tools.holdings)

        def tend(_subject, _inputs, build):
            asked.append(build().deployment["spec"]["replicas"])
            return Tended()

        tools.tending.tend = tend
        tools.tending.stop = tools.tending.remove = lambda _subject: asked.append("none at all")
        monkeypatch.setattr(Care, "_judge", lambda _care, _entry, _consumer, seen: judged.append(seen))
        access = LentBroker().access() if connection else SimpleNamespace(connection=None, digest="digest")
        messages = MessagesSeen(ready=1_000_000, unacked=0)
        found = Found(BrokerSeen("/", "Connection"), access, topology, messages=messages, user=user)
        Care(tools).see_to(entry, entry.consumer, found)
        assert [seen.topology.problem for seen in judged] == [topology.problem]
        return asked[0] if asked else None

    return see_to


SCALING = {"minReplicas": 1, "maxReplicas": 9, "messagesPerReplica": 1}


def test_workers_of_a_queue_without_quorum_are_kept_as_the_object_says_and_are_not_scaled(see_to):
    assert see_to(replicas=4) == 4
    assert see_to(replicas=2) == 2
    assert see_to(scaling=SCALING) == 4
    assert see_to(replicas=4, connection=None, user=None) == 4


def test_workers_of_a_queue_without_quorum_end_when_they_are_paused_or_asked_for_no_more(see_to):
    assert see_to(replicas=4, paused=True) == 0
    assert see_to(scaling=SCALING, paused=True) == 0
    assert see_to(worker=None) == "none at all"


def test_no_workers_are_made_for_a_queue_without_quorum(see_to):
    assert see_to(replicas=4, deployed=False) is None


def test_workers_whose_user_is_not_known_are_left_alone(see_to):
    assert see_to(replicas=4, user=None) is None


def test_workers_of_a_queue_that_is_refused_are_left_alone(see_to):
    assert see_to(TopologySeen(Problem(TopologyReason.QUEUE_REFUSED, "")), replicas=4, paused=True) is None
