"""The broker users of a lent broker: who may have none loses it, whatever it did before, and nobody else does."""

import pytest
from cluster_objects import connection_entry, consumer_body
from lent_broker import GOING, HELD, THEM, LentBroker, LentDesk, lent_tools

from redrive.errors import BrokerError, Unreachable
from redrive_operator.care import Care, must_not_run
from redrive_operator.leaving import Circumstances, Leaving
from redrive_operator.observation import Problem, TopologySeen, WorkersSeen
from redrive_operator.reasons import BrokerReason, TopologyReason

POLICIES = ("Retain", "Delete", "DeleteIfEmpty")
NOT_LENT = [{"exchange": "not.allowed"}]
SHUT = connection_entry(spec={"allowedNamespaces": ["bills"]})


def orders(name="orders", *, spec=None, state=HELD, uid=None, **more):
    return consumer_body(name, connection="main", uid=uid or f"uid-{name}", spec=spec, **state, **more)


def leave(tools, access, **circumstances):
    """Have the only consumer go; say what it waits for."""
    (entry,) = tools.registry.consumers()
    return Leaving(tools).leave(entry, entry.consumer, Circumstances(access, **circumstances))


# Who goes


@pytest.mark.parametrize("policy", POLICIES)
def test_user_goes_with_a_consumer_that_binds_an_exchange_which_is_not_allowed(policy):
    broker = LentBroker()
    broker.have_user()
    spec = {"deletionPolicy": policy, "queue": {"name": "orders", "bindings": NOT_LENT}}
    tools = lent_tools(orders(spec=spec, state=GOING))
    found = LentDesk(tools, broker.access()).see()["orders"]
    assert leave(tools, found.access, is_another_s=found.lost) is None
    assert broker.users == set()


@pytest.mark.parametrize("policy", POLICIES[1:])
def test_user_goes_with_a_consumer_whose_queue_became_anothers(policy):
    broker = LentBroker()
    broker.have_user()
    tools = lent_tools(orders(spec={"deletionPolicy": policy}, state=GOING))
    assert leave(tools, broker.access(), is_another_s=True) is None
    assert broker.users == set()


@pytest.mark.parametrize("policy", POLICIES)
def test_user_goes_with_a_consumer_whose_vhost_is_gone(policy):
    broker = LentBroker()
    broker.have_user()
    broker.owners.clear()
    tools = lent_tools(orders(spec={"deletionPolicy": policy}, state=GOING))
    gone = Problem(BrokerReason.VHOST_NOT_FOUND, "there is none")
    assert leave(tools, broker.access(), problem=gone) is None
    assert broker.users == set()


def test_user_that_could_not_be_deleted_is_told_of():
    broker = LentBroker()
    broker.have_user()
    broker.fails = Unreachable("no answer")
    tools = lent_tools(orders(state=GOING))
    assert leave(tools, broker.access()) is None
    assert "UserLeftBehind" in tools.told


# Who stays, and may have none


def test_consumer_whose_queue_was_made_anew_by_somebody_else_loses_its_user():
    broker = LentBroker()
    broker.have_user()
    broker.have_queue("orders")
    LentDesk(lent_tools(orders(queue="orders")), broker.access()).see()
    assert broker.users == set()


def test_consumer_whose_namespace_is_shut_out_loses_its_user():
    broker = LentBroker()
    broker.have_user()
    LentDesk(lent_tools(orders()), broker.access(SHUT)).see()
    assert broker.users == set()


def test_broker_is_troubled_for_no_user_that_does_not_exist():
    broker = LentBroker()
    LentDesk(lent_tools(orders()), broker.access(SHUT)).see()
    assert (broker.touched, broker.users) == ([], set())


def test_user_that_cannot_be_deleted_keeps_nobody_from_their_turn():
    broker = LentBroker()
    broker.have_user()
    broker.fails_to_delete = BrokerError("internal error")
    desk = LentDesk(lent_tools(orders()), broker.access(SHUT))
    desk.see()
    broker.fails_to_delete = None
    desk.see()
    assert broker.users == set()


def test_older_consumer_to_which_a_queue_is_foreign_takes_nothing_from_whose_it_is():
    broker = LentBroker()
    name = broker.have_user()
    broker.have_queue("orders", made_for="shop/orders")
    older = orders("evil", queue="orders", created="2020-01-01T00:00:00Z")
    found = LentDesk(lent_tools(orders(queue="orders"), older), broker.access()).see()
    assert broker.users == {name}
    assert (found["orders"].lost, found["evil"].lost) == (False, True)


@pytest.mark.parametrize(
    ("reason", "lost", "stops"),
    [
        (TopologyReason.QUEUE_REFUSED, True, True),
        (TopologyReason.QUEUE_REFUSED, False, False),
        (TopologyReason.QUEUE_WITHOUT_QUORUM, False, False),
        (TopologyReason.QUEUE_CONFLICT, True, True),
        (TopologyReason.EXCHANGE_NOT_ALLOWED, True, False),
        (TopologyReason.VHOST_TAKEN, False, False),
    ],
)
def test_workers_stop_when_their_queue_is_anothers_and_go_on_when_it_is_refused_for_what_it_is(reason, lost, stops):
    assert must_not_run(TopologySeen(Problem(reason, "")), lost=lost) is stops


def test_workers_of_a_consumer_whose_queue_is_anothers_are_stopped(monkeypatch):
    broker = LentBroker()
    broker.have_queue("orders")
    worker = {"worker": {"image": "i", "python": {"handler": "a:b"}}}
    tools = lent_tools(orders(queue="orders", spec=worker))
    stopped = []
    tools.tending.stop = stopped.append
    monkeypatch.setattr(Care, "_look", lambda *_: WorkersSeen(wanted=1))
    monkeypatch.setattr(Care, "_judge", lambda *_: None)
    found = LentDesk(tools, broker.access()).see()["orders"]
    (entry,) = tools.registry.consumers()
    Care(tools).see_to(entry, entry.consumer, found)
    assert stopped == [entry.subject]


# The vhost of another cluster


def test_second_cluster_touches_no_user_of_the_first():
    broker = LentBroker(THEM)
    broker.have_user()
    LentDesk(lent_tools(orders()), broker.access()).turn(None)
    assert broker.touched == []


def test_second_cluster_that_shuts_a_namespace_out_deletes_no_user_of_the_first():
    broker = LentBroker(THEM)
    name = broker.have_user()
    shut = connection_entry(spec={"allowedNamespaces": ["bills"]})
    LentDesk(lent_tools(orders()), broker.access(shut)).turn(None)
    assert broker.users == {name}


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("policy", ["Retain", "DeleteIfEmpty"])
def test_second_cluster_that_lets_go_of_its_consumer_deletes_no_user_of_the_first(policy, lost):
    broker = LentBroker(THEM)
    name = broker.have_user()
    tools = lent_tools(orders(spec={"deletionPolicy": policy}, state=GOING))
    gone = Problem(BrokerReason.SECRET_NOT_FOUND, "it is gone")
    leave(tools, broker.access(), is_another_s=lost, problem=gone)
    assert tools.kube.released
    assert broker.users == {name}


def test_vhost_that_has_no_owner_yet_is_ours_to_make_users_in():
    broker = LentBroker()
    broker.owners["/"] = None
    LentDesk(lent_tools(orders()), broker.access()).see()
    assert len(broker.users) == 1
