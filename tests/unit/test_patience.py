"""What is said of a consumer that its queue does not bear: in time, and in number of pods."""

import pytest

from redrive.elements import Policy, freeze
from redrive.patience import refuse_single_active, warn_of_timeout
from redrive.reading import FoundQueue, Reading
from redrive.spec import parse_consumer

QUORUM = {"x-queue-type": "quorum"}


def consumer(timeout="300s", tries=1, **spec):
    worker = {"image": "shop/orders", "timeout": timeout, "python": {"handler": "shop:handle"}}
    retry = {"immediate": {"tries": tries, "within": "10m"}}
    whole = {"broker": {"secretRef": {"name": "mq"}}, "queue": {"name": "orders"}, "retry": retry, "worker": worker}
    return parse_consumer(
        {
            "apiVersion": "redrive.dev/v1alpha1",
            "kind": "RetryingConsumer",
            "metadata": {"name": "orders", "namespace": "shop"},
            "spec": {key: value for key, value in {**whole, **spec}.items() if value is not None},
        }
    )


def found(policy_ms=None, **arguments):
    named = {**QUORUM, **{f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}}
    policies = [] if policy_ms is None else [Policy("slow", "^orders$", freeze({"consumer-timeout": policy_ms}), 1)]
    queue = FoundQueue("orders", "quorum", arguments=freeze(named))
    return Reading("4.3.6", "rabbit", queues={"orders": queue}, policies=frozenset(policies))


@pytest.mark.parametrize(
    ("asked", "reading"),
    [
        (consumer("29m"), found()),
        (consumer("1h"), found(policy_ms=3_600_001)),
        (consumer("10m", tries=2), found()),
        (consumer(worker=None), found(policy_ms=1)),
    ],
    ids=["below the default", "below a policy", "tries below the default", "no worker"],
)
def test_attempt_that_ends_before_the_broker_loses_patience_is_not_warned_of(asked, reading):
    assert warn_of_timeout(asked, reading) == ()


@pytest.mark.parametrize(
    ("asked", "reading", "says"),
    [
        (consumer("45m"), found(), ("may last 45m", "after 30m", "unless its configuration", "set consumer_timeout")),
        (consumer("30m"), found(), ("may last 30m", "after 30m")),
        (consumer("20m", tries=3), found(), ("may last 30m", "spec.retry.immediate")),
        (consumer("1m"), found(policy_ms=60_000), ("after 1m", "by a policy", "'orders'", "raise consumer-timeout")),
        (consumer("1m"), found(consumer_timeout=1_000), ("after 1s", "argument")),
        (consumer("45m"), Reading("4.3.6", "rabbit"), ("after 30m",)),
    ],
    ids=["default", "as long", "tries", "policy", "argument", "no queue yet"],
)
def test_attempt_that_the_broker_would_cut_short_is_warned_of(asked, reading, says):
    [sentence] = warn_of_timeout(asked, reading)
    assert [part for part in says if part not in sentence] == []
    assert "lower spec.worker.timeout" in sentence


def test_policy_that_waits_for_a_queue_counts_before_it_is_made():
    waiting = Reading("4.3.6", "rabbit", policies=found(policy_ms=1000).policies)
    assert warn_of_timeout(consumer("1m"), waiting)


ALONE = found(single_active_consumer=True)
SCALING = {"minReplicas": 0, "maxReplicas": 3, "messagesPerReplica": 10}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"replicas": 2}, "spec.replicas is 2"),
        ({"scaling": SCALING}, "spec.scaling.maxReplicas is 3"),
        ({"replicas": 1, "scaling": SCALING}, "maxReplicas is 3"),
    ],
)
def test_more_than_one_pod_on_a_single_active_consumer_queue_is_refused(spec, says):
    sentence = refuse_single_active(consumer(**spec), ALONE)
    assert says in sentence
    assert "set it to 1" in sentence


@pytest.mark.parametrize(
    ("asked", "reading"),
    [
        (consumer(replicas=1), ALONE),
        (consumer(replicas=0), ALONE),
        (consumer(replicas=5, scaling={**SCALING, "maxReplicas": 1}), ALONE),
        (consumer(replicas=5), found()),
        (consumer(replicas=5), Reading("4.3.6", "rabbit")),
        (consumer(replicas=5, worker=None), ALONE),
    ],
    ids=["one", "none", "scaled to one", "other queue", "no queue yet", "runs elsewhere"],
)
def test_one_pod_or_another_queue_is_not_refused(asked, reading):
    assert refuse_single_active(asked, reading) is None
