"""Workers that find no place: it is told once, with what to do, no message pays for it, and its end is told as well.

Most consumers of this file share one shop on the newest release, and begin together: each has a grace to wait for.
"""

from datetime import datetime, timedelta

import pytest
from e2e.full_cluster import (
    LATER,
    NEVER,
    SOON,
    TOO_MUCH_CPU,
    TROUBLES,
    Nodes,
    Spare,
    Trouble,
    plain,
    set_quota,
    with_a_label,
)
from e2e.seekers import FAILED, Seeker

from redrive_operator.causes import PlacementCause
from redrive_testbed import images
from redrive_testbed.rabbitmq_release import TESTED

pytestmark = pytest.mark.alone

DEFAULT_GRACE = timedelta(seconds=30)

CRASHES = {
    "unknown-handler": {"runner": {"python": {"handler": "shop:nothing", "mode": "Thread"}}},
    "out-of-memory": {"container": {"resources": {"limits": {"memory": "24Mi"}, "requests": {"memory": "24Mi"}}}},
}
LAST_WORDS = {
    "unknown-handler": "exit code 2: error: the handler shop:nothing cannot be imported",
    "out-of-memory": "exit code 137 (OOMKilled)",
}


@pytest.fixture(scope="module")
def nodes(kubectl):
    """Give the nodes; what tests do to them is undone, also what a run that was killed has left."""
    nodes = Nodes(kubectl)
    nodes.clear()
    yield nodes
    nodes.clear()


@pytest.fixture
def bare_nodes(nodes):
    """Give the nodes with nothing done to them; what one test does is undone before the next."""
    nodes.clear()
    yield nodes
    nodes.clear()


@pytest.fixture(scope="module")
def street(open_shop, nodes):
    """Give a shop on the newest release, for all of this file."""
    with open_shop(TESTED[-1]) as shop:
        yield shop


@pytest.fixture(scope="module")
def begun(street, operator):
    """Give a seeker for each trouble and each crash, and a patient one, all begun."""
    set_quota(street)
    graces = {name: trouble.grace for name, trouble in TROUBLES.items()}
    graces |= {**dict.fromkeys(CRASHES, LATER), "patient": None}
    workers = {name: trouble.worker(street) for name, trouble in TROUBLES.items()}
    workers |= {name: street.worker(**what) for name, what in CRASHES.items()}
    workers |= {"patient": TOO_MUCH_CPU.worker(street)}
    seekers = {name: Seeker(street, operator, name, grace=grace) for name, grace in graces.items()}
    for name, seeker in seekers.items():
        seeker.apply(workers[name])
    for seeker in seekers.values():
        seeker.publish()
    return seekers


@pytest.fixture(scope="module")
def mended(begun, street, nodes):
    """Give the same seekers, all mended after they were in trouble, but for the patient one."""
    for name in TROUBLES:
        begun[name].wait_told(FAILED)
    for name in CRASHES:
        begun[name].wait_told("CrashLooping")
    for name in CRASHES:
        begun[name].apply(plain(street))
    for name, trouble in TROUBLES.items():
        begun[name].mend(trouble, nodes)
    return begun


@pytest.fixture(scope="module")
def spare(street, nodes, cluster, machine_places):
    """Give a further node, which is not booted yet; it is removed before the street is cleared."""
    _, archive = images.archive(machine_places)
    spare = Spare(cluster, archive, nodes)
    try:
        yield spare
    finally:
        spare.remove()


@pytest.fixture
def seek(street, operator):
    """Give a function that names a seeker of this test; at its end it is let go."""
    named = []

    def name(word, **settings):
        named.append(Seeker(street, operator, word, **settings))
        return named[-1]

    yield name
    for seeker in named:
        # Waited for, since its pods must go before their node does.
        street.namespace.try_kubectl("delete", f"rcon/{seeker.name}", "--ignore-not-found", "--timeout=60s")


def test_want_of_cpu_is_told_once_and_no_message_pays_for_it(shop, operator, nodes):
    seeker = Seeker(shop, operator, "orders")
    seeker.apply(TOO_MUCH_CPU.worker(shop))
    seeker.publish()
    seeker.assert_told(TOO_MUCH_CPU)
    seeker.mend(TOO_MUCH_CPU, nodes)
    seeker.assert_ended(TOO_MUCH_CPU)


@pytest.mark.parametrize("name", TROUBLES)
def test_each_cause_is_told_once_with_what_to_do_while_the_message_waits(begun, name):
    begun[name].assert_told(TROUBLES[name])


