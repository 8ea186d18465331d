"""How many workers there should be, and how those are that there are: by pods, their events, and what was decided."""

from datetime import timedelta

import pytest
from cluster_objects import NOON, Clock, consumer_entry, owned, pending_pod, worker_pod

from redrive_operator.causes import PlacementCause
from redrive_operator.crews import CHEAP, COST_ANNOTATION, Crews
from redrive_operator.errors import KubeUnavailable
from redrive_operator.history import read_time
from redrive_operator.holdings import Holdings
from redrive_operator.observation import MessagesSeen
from redrive_operator.placement import PlacementSeen
from redrive_operator.subject import Key
from redrive_operator.workforce import ASKED_AT_ONCE, LIST_SECONDS, NOTE_SECONDS, SILENCE_SECONDS, Workforce

ORDERS = Key("shop", "orders")
WORKER = {"worker": {"image": "shop/orders:1", "command": {"args": ["handle"]}}}
SCALING = {"minReplicas": 0, "maxReplicas": 5, "messagesPerReplica": 10, "scaleDownDelay": "60s"}
SCALED = {**WORKER, "scaling": SCALING}


class Cluster:
    """Lists the pods that a test says, and notes what is asked and written."""

    def __init__(self):
        self.pods, self.warnings = [], {}
        self.listed, self.read = 0, []
        self.marks = {}
        self.broken = False

    def each(self, _kind, *, namespace=None, selector=""):
        assert (namespace, "redrive.dev/consumer=orders" in selector) == ("shop", True)
        self.listed += 1
        self._answer()
        return iter(self.pods)

    def list_warnings(self, _pod, uid):
        self.read.append(uid)
        self._answer()
        return self.warnings.get(uid, [])

    def merge(self, _kind, key, patch):
        self._answer()
        self.marks[key.name] = patch["metadata"]["annotations"][COST_ANNOTATION]

    def _answer(self):
        if self.broken:
            raise KubeUnavailable("the API server is away")


class Bed:
    """A workforce on a cluster, a clock and pods that a test moves by hand."""

    def __init__(self):
        self.cluster, self.crews, self.holdings, self.clock = Cluster(), Crews(), Holdings(), Clock()
        self.seconds, self.busy, self.asked = 0.0, {}, []
        self.version = 100
        self.workforce = Workforce(
            self.cluster, self.crews, self.holdings, ask=self.ask, clock=self.clock, now=self.now
        )

    def now(self):
        return read_time(NOON) + timedelta(seconds=self.seconds)

    def ask(self, addresses):
        self.asked.append(dict(addresses))
        return {uid: self.busy[uid] for uid in addresses if uid in self.busy}

    def pass_time(self, seconds):
        self.seconds += seconds
        self.clock.now += seconds

    def deploy(self, replicas, *, available=0, failure=""):
        self.version += 1
        refused = {"type": "ReplicaFailure", "status": "True", "message": failure, "lastTransitionTime": NOON}
        status = {"availableReplicas": available, "conditions": [refused] if failure else []}
        body = owned("Deployment", spec={"replicas": replicas}, status=status, version=str(self.version))
        self.holdings.note(body)

    def add_pods(self, count, make=worker_pod, **more):
        for number in range(count):
            body = make(f"orders-5d8f7-{number}", uid=f"p-{number}", **more)
            self.crews.note(body)
            self.cluster.pods.append(body)

    def look(self, spec=WORKER):
        entry = consumer_entry(spec=spec)
        return self.workforce.look(entry.key, entry.consumer)

    def staff(self, spec=SCALED, *, ready=0, unacked=0, uid="u-1", placement=None, written=True):
        entry = consumer_entry(spec=spec, uid=uid)
        messages = MessagesSeen(ready=ready, unacked=unacked, acked=0)
        seen = placement or PlacementSeen((), 0, (), None)
        staffing = self.workforce.staff(entry.subject, entry.consumer, messages, self.clock(), seen)
        if written:
            self.workforce.hired(entry.subject, staffing)
        return staffing


@pytest.fixture
def bed():
    return Bed()


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        ({}, 0),
        ({"replicas": 3}, 0),
        (WORKER, 1),
        ({**WORKER, "replicas": 3}, 3),
        ({**WORKER, "replicas": 0}, 0),
        ({**WORKER, "replicas": 3, "paused": True}, 0),
        ({**SCALED, "paused": True}, 0),
        ({**WORKER, "scaling": {**SCALING, "minReplicas": 2}}, 2),
    ],
)
def test_workers_are_as_many_as_the_spec_says_where_nobody_can_count(bed, spec, replicas):
    assert bed.workforce.wanted(ORDERS, consumer_entry(spec=spec).consumer) == replicas


def test_workers_stay_as_many_as_they_are_where_nobody_can_count(bed):
    bed.deploy(4)
    assert bed.workforce.wanted(ORDERS, consumer_entry(spec=SCALED).consumer) == 4


