"""What a status says beside its conditions, what of it outlasts an outage, and what is worth a write."""

from dataclasses import replace
from datetime import timedelta

import pytest
from verdicts import AWAY, BROKER, CONNECTED, FINE, LATER, NOW, RUNNING, THEN, Story, a_consumer, a_subject, faults

from redrive.elements import Binding, freeze
from redrive.errors import SpecError
from redrive.topology import mark
from redrive_operator.observation import BrokerSeen, MessagesSeen, Observation, Problem, TopologySeen
from redrive_operator.status import patch_of, read_bindings

PLAIN = Binding("shop.events", "orders", "queue", "order.created")
MARKED = mark(Binding("shop.events", "orders", "queue", "order.#", freeze({"n": 1, "x-match": "any"})), "shop/orders")


def bound(*bindings, problem=None):
    return replace(FINE, topology=TopologySeen(problem, bindings=bindings))


def counted(**counts):
    return replace(FINE, messages=MessagesSeen(**counts))


def test_a_status_is_complete():
    story = Story(consumer=a_consumer(retry={"maxAttempts": 3, "backoff": {"strategy": "Fixed", "base": "10s"}}))
    story.see(
        replace(FINE, topology=TopologySeen(missing=("no a",), bindings=(PLAIN,)), messages=MessagesSeen(5, 2, 0))
    )
    del story.status["conditions"]
    assert story.status == {
        "observedGeneration": 1,
        "queues": {"work": "orders", "dead": "redrive.dead.orders"},
        "schedule": "3 attempts, after 10s ×2; at most 20s in all",
        "broker": {
            "clusterName": "rabbit@one",
            "version": "4.3.6",
            "vhost": "/",
            "mode": "Secret",
            "user": "shop",
            "management": True,
            "missing": ["no a"],
        },
        "bindings": [{"exchange": "shop.events", "routingKey": "order.created"}],
        "messages": {"ready": 5, "unacked": 2, "dead": 0, "observedTime": THEN},
        "workers": {"wanted": 2, "available": 2, "unplaced": 0},
        "replicas": 2,
        "selector": "redrive.dev/consumer=orders",
    }


def test_the_status_of_a_connection_is_complete():
    story = Story(kind="BrokerConnection")
    story.see(CONNECTED)
    del story.status["conditions"]
    assert story.status == {
        "observedGeneration": 1,
        "clusterName": "rabbit@one",
        "version": "4.3.6",
        "management": True,
        "consumers": 3,
    }


def test_an_outage_makes_nobody_forget_what_was_known():
    story = Story()
    story.see(
        replace(FINE, topology=TopologySeen(missing=("no a",), bindings=(PLAIN,)), messages=MessagesSeen(5, 2, 0))
    )
    known = {name: value for name, value in story.status.items() if name != "conditions"}
    story.see(Observation(AWAY), now=LATER)
    assert {name: value for name, value in story.status.items() if name != "conditions"} == known


def test_what_was_known_of_another_vhost_is_forgotten():
    story = Story()
    story.see(FINE)
    story.see(Observation(BrokerSeen("other", "Secret", problem=Problem("Unreachable", "nobody answers"))))
    assert story.status["broker"] == {"vhost": "other", "mode": "Secret"}


def test_an_outage_makes_nobody_forget_what_was_known_of_a_connection():
    story = Story(kind="BrokerConnection")
    story.see(CONNECTED)
    story.see(replace(CONNECTED, problem=Problem("Unreachable", "nobody answers"), version="", consumers=4))
    assert (story.status["version"], story.status["consumers"]) == ("4.3.6", 4)


@pytest.mark.parametrize("kind", ["RetryingConsumer", "BrokerConnection"])
def test_a_spec_that_cannot_be_used_leaves_the_rest_of_the_status(kind):
    story = Story(kind=kind)
    story.see(FINE if kind == "RetryingConsumer" else CONNECTED)
    known = {name: value for name, value in story.status.items() if name != "conditions"}
    story.see(SpecError("spec.replicas", "must be at most 1000"))
    assert {name: value for name, value in story.status.items() if name != "conditions"} == known


