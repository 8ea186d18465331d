"""A consumer's status is read whatever somebody has written there, and said in one sentence."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.reading import FoundQueue
from redrive_cli.counting import pick
from redrive_cli.rates import Rates, rate_between
from redrive_cli.standing import read_events, read_pods, read_standing

NOW = "2026-01-02T03:04:05Z"


def condition(type_="Ready", status="True", reason="Ready", message="all is well", generation=3):
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": NOW,
        "observedGeneration": generation,
    }


def body(*conditions, generation=3, **spec):
    return {
        "metadata": {"name": "orders", "namespace": "shop", "generation": generation, "creationTimestamp": NOW},
        "spec": {"broker": {"vhost": "v"}, "worker": {"image": "x"}, **spec},
        "status": {
            "conditions": list(conditions),
            "queues": {"work": "orders", "dead": "redrive.dead.orders"},
            "broker": {"vhost": "v", "version": "4.3.6", "missing": ["no retention"]},
            "messages": {"ready": 7, "unacked": 2, "dead": 1, "observedTime": NOW},
            "workers": {"wanted": 3, "available": 2, "unplaced": 1},
            "schedule": "3 attempts",
        },
    }


def test_what_the_operator_wrote_is_read():
    standing = read_standing(body(condition()))
    assert standing.is_ready
    assert (standing.counts.ready, standing.counts.unacked, standing.counts.dead) == (7, 2, 1)
    assert (standing.wanted, standing.available, standing.unplaced) == (3, 2, 1)
    assert (standing.queue, standing.vhost, standing.version) == ("orders", "v", "4.3.6")
    assert standing.counts.at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (body(condition()), "ready"),
        (body(condition(), paused=True), "paused"),
        (
            body(condition(status="False", reason="Unreachable", message="nobody answers")),
            "not ready, Unreachable: nobody answers",
        ),
        (body(condition(generation=2)), "it was changed, and the operator has not seen to that yet"),
        (body(), "the operator has not seen it yet: is it running? (`redrive doctor`)"),
    ],
)
def test_how_it_stands_is_one_sentence(found, verdict):
    assert read_standing(found).verdict == verdict


def test_a_new_object_has_the_queues_that_it_will_have():
    new = read_standing({"metadata": {"name": "a.b", "namespace": "shop"}, "spec": {}})
    assert (new.queue, new.dead_queue, new.vhost) == ("shop.a.b", "redrive.dead.shop.a.b", "/")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["conditions", "type", "messages", "ready", "workers", "broker"]), inner)
    ),
    max_leaves=12,
)


@given(anything, anything)
def test_no_status_breaks_the_reader(spec, status):
    read_standing({"metadata": {"name": "x", "namespace": "y"}, "spec": spec, "status": status}).as_json()
    list(read_pods([{"metadata": {}, "spec": spec, "status": status}]))
    read_events([{"series": spec, "count": status, "message": status}], most=5)


def test_the_last_events_are_shown_the_newest_last():
    events = [{"reason": f"R{hour}", "lastTimestamp": f"2026-01-01T0{hour}:00:00Z"} for hour in (3, 1, 2)]
    assert [event.reason for event in read_events(events, most=2)] == ["R2", "R3"]


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        ({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, "consuming"),
        ({"status": {"phase": "Pending"}}, "Pending"),
        (
            {"status": {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}},
            "CrashLoopBackOff",
        ),
        ({"metadata": {"deletionTimestamp": NOW}, "status": {"phase": "Running"}}, "draining"),
        ({}, "unknown"),
    ],
)
def test_a_pod_is_told_by_what_it_does(pod, state):
    [found] = read_pods([pod])
    assert found.state == state


def queue(name, ready, unacked=0, **counted):
    return name, FoundQueue(name, "quorum", ready=ready, unacked=unacked, **counted)


def test_counts_of_one_consumer_are_picked_from_its_vhost():
    queues = dict(
        [
            queue("orders", 5, 2),
            queue("other", 100),
            queue("redrive.dead.orders", 3, 1),
            queue("redrive.delay.0.1", 4),
            queue("redrive.delay.2.15", 6),
            queue("redrive.orphans", 0),
        ]
    )
    counts = pick(queues, "orders")
    assert (counts.ready, counts.unacked, counts.dead, counts.asleep, counts.orphans) == (5, 2, 4, 10, 0)
    assert counts.at is not None


def test_counts_of_queues_that_are_not_there_are_not_zero():
    counts = pick({}, "orders")
    assert (counts.ready, counts.dead, counts.asleep) == (None, None, None)


@pytest.mark.parametrize(
    ("before", "now", "rates"),
    [
        ({"published": 10, "acked": 5}, {"published": 30, "acked": 5}, Rates(10.0, 0.0)),
        ({"published": 30, "acked": 5}, {"published": 10, "acked": 6}, Rates(None, 0.5)),  # it was started anew
        ({}, {"published": 10}, Rates(None, None)),
        ({"published": 10}, {}, Rates(None, None)),
    ],
)
def test_rates_are_what_was_counted_between_two_readings(before, now, rates):
    assert rate_between(queue("q", 0, **before)[1], queue("q", 0, **now)[1], 2.0) == rates


def test_one_reading_has_no_rates():
    assert rate_between(None, queue("q", 0)[1], 2.0) is None
    assert rate_between(queue("q", 0)[1], queue("q", 0)[1], 0.0) is None
