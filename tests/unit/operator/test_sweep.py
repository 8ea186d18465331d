"""Users that no consumer has any more: deleted after a while, in a vhost that is ours, when the cluster agrees."""

import pytest
from cluster_objects import arrived, connection_entry, consumer_body
from lent_broker import THEM, US, LentBroker, lent_tools

from redrive.errors import AccessRefused, BrokerError, Unreachable
from redrive_operator.registry import read_entry
from redrive_operator.sweep import LOOK_SECONDS, MOST, PATIENCE_SECONDS, SPARE_SECONDS, Sweep

LIVING = consumer_body(connection="main")


@pytest.fixture
def broker():
    made = LentBroker()
    made.have_user()
    return made


class Sweeping:
    """A sweep of this broker, time and again."""

    def __init__(self, broker, tools):
        self.broker, self.tools, self.sweep = broker, tools, Sweep(tools)

    def once(self):
        access = self.broker.access(vhost="")
        self.sweep.sweep(access, access.manage(), self.broker.cluster)

    def go_on(self, seconds=PATIENCE_SECONDS + LOOK_SECONDS):
        end = self.tools.clock() + seconds
        while self.tools.clock() < end:
            self.once()
            self.tools.clock.now += LOOK_SECONDS
        self.once()


def test_user_of_a_consumer_that_is_gone_is_deleted(broker):
    Sweeping(broker, lent_tools()).go_on()
    assert broker.users == set()


def test_user_of_a_living_consumer_stays_for_ever(broker):
    Sweeping(broker, lent_tools(LIVING)).go_on(3600)
    assert broker.touched == []


WORKER = {"worker": {"image": "i", "timeout": "10m", "python": {"handler": "a:b"}}}


def test_user_of_a_consumer_that_moved_is_deleted_when_its_old_pods_have_had_their_time(broker):
    sweeping = Sweeping(broker, lent_tools(arrived(secret="mine", spec=WORKER)))
    sweeping.go_on(600)
    assert broker.touched == []
    sweeping.go_on(PATIENCE_SECONDS + 120)
    assert broker.users == set()


def test_user_of_a_consumer_that_did_not_arrive_where_it_moved_to_stays(broker):
    Sweeping(broker, lent_tools(consumer_body(secret="mine", spec=WORKER))).go_on(3600)
    assert broker.touched == []


def test_user_is_not_deleted_at_first_sight(broker):
    sweeping = Sweeping(broker, lent_tools())
    sweeping.go_on(PATIENCE_SECONDS - 2 * LOOK_SECONDS)
    assert (broker.touched, sweeping.sweep.waits) == ([], True)


def test_consumer_that_comes_back_in_time_keeps_its_user(broker):
    sweeping = Sweeping(broker, lent_tools())
    sweeping.once()
    sweeping.tools.registry.put(read_entry(LIVING))
    sweeping.go_on(3600)
    assert (broker.touched, sweeping.sweep.waits) == ([], False)


def test_consumer_that_the_operator_does_not_know_of_and_the_cluster_has_keeps_its_user(broker):
    tools = lent_tools(LIVING)
    tools.registry.drop(read_entry(LIVING).key)
    Sweeping(broker, tools).go_on(3600)
    assert broker.touched == []


def test_unreadable_consumer_that_the_operator_does_not_know_of_keeps_its_user(broker):
    broken = consumer_body(connection="main", spec={"retry": "?"})
    tools = lent_tools(broken)
    tools.registry.drop(read_entry(broken).key)
    Sweeping(broker, tools).go_on(3600)
    assert broker.touched == []


@pytest.mark.parametrize("owner", [THEM, None])
def test_user_in_a_vhost_that_is_not_ours_stays(owner):
    broker = LentBroker(owner)
    broker.have_user()
    sweeping = Sweeping(broker, lent_tools())
    sweeping.go_on()
    assert (broker.touched, sweeping.sweep.waits) == ([], False)


def test_vhost_that_was_not_ours_and_is_now_is_swept_in_the_end():
    broker = LentBroker(THEM)
    broker.have_user()
    sweeping = Sweeping(broker, lent_tools())
    sweeping.go_on()
    broker.owners["/"] = US
    sweeping.go_on(SPARE_SECONDS + PATIENCE_SECONDS + LOOK_SECONDS)
    assert broker.users == set()


def test_vhost_is_swept_that_no_consumer_uses_any_more(broker):
    broker.owners["left"] = US
    broker.have_user("shop/gone", "left")
    kept = broker.have_user()
    Sweeping(broker, lent_tools(LIVING)).go_on()
    assert broker.users == {kept}


@pytest.mark.parametrize("settings", ["--watch-namespaces=shop", "--identity=shared"])
def test_nothing_is_swept_where_others_may_have_users_that_are_not_seen(broker, settings):
    Sweeping(broker, lent_tools(settings=[settings])).go_on(3600)
    assert broker.touched == []


@pytest.mark.parametrize(
    ("clusters", "stays"),
    [({"other": "rabbit@one"}, True), ({}, True), ({"other": "rabbit@two"}, False)],
)
def test_user_of_who_uses_another_connection_stays_unless_that_leads_elsewhere(broker, clusters, stays):
    connections = [connection_entry("main"), connection_entry("other")]
    tools = lent_tools(arrived(connection="other"), connections=connections)
    tools.clusters.update(clusters)
    Sweeping(broker, tools).go_on()
    assert (broker.touched == []) is stays


def test_many_users_that_nobody_has_are_deleted_in_the_end():
    broker = LentBroker()
    for number in range(2 * MOST + 1):
        broker.have_user(f"shop/gone-{number}")
    Sweeping(broker, lent_tools()).go_on(PATIENCE_SECONDS + 3 * LOOK_SECONDS)
    assert broker.users == set()


def test_users_of_other_people_are_not_touched(broker):
    broker.passwords["redrive/shop/by-hand/12345678"] = broker.passwords["admin"] = "p"
    Sweeping(broker, lent_tools()).go_on()
    assert broker.users == {"redrive/shop/by-hand/12345678", "admin"}


def test_broker_that_fails_holds_nobody_up_and_is_swept_when_it_answers(broker):
    sweeping = Sweeping(broker, lent_tools())
    sweeping.once()
    broker.fails = Unreachable("no answer")
    sweeping.go_on()
    assert not sweeping.sweep.waits
    broker.fails = None
    sweeping.go_on()
    assert broker.users == set()


def test_stray_that_could_not_be_deleted_is_waited_for_and_tried_again(broker):
    sweeping = Sweeping(broker, lent_tools())
    sweeping.go_on(PATIENCE_SECONDS - LOOK_SECONDS)
    broker.fails_to_delete = BrokerError("internal error")
    sweeping.go_on()
    assert (sweeping.sweep.waits, len(broker.users)) == (True, 1)
    broker.fails_to_delete = None
    sweeping.go_on()
    assert (sweeping.sweep.waits, broker.users) == (False, set())


def test_stray_that_may_not_be_deleted_holds_nobody_up(broker):
    sweeping = Sweeping(broker, lent_tools())
    broker.fails_to_delete = AccessRefused("not an administrator")
    sweeping.go_on()
    assert not sweeping.sweep.waits