def test_a_consumer_that_runs_elsewhere_has_no_replicas():
    story = Story()
    story.see(FINE)
    story.consumer = a_consumer(worker=None)
    story.see(replace(FINE, workers=None))
    assert story.status["replicas"] == 0
    assert "workers" not in story.status
    assert "selector" not in story.status


def test_bindings_are_read_back_as_they_were_written_with_their_marks():
    story = Story()
    story.see(bound(PLAIN, MARKED))
    assert read_bindings(story.status, "orders") == (PLAIN, MARKED)


def test_bindings_that_are_gone_are_forgotten():
    story = Story()
    story.see(bound(PLAIN, MARKED))
    story.see(bound(PLAIN))
    assert read_bindings(story.status, "orders") == (PLAIN,)
    story.see(FINE)
    assert read_bindings(story.status, "orders") == ()


def test_bindings_survive_a_topology_with_a_problem():
    story = Story()
    story.see(bound(PLAIN, MARKED))
    story.see(bound(problem=Problem("QueueRefused", "a stream")))
    assert read_bindings(story.status, "orders") == (PLAIN, MARKED)


@pytest.mark.parametrize(
    "arguments",
    [{"flag": True}, {"share": 0.5}, {"text": "x" * 1025}, {f"n{n}": n for n in range(34)}, {"half": "\ud800"}],
    ids=lambda arguments: next(iter(arguments)),
)
def test_a_binding_that_cannot_be_recorded_exactly_is_left_out(arguments):
    story = Story()
    story.see(bound(replace(PLAIN, arguments=freeze(arguments)), PLAIN))
    assert read_bindings(story.status, "orders") == (PLAIN,)
    assert faults(story.status) == []


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "shop.events",
        {},
        {"exchange": ""},
        {"exchange": 7},
        {"exchange": "redrive.delivery"},
        {"exchange": "x" * 256},
        {"exchange": "a", "routingKey": None},
        {"exchange": "a", "routingKey": "ü" * 128},
        {"exchange": "a", "arguments": ["x-match"]},
        {"exchange": "a", "arguments": {"x": True}},
        {"exchange": "a", "arguments": {"x": None}},
        {"exchange": "a", "arguments": {"x": [1]}},
        {"exchange": "a", "arguments": {"x": 2**63}},
        {"exchange": "a", "arguments": {7: "x"}},
        {"exchange": "\udfff"},
    ],
)
def test_what_no_binding_is_recorded_as_is_not_read_as_one(entry):
    assert read_bindings({"bindings": [entry, {"exchange": "a"}]}, "orders") == (Binding("a", "orders", "queue", ""),)


@pytest.mark.parametrize("status", [None, [], "x", {}, {"bindings": None}, {"bindings": {}}, {"bindings": "ab"}])
def test_a_status_without_bindings_has_none(status):
    assert read_bindings(status, "orders") == ()


def test_a_condition_is_true_only_of_the_generation_that_was_judged():
    story = Story()
    story.see(FINE)
    assert a_subject(story.status, generation=1).was_found("TopologyReady")
    assert not a_subject(story.status, generation=2).was_found("TopologyReady")
    assert not a_subject(story.status, generation=1).was_found("Paused")
    assert not a_subject(generation=1).was_found("TopologyReady")


@pytest.mark.parametrize(
    ("before", "after", "minutes", "written"),
    [
        ({"ready": 0}, {"ready": 1}, 0, True),
        ({"ready": 1}, {"ready": 0}, 0, True),
        ({"ready": 5}, {"ready": 15}, 9, False),
        ({"ready": 5}, {"ready": 16}, 0, True),
        ({"ready": 16}, {"ready": 5}, 0, True),
        ({"ready": 1000}, {"ready": 1100}, 0, False),
        ({"ready": 1000}, {"ready": 1101}, 0, True),
        ({"ready": 5}, {"ready": 6}, 10, True),
        ({"ready": 5}, {"ready": 5}, 600, False),
        ({"ready": 5, "dead": 0}, {"ready": 5, "dead": 1}, 0, True),
        ({"ready": 5}, {"ready": 5, "unacked": 0}, 0, True),
        ({"ready": 5, "dead": 2}, {"ready": 5}, 1, False),
        ({"ready": 5}, {}, 600, False),
    ],
)
def test_counts_are_written_when_they_change_much_or_are_old(before, after, minutes, written):
    story = Story()
    story.see(counted(**before))
    story.see(counted(**after), now=NOW + timedelta(minutes=minutes))
    assert (story.patch is not None) is written


