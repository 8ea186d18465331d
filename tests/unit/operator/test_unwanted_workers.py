"""Workers that are asked to be none end, also where nothing else that is asked of them can be done."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from cluster_objects import consumer_body, owned
from lent_broker import LentBroker, lent_tools

from redrive_operator.care import Care, Found
from redrive_operator.holdings import Holdings
from redrive_operator.observation import BrokerSeen, TopologySeen
from redrive_operator.users import UserSeen

REFUSED = {"image": "i", "python": {"handler": "a:b"}, "podTemplate": {"spec": {"serviceAccountName": "anybody"}}}
SCALING = {"minReplicas": 0, "maxReplicas": 9, "messagesPerReplica": 1}


@pytest.fixture
def see_to(monkeypatch):
    """See to a consumer whose pod template is refused; say whether its workers are ended."""

    def see_to(*, deployed=True, **spec):
        tools = lent_tools(consumer_body(connection="main", generation=1, spec={"worker": REFUSED, **spec}))
        tools.holdings, tools.now, stopped = Holdings(), lambda: datetime.now(UTC), []
        (entry,) = tools.registry.consumers()
        if deployed:
            tools.holdings.note(owned("Deployment", spec={"replicas": 4}))
        tools.workforce = SimpleNamespace(
            look=lambda *_: None,
            staff=lambda *_: SimpleNamespace(replicas=4, told=""),
            spare_the_busy=lambda *_: None,
        )
        tools.tending.tend = lambda _subject, _inputs, build: build()
        tools.tending.stop = stopped.append
        verdicts = []
        monkeypatch.setattr(Care, "_tell", lambda _care, _entry, verdict: verdicts.append(verdict))
        found = Found(
            BrokerSeen("/", "Connection"), LentBroker().access(), TopologySeen(), user=UserSeen("user", "s", "d")
        )
        Care(tools).see_to(entry, entry.consumer, found)
        (verdict,) = verdicts
        assert verdict.status["conditions"][0]["reason"] == "InvalidSpec"
        return stopped == [entry.subject]

    return see_to


def test_workers_go_on_while_their_template_is_refused(see_to):
    assert not see_to(replicas=4)
    assert not see_to(scaling=SCALING)


def test_workers_whose_template_is_refused_end_when_they_are_paused_or_asked_to_be_none(see_to):
    assert see_to(paused=True)
    assert see_to(paused=True, scaling=SCALING)
    assert see_to(replicas=0)


def test_nothing_is_asked_for_where_there_are_no_workers_to_end(see_to):
    assert not see_to(paused=True, deployed=False)
