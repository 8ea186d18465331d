"""What a consumer comes to, worked out from its spec alone."""

from datetime import timedelta

import pytest

from redrive.spec import parse_consumer
from redrive_cli.explaining import amplify, explain, own_queues, say_ladder

BACKOFF = {"strategy": "Exponential", "base": "30s", "max": "300s", "jitter": "Full"}


def consumer(retry=None, **spec):
    body = {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {
            "broker": {"secretRef": {"name": "rabbitmq"}},
            "queue": {"name": "orders"},
            "retry": {"maxAttempts": 6, "backoff": BACKOFF, **(retry or {})},
            "worker": {"image": "shop/orders:1", "python": {"handler": "shop:handle"}},
            **spec,
        },
    }
    return parse_consumer(body)


def worker(**fields):
    return {"image": "shop/orders:1", "python": {"handler": "shop:handle"}, **fields}


@pytest.mark.parametrize(
    ("attempts", "ratio", "extra", "total"),
    [
        (6, 0.5, 2500, 3500),  # 1,000/s · 50 % · 5 retries
        (4, 0.05, 150, 1150),  # 1,000/s · 5 % · 3 retries
        (1, 1.0, 0, 1000),
        (10, 0.0, 0, 1000),
    ],
)
def test_load_of_retries_is_the_plain_product(attempts, ratio, extra, total):
    load = amplify(explain(consumer({"maxAttempts": attempts})).schedule, 1000, ratio)
    assert (load.extra, load.total) == (extra, total)


def test_what_sleeps_at_a_time_is_what_fails_times_how_long_it_sleeps():
    fixed = consumer({"maxAttempts": 3, "backoff": {"strategy": "Fixed", "base": "60s"}})
    [load] = explain(fixed, rate=100, ratios=(0.1,)).loads
    assert load.asleep == 100 * 0.1 * 120


def test_a_wise_consumer_is_warned_of_nothing():
    assert explain(consumer()).warnings == ()


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        (
            consumer({"backoff": {**BACKOFF, "base": "24h", "max": "36h"}}, deadLetter={"retention": "100h"}),
            "longer than its dead letter is then kept (100h)",
        ),
        (consumer(deadLetter={"retention": "24h"}), "what dies on a Friday evening is gone on Monday"),
        (consumer(alarms={"deadLetters": {"enabled": False}}), "the alarm on dead letters is off"),
        (consumer(worker=worker(timeout="31m")), "longer than the broker's consumer timeout (30m"),
        (
            consumer({"immediate": {"tries": 3, "within": "10m"}}, worker=worker(timeout="25m")),
            "one attempt with its 3 tries may last 35m",
        ),
        (consumer({"immediate": {"tries": 2}}, worker=worker(timeout="60s")), "leaves no time for another within 1m"),
        (consumer({"maxDelay": "60s"}), "cuts the delays after attempt 3"),
        (consumer({"maxAttempts": 1}), "the first failure parks a message"),
        (consumer({"backoff": {"strategy": "None"}}), "all 6 attempts come at once"),
        (consumer({"backoff": {**BACKOFF, "base": "1s", "max": "5s"}}), "all 6 attempts are over within 17s"),
        (consumer({"backoff": {**BACKOFF, "jitter": "None"}}), "come back together, each time"),
        (consumer(paused=True), "no worker runs"),
    ],
)
def test_what_a_wise_colleague_would_say_is_said(spec, warned):
    warnings = explain(spec).warnings
    assert any(warned in each for each in warnings), warnings


def test_limits_of_a_broker_and_a_queue_that_are_not_as_usual_are_minded():
    spec = consumer({"maxAttempts": 30}, worker=worker(timeout="40m"))
    warned = explain(spec, consumer_timeout=timedelta(hours=1), delivery_limit=20).warnings
    assert any("30 attempts are more than the queue's delivery limit (20)" in each for each in warned)
    assert not any("consumer timeout" in each for each in warned)


def test_queues_that_will_exist_are_named_and_the_ladder_is_summed_up():
    explained = explain(consumer())
    assert own_queues(explained) == [
        ("redrive.orphans", "sleepers whose queue is gone"),
        ("redrive.dead.orders", "dead letters"),
        ("orders", "work"),
    ]
    assert say_ladder(explained).startswith("45 queues of the delay ladder, redrive.delay.0.1 to redrive.delay.2.15")
    assert len(explained.queues) == 48


def test_rules_are_told_with_their_own_delays():
    rules = [
        {"errorTypes": ["shop.CardDeclined"], "action": "DeadLetter"},
        {"httpStatus": ["429"], "action": "Retry", "backoff": {"strategy": "Fixed", "base": "60s"}},
        {"exitCodes": [75], "action": "Retry"},
    ]
    assert explain(consumer({"rules": rules})).rules == (
        "shop.CardDeclined: parked at once",
        "HTTP 429: 6 attempts, after 1m ×5; at most 5m in all",
        "exit code 75: retried as the rest",
    )