def test_workers_are_no_fewer_than_the_least_where_nobody_can_count_after_a_pause(bed):
    bed.deploy(0)
    spec = {**WORKER, "scaling": {**SCALING, "minReplicas": 2}}
    assert bed.workforce.keep(consumer_entry().subject, consumer_entry(spec=spec).consumer).replicas == 2


def test_backlog_brings_workers_at_once_and_the_change_is_told(bed):
    bed.deploy(0)
    staffing = bed.staff(ready=25)
    assert staffing.replicas == 3
    assert staffing.told.startswith("from 0 to 3: ")
    assert "25" in staffing.told


def test_same_number_is_not_told_again(bed):
    bed.deploy(0)
    bed.staff(ready=25)
    bed.pass_time(15)
    assert bed.staff(ready=25).told == ""


def test_change_that_could_not_be_written_is_told_when_it_is(bed):
    bed.deploy(2)
    assert bed.staff(ready=25, written=False).told.startswith("from 2 to 3: ")
    bed.pass_time(15)
    assert bed.staff(ready=25).told.startswith("from 2 to 3: ")
    bed.pass_time(15)
    assert bed.staff(ready=25).told == ""


def test_first_workers_are_no_change(bed):
    staffing = bed.staff(ready=25)
    assert (staffing.replicas, staffing.told) == (3, "")


def test_new_operator_takes_nothing_away_before_the_delay_has_passed(bed):
    bed.deploy(4)
    for _ in range(3):
        assert bed.staff().replicas == 4
        bed.pass_time(15)
    bed.pass_time(60)
    bed.staff()
    bed.pass_time(15)
    assert bed.staff().replicas == 0


def test_number_that_somebody_gave_to_the_deployment_is_not_what_was_decided(bed):
    bed.deploy(0)
    bed.staff(ready=25)
    bed.deploy(9)
    bed.pass_time(15)
    assert bed.staff(ready=25).replicas == 3


def test_consumer_that_was_made_anew_does_not_inherit_the_decision(bed):
    bed.staff(ready=45)
    bed.pass_time(15)
    assert bed.staff(ready=5, uid="u-2").replicas == 1


def test_no_more_workers_are_asked_for_while_some_have_no_place(bed):
    bed.deploy(2)
    bed.staff(ready=15)
    bed.add_pods(2, pending_pod)
    bed.pass_time(31)
    placement = bed.look(SCALED)
    assert [each.count for each in placement.unplaced] == [2]
    assert bed.staff(ready=45, placement=placement).replicas == 2


def test_pods_without_a_place_are_told_after_the_grace(bed):
    bed.deploy(2)
    bed.add_pods(2, pending_pod)
    bed.pass_time(29)
    assert (bed.look().unplaced, bed.look().waiting) == ((), 2)
    bed.pass_time(2)
    (unplaced,) = bed.look().unplaced
    assert (unplaced.cause, unplaced.count) == (PlacementCause.INSUFFICIENT_CPU, 2)


def test_pod_of_whose_end_no_watch_told_is_not_told_of(bed):
    bed.deploy(1)
    bed.add_pods(1, pending_pod)
    bed.cluster.pods.clear()
    bed.pass_time(31)
    assert bed.look().unplaced == ()


def test_trouble_is_listed_once_a_minute_and_wellbeing_never(bed):
    bed.deploy(1)
    bed.add_pods(1)
    bed.look()
    assert bed.cluster.listed == 0
    bed.add_pods(1, pending_pod, version="2")
    bed.pass_time(31)
    for _ in range(3):
        bed.look()
    assert bed.cluster.listed == 1
    bed.pass_time(LIST_SECONDS)
    bed.look()
    assert bed.cluster.listed == 2


def test_trouble_is_told_also_where_it_cannot_be_looked_at_more_closely(bed):
    bed.deploy(1)
    bed.add_pods(1, pending_pod)
    bed.pass_time(31)
    bed.cluster.broken = True
    assert [each.count for each in bed.look().unplaced] == [1]


def creating_pod(name, **more):
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": NOON}
    waiting = {"name": "worker", "state": {"waiting": {"reason": "ContainerCreating"}}}
    status = {"phase": "Pending", "conditions": [scheduled], "containerStatuses": [waiting]}
    return worker_pod(name, status=status, **more)


def test_events_tell_what_a_pod_does_not_say_itself(bed):
    bed.deploy(1)
    bed.add_pods(1, creating_pod)
    told = ("FailedMount", 'MountVolume.SetUp failed: configmap "prices" not found')
    bed.cluster.warnings["p-0"] = [
        ("DNSConfigForming", "Nameserver limits were exceeded"),
        told,
        ("FailedMount", "old"),
    ]
    bed.pass_time(31)
    (unplaced,) = bed.look().unplaced
    assert unplaced.cause is PlacementCause.MOUNT
    assert 'configmap "prices" not found' in unplaced.message


def test_pod_that_takes_long_without_a_warning_is_no_trouble(bed):
    bed.deploy(1)
    bed.add_pods(1, creating_pod)
    bed.pass_time(300)
    assert bed.look().unplaced == ()


