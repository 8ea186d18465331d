"""The number of pods follows the backlog: up at once, down without hurry, to none and back; and no message pays for it.

The tests of this file share one shop on the newest release, each with a consumer of its own; what a broker could do
differently is shown on each release.
"""

import re
from itertools import pairwise

import pytest
from e2e.crews import Crew
from e2e.shops import API

from redrive_testbed.rabbitmq_release import TESTED

MANY = 500
# Down soon: the delay is for people's patience, and what is shown here has none.
SOON = {"minReplicas": 0, "scaleDownDelay": "3s"}


@pytest.fixture(scope="module")
def town(open_shop):
    """Give a shop on the newest release, for all of this file."""
    with open_shop(TESTED[-1]) as shop:
        yield shop


@pytest.fixture
def hire(town):
    """Give a function that names a crew of this test; at its end they are let go."""
    hired = []

    def name(word):
        hired.append(Crew(town, word))
        return hired[-1]

    yield name
    for crew in hired:
        town.namespace.kubectl("delete", f"rcon/{crew.name}", "--wait=false")


def test_five_hundred_messages_scale_from_none_to_the_bound_and_back_and_each_runs_once(shop):
    crew = Crew(shop, "orders")
    crew.begin(worker=crew.worker(concurrency=2), scaling={**SOON, "maxReplicas": 4, "messagesPerReplica": 100})
    assert (crew.asked(), crew.pods()) == (0, [])
    names = crew.publish(MANY, seconds=0.1)
    crew.wait_asked(4)
    crew.wait_asked(0, within=150)
    crew.wait_pods(0)
    crew.wait_done(names)
    assert len({run.pod for run in crew.runs()}) > 1
    assert_told(crew, [0, 4, 0])


def test_pod_that_works_is_spared_while_the_idle_ones_go(hire):
    crew = hire("spared")
    crew.begin(scaling={**SOON, "minReplicas": 4, "maxReplicas": 4, "messagesPerReplica": 1})
    crew.wait_pods(4)
    names = crew.publish(4, held=True)
    crew.wait_running(4)
    pods = {run.message: run.pod for run in crew.runs()}
    assert len(set(pods.values())) == 4
    # Unless told which are idle, Kubernetes takes away those first that became ready last.
    ages = sorted(names, key=lambda name: crew.ready_since(pods[name]))
    idle, busy = ages[:2], ages[2:]
    crew.edit(scaling={"minReplicas": 0})
    crew.release(idle)
    crew.wait_asked(2)
    crew.wait_pods(2)
    assert crew.staying() == {pods[name] for name in busy}
    crew.release(busy)
    crew.wait_done(names)


def test_message_that_sleeps_keeps_no_pod_unless_nobody_could_tell_it_from_one_in_flight(hire):
    crew, blind = hire("sleeping"), hire("blind")
    shop = crew.shop
    retry = {"maxAttempts": 2, "backoff": {"strategy": "Fixed", "base": "40s", "max": "40s", "jitter": "None"}}
    crew.begin(retry=retry, scaling={**SOON, "messagesPerReplica": 1})
    data = {key: value for key, value in shop.secret("rabbitmq").items() if key != "management_uri"}
    shop.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "blind"}, "stringData": data})
    broker = {"secretRef": {"name": "blind"}, "vhost": shop.vhost.name}
    blind.begin(retry=retry, scaling={**SOON, "maxReplicas": 2, "messagesPerReplica": 1}, broker=broker)
    assert (crew.asked(), blind.asked()) == (0, 0)
    known = shop.get(blind.name)["status"]["broker"]
    assert known["management"] is False
    assert any("not scaled down" in sentence for sentence in known["missing"])

    (name,), others = crew.publish(1, succeeds_on=2), blind.publish(5, succeeds_on=2)
    blind.wait_pods(2)
    stayed = blind.staying()
    crew.wait_running(1)
    crew.wait_asked(0)
    crew.wait_pods(0)
    assert shop.ledger.ran(name) == [1]

    shop.wait_runs([(name, 2)])
    crew.wait_done([name], attempts=2)
    blind.wait_done(others, attempts=2)
    assert (blind.staying(), blind.asked()) == (stayed, 2)
    assert_told(blind, [0, 2])