def test_counts_that_are_written_say_when_they_were_counted():
    story = Story()
    story.see(counted(ready=0))
    story.see(counted(ready=7), now=LATER)
    assert story.patch == {"messages": {"ready": 7, "observedTime": "2026-05-01T12:05:00Z"}}


def since(story):
    """Since when it is above its threshold, and has dead letters."""
    return story.status["messages"].get("aboveSince"), story.status["messages"].get("deadSince")


def test_queue_is_above_its_threshold_since_it_was_first_seen_to_be():
    story = Story()
    story.see(counted(ready=40, dead=0))
    assert since(story) == (None, None)
    story.see(counted(ready=41, dead=0), now=LATER)
    assert story.patch["messages"]["aboveSince"] == "2026-05-01T12:05:00Z", "it would be forgotten in a restart"
    story.see(counted(ready=500, dead=0), now=LATER + timedelta(hours=1))
    assert since(story) == ("2026-05-01T12:05:00Z", None)
    story.see(counted(ready=40, dead=0), now=LATER + timedelta(hours=2))
    assert since(story) == (None, None)
    assert story.patch["messages"]["aboveSince"] is None


def test_dead_letters_wait_since_there_was_none():
    story = Story()
    story.see(counted(ready=0, dead=1))
    story.see(counted(ready=0, dead=2000), now=LATER)
    assert since(story) == (None, THEN)
    story.see(counted(ready=0, dead=0), now=LATER)
    assert since(story) == (None, None)


def test_what_lasts_goes_on_while_nobody_can_count():
    story = Story()
    story.see(counted(ready=41, dead=1))
    story.see(counted(), now=LATER)
    assert since(story) == (THEN, THEN)
    story.see(counted(ready=41), now=LATER)
    assert since(story) == (THEN, THEN)


def test_threshold_of_an_alarm_that_is_off_is_never_exceeded():
    story = Story(consumer=a_consumer(alarms={"queueSize": {"enabled": False}}))
    story.see(counted(ready=41, dead=0))
    assert since(story) == (None, None)


def test_small_changes_of_counts_do_not_travel_with_others():
    story = Story()
    story.see(counted(ready=7, unacked=1))
    story.see(replace(counted(ready=8, unacked=1), workers=replace(RUNNING, selector="a=b")), now=LATER)
    assert story.patch == {"selector": "a=b"}


def test_a_patch_removes_what_is_no_longer_said():
    story = Story()
    story.see(replace(FINE, topology=TopologySeen(missing=("no a",), bindings=(PLAIN,))))
    story.see(FINE)
    assert story.patch["bindings"] is None
    assert story.patch["broker"] == {"missing": None}


@pytest.mark.parametrize("old", [None, "nonsense", [1], 7])
def test_a_status_that_is_none_is_written_whole(old):
    assert patch_of(old, {"replicas": 1}) == {"replicas": 1}


def test_an_object_takes_the_place_of_what_is_none():
    assert patch_of({"workers": "two"}, {"workers": {"wanted": 2}}) == {"workers": {"wanted": 2}}


@pytest.mark.parametrize("old", [True, 1.0, "1"])
def test_what_python_takes_for_a_number_does_not_pass_for_one(old):
    assert patch_of({"workers": {"wanted": old}}, {"workers": {"wanted": 1}}) == {"workers": {"wanted": 1}}
    assert patch_of({"messages": {"ready": old}}, {"messages": {"ready": 1}}) == {"messages": {"ready": 1}}


def test_a_user_that_is_not_known_is_not_said():
    story = Story()
    story.see(replace(FINE, broker=replace(BROKER, user="", version="")))
    assert "user" not in story.status["broker"]
    assert "version" not in story.status["broker"]