def test_events_of_a_few_pods_are_read_now_and_then(bed):
    bed.deploy(9)
    bed.add_pods(9, creating_pod)
    bed.pass_time(31)
    for _ in range(4):
        bed.look()
    assert len(bed.cluster.read) == 3
    bed.pass_time(NOTE_SECONDS)
    bed.look()
    assert len(bed.cluster.read) == 6


def test_pods_that_are_refused_are_told_after_the_grace(bed):
    bed.deploy(3, failure='pods "orders-1" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1')
    bed.pass_time(31)
    (unplaced,) = bed.look().unplaced
    assert (unplaced.cause, unplaced.count) == (PlacementCause.QUOTA, 3)


def test_idlest_pods_are_marked_to_go(bed):
    bed.deploy(4)
    bed.add_pods(4)
    bed.busy = {"p-0": 2, "p-1": 0, "p-2": 1, "p-3": 0}
    bed.workforce.spare_the_busy(ORDERS, 2)
    assert bed.cluster.marks == {"orders-5d8f7-1": CHEAP, "orders-5d8f7-3": CHEAP}


def test_pod_that_does_not_answer_is_taken_for_busy(bed):
    bed.deploy(2)
    bed.add_pods(2)
    bed.busy = {"p-1": 3}
    bed.workforce.spare_the_busy(ORDERS, 1)
    assert bed.cluster.marks == {"orders-5d8f7-1": CHEAP}


def test_mark_of_an_earlier_choice_is_taken_back(bed):
    bed.deploy(2)
    bed.add_pods(1, annotations={COST_ANNOTATION: CHEAP})
    bed.cluster.pods.append(worker_pod("orders-5d8f7-1", uid="p-1"))
    bed.busy = {"p-0": 1, "p-1": 0}
    bed.workforce.spare_the_busy(ORDERS, 1)
    assert bed.cluster.marks == {"orders-5d8f7-0": None, "orders-5d8f7-1": CHEAP}


def test_cost_that_somebody_s_template_sets_is_no_mark_of_ours(bed):
    bed.deploy(2)
    bed.add_pods(2, annotations={COST_ANNOTATION: "100"})
    bed.busy = {"p-0": 1, "p-1": 0}
    bed.workforce.spare_the_busy(ORDERS, 1)
    assert bed.cluster.marks == {"orders-5d8f7-1": CHEAP}


def test_pod_that_is_gone_is_not_chosen(bed):
    bed.deploy(3)
    bed.add_pods(4)
    bed.cluster.pods.pop(0)
    bed.busy = {"p-0": 0, "p-1": 1, "p-2": 0, "p-3": 1}
    bed.workforce.spare_the_busy(ORDERS, 2)
    assert bed.cluster.marks == {"orders-5d8f7-2": CHEAP}


def test_same_question_is_asked_once_until_it_is_another(bed):
    bed.deploy(4)
    bed.add_pods(4)
    bed.busy = {"p-0": 0}
    for _ in range(3):
        bed.workforce.spare_the_busy(ORDERS, 2)
    assert len(bed.asked) == 1
    bed.workforce.spare_the_busy(ORDERS, 4)
    bed.workforce.spare_the_busy(ORDERS, 2)
    assert len(bed.asked) == 2


def test_crew_that_does_not_answer_is_left_alone_for_long(bed):
    bed.add_pods(4)
    for wanted in (4, 3):
        bed.deploy(wanted)
        bed.workforce.spare_the_busy(ORDERS, wanted - 1)
    assert len(bed.asked) == 1
    bed.pass_time(SILENCE_SECONDS)
    bed.deploy(2)
    bed.workforce.spare_the_busy(ORDERS, 1)
    assert len(bed.asked) == 2


def test_few_are_asked_at_once_and_others_do_not_wait_for_them(bed):
    bed.deploy(2)
    bed.add_pods(2)
    turns = []

    def ask_while_asked(addresses):
        turns.append(len(addresses))
        bed.workforce._asked.clear()
        bed.workforce.spare_the_busy(ORDERS, 1)
        return {}

    bed.workforce._ask = ask_while_asked
    bed.workforce.spare_the_busy(ORDERS, 1)
    assert len(turns) == ASKED_AT_ONCE


@pytest.mark.parametrize("replicas", [0, 4, 6])
def test_nobody_is_asked_where_there_is_nothing_to_choose(bed, replicas):
    bed.deploy(4)
    bed.add_pods(4)
    bed.workforce.spare_the_busy(ORDERS, replicas)
    assert (bed.asked, bed.cluster.marks) == ([], {})


def test_workers_are_taken_away_also_where_none_can_be_marked(bed):
    bed.deploy(2)
    bed.add_pods(2)
    bed.cluster.broken = True
    bed.workforce.spare_the_busy(ORDERS, 1)


def test_nothing_is_kept_of_a_consumer_that_is_gone(bed):
    bed.deploy(1)
    bed.add_pods(1, pending_pod)
    bed.pass_time(31)
    bed.look()
    bed.staff(ready=5)
    bed.workforce.forget(ORDERS)
    assert bed.crews.of(ORDERS) == ()
    assert bed.staff(ready=45).replicas == 5