def test_backlog_that_would_take_too_long_gets_more_pods_up_to_the_bound(hire):
    crew = hire("hurried")
    crew.begin(scaling={**SOON, "maxReplicas": 3, "targetDrainTime": "2s"})
    names = crew.publish(80, seconds=0.5)
    crew.wait_asked(1)
    crew.wait_asked(3)
    crew.wait_done(names)
    assert len({run.pod for run in crew.runs()}) > 1


def test_nobody_is_asked_for_while_those_who_were_have_no_place(hire, operator):
    crew = hire("homeless")
    scaling, placement = {**SOON, "maxReplicas": 4, "messagesPerReplica": 10}, {"grace": "1s"}
    huge = crew.worker(container={"resources": {"requests": {"cpu": "1000"}}})
    crew.begin(worker=huge, scaling=scaling, placement=placement)
    names = crew.publish(1)
    crew.wait_asked(1)
    crew.shop.wait_condition("WorkersPlaced", "False", "FailedWorkerPlacement", name=crew.name)
    names += crew.publish(39, first=1)
    crew.wait_left(operator, 40)
    assert crew.asked() == 1
    crew.shop.apply(crew.shop.consumer(crew.name, worker=crew.worker(), scaling=scaling, placement=placement))
    crew.wait_done(names)


def test_pause_takes_every_pod_from_a_backlog_and_its_end_brings_them_back(hire):
    crew = hire("paused")
    crew.begin(scaling={**SOON, "maxReplicas": 2, "messagesPerReplica": 5})
    names = crew.publish(12, held=True)
    crew.wait_running(2)
    crew.wait_pods(2)  # ready, so that they can be seen to be so no more
    crew.edit(paused=True)
    crew.wait_draining()  # now they take nothing more
    crew.release(names)
    crew.wait_pods(0)
    assert crew.shop.ready(crew.name) == 10
    crew.shop.wait_condition("Ready", "True", "Paused", name=crew.name)
    crew.edit(paused=False)
    crew.wait_asked(2)
    crew.wait_done(names)


def test_people_and_autoscalers_set_the_number_where_the_spec_has_no_scaling(hire):
    by_hand, by_machine = hire("by-hand"), hire("by-machine")
    namespace = by_hand.shop.namespace
    target = {"apiVersion": API, "kind": "RetryingConsumer", "name": by_machine.name}
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3}
    autoscaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "machine"}}
    by_machine.begin()
    by_hand.begin()
    namespace.apply({**autoscaler, "spec": spec})
    namespace.kubectl("scale", "rcon/by-hand", "--replicas=3")
    for crew, count in ((by_hand, 3), (by_machine, 2)):
        crew.wait_pods(count)
        crew.wait_replicas(count)
        scale = crew.scale()
        assert scale["spec"]["replicas"] == count
        chosen = namespace.get("pods", f"--selector={scale['status']['selector']}")["items"]
        assert {pod["metadata"]["name"] for pod in chosen} == crew.staying()
        assert crew.scaled() == []
    namespace.kubectl("delete", "horizontalpodautoscaler/machine")


@pytest.mark.alone
def test_restart_of_the_operator_takes_nobody_away_early_and_tells_nothing_twice(hire, operator):
    crew = hire("kept")
    crew.begin(scaling={"maxReplicas": 3, "messagesPerReplica": 2, "scaleDownDelay": "10m"})
    names = crew.publish(6, held=True)
    crew.wait_pods(3)
    crew.wait_running(3)
    first = [run.message for run in crew.runs()]
    crew.release(first)
    crew.wait_running(6)
    crew.wait_left(operator, 3)  # for which two pods would do
    before = crew.staying(), crew.generation(), crew.scaled()
    operator.restart()
    crew.wait_left(operator, 3)
    assert (crew.staying(), crew.generation(), crew.scaled()) == before
    crew.release(set(names) - set(first))
    crew.wait_done(names)
    assert_told(crew, [0, 3])


def assert_told(crew, numbers):
    """See that every change was told once, from what to what; on the way there may be others between."""
    told = crew.scaled()
    steps = [tuple(map(int, re.search(r"from (\d+) to (\d+)", message).groups())) for message in told]
    assert all(after == before for (_, after), (before, _) in pairwise(steps)), told
    passed = iter([steps[0][0], *(after for _, after in steps)])
    assert all(number in passed for number in numbers), told