@pytest.mark.parametrize("name", CRASHES)
def test_worker_that_crashes_has_its_place_and_is_told_apart(begun, name):
    seeker = begun[name]
    told = seeker.wait_condition("WorkersAvailable", "False", "CrashLooping")
    assert LAST_WORDS[name] in told["message"]
    assert LAST_WORDS[name] in seeker.told_once("CrashLooping")["message"]
    assert seeker.wait_condition("Ready", "False")["reason"] == "CrashLooping"
    seeker.wait_for("a crashing worker", lambda: seeker.sample("redrive_crash_looping_workers") == 1)
    seeker.wait_for("a second restart", lambda: seeker.restarts() >= 2, within=90)
    seeker.wait_for("the end of the grace", lambda: min(seeker.ages()) > LATER + SOON)
    assert seeker.condition("WorkersPlaced")["status"] == "True"
    seeker.assert_waits()


@pytest.mark.parametrize("name", TROUBLES)
def test_end_of_each_cause_is_told_once_and_the_message_takes_its_first_attempt(mended, name):
    mended[name].assert_ended(TROUBLES[name])


@pytest.mark.parametrize("name", CRASHES)
def test_worker_that_crashes_no_more_takes_the_message_and_was_never_without_a_place(mended, name):
    seeker = mended[name]
    seeker.wait_handled()
    seeker.wait_for("no crashing worker", lambda: seeker.sample("redrive_crash_looping_workers") == 0)
    seeker.told_once("CrashLooping")
    assert seeker.told(FAILED) == seeker.told("WorkersPlaced") == []


def test_nothing_is_told_before_the_default_grace_is_over(begun):
    seeker = begun["patient"]
    seeker.wait_told(FAILED)
    (pod,) = seeker.pods()
    made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    told = min(datetime.fromisoformat(event["firstTimestamp"]) for event in seeker.told(FAILED))
    assert told - made >= DEFAULT_GRACE


def test_taint_that_keeps_everybody_out_is_told_once_and_no_message_pays_for_it(seek, street, bare_nodes):
    seeker, trouble = seek("kept-out"), Trouble(PlacementCause.TAINT, "untolerated taint", plain)
    bare_nodes.taint()
    seeker.apply(plain(street))
    seeker.publish()
    seeker.assert_told(trouble)
    seeker.set_grace(NEVER)
    bare_nodes.clear()
    seeker.assert_ended(trouble)


def test_trouble_that_lasts_is_told_once_whatever_is_made_anew(seek, street, bare_nodes, operator):
    seeker, cause = seek("lasting", replicas=2), PlacementCause.NODE_SELECTOR
    seeker.apply(with_a_label(street))
    seeker.wait_for("two unplaced workers", lambda: seeker.unplaced(cause) == 2)
    for _ in range(2):
        before = street.uids("lasting")
        street.namespace.kubectl("delete", "pods", "--selector=redrive.dev/consumer=lasting")
        seeker.wait_for("new pods", lambda before=before: len(street.uids("lasting") - before) == 2)
        seeker.wait_for("the end of their grace", lambda: min(seeker.ages()) > 2 * SOON)
        seeker.wait_for("two unplaced workers", lambda: seeker.unplaced(cause) == 2)
    operator.restart()
    seeker.wait_for("two unplaced workers", lambda: seeker.unplaced(cause) == 2)
    assert seeker.condition("WorkersPlaced")["message"].startswith("2 of 2 workers have no place: ")
    seeker.told_once(FAILED)
    seeker.set_grace(NEVER)
    bare_nodes.label()
    seeker.wait_condition("WorkersPlaced", "True", "Placed")
    seeker.told_once("WorkersPlaced")
    seeker.told_once(FAILED)


def test_node_that_comes_within_the_grace_is_waited_for_without_a_word(seek, street, spare):
    seeker = seek("hopeful", grace=NEVER)
    spare.remove()
    seeker.apply(spare.worker(street))
    seeker.publish()
    seeker.wait_unschedulable()
    before = seeker.wait_condition("WorkersPlaced", "True", "Placed")
    spare.boot()
    seeker.wait_handled()
    assert {pod["spec"]["nodeName"] for pod in seeker.pods()} == {spare.name}
    assert seeker.condition("WorkersPlaced")["lastTransitionTime"] == before["lastTransitionTime"]
    assert seeker.told(FAILED) == seeker.told("WorkersPlaced") == []
    assert not any(seeker.failed(cause) for cause in PlacementCause)


def test_node_that_goes_is_missed_until_it_is_back(seek, street, spare):
    seeker = seek("homeless", grace=NEVER)
    # The other nodes do not match, and this one bears a taint by which Kubernetes says that it is gone.
    trouble = Trouble(PlacementCause.NODE_SELECTOR, "1 node(s) had untolerated taint", spare.worker)
    spare.boot()
    seeker.apply(spare.worker(street))
    seeker.wait_condition("Ready", "True", within=90)
    spare.pull_the_plug()
    street.namespace.kubectl("wait", "--for=condition=Ready=Unknown", f"node/{spare.name}", "--timeout=120s")
    seeker.publish()
    seeker.set_grace(SOON)
    seeker.assert_told(trouble)
    seeker.set_grace(NEVER)
    spare.boot()
    seeker.assert_ended(trouble)
