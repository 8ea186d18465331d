"""What is said of a consumer before it runs."""

from pathlib import Path

import pytest
import yaml

from redrive.spec import parse_consumer
from redrive.workshop import WITHOUT_MANAGEMENT
from redrive_cli.broker_flags import read_flags
from redrive_cli.introduction import say_facts, say_missing, say_title
from redrive_cli.manifests import Manifest
from redrive_cli.preparing import Prepared

CONSUMER = """
apiVersion: redrive.dev/v1alpha1
kind: RetryingConsumer
metadata: {name: orders, namespace: shop}
spec:
  broker: {secretRef: {name: rabbitmq}, vhost: blue}
  queue: {name: orders}
  retry: {maxAttempts: 3, backoff: {strategy: Fixed, base: 4s, jitter: None}}
  worker: {image: shop/orders, python: {handler: "shop.orders:handle"}}
"""
ADDRESS = read_flags("amqp://me:hunter2@rabbit", "http://rabbit", vhost="blue")
ALONE = read_flags("amqp://me:hunter2@rabbit", None, vhost="blue")


def facts(*, address=ADDRESS, workers=1, ignored=(), missing=(), **spec):
    raw = yaml.safe_load(CONSUMER)
    raw["spec"].update(spec)
    manifest = Manifest(parse_consumer(raw), ignored, Path("/shop"))
    return list(say_facts(manifest, address, Prepared("4.3.6", 3, missing, None), workers=workers))


def test_title_says_who_runs_where():
    consumer = parse_consumer(yaml.safe_load(CONSUMER))
    title = say_title(consumer, ADDRESS, Prepared("4.3.6", 3, (), None))
    assert title == "shop/orders on RabbitMQ 4.3.6 at rabbit:5672"


def test_facts_are_those_that_matter_before_it_runs():
    assert facts() == [
        ("vhost", "blue (by spec.broker.vhost)"),
        ("queue", "orders"),
        ("schedule", "3 attempts, after 4s ×2; at most 8s in all"),
        ("dead", "redrive.dead.orders, kept for 14 days"),
        ("runs", "shop.orders:handle, mode Process; 1 worker, one message at a time"),
    ]


@pytest.mark.parametrize(
    ("runner", "words"),
    [
        (
            {"http": {"port": 8000, "path": "/messages"}},
            "posting to http://127.0.0.1:8000/messages, where your server must be running",
        ),
        ({"command": {"args": ["./handle", "a b"]}}, "`./handle 'a b'` for each message"),
    ],
)
def test_runner_is_said_in_words(runner, words):
    said = dict(facts(workers=2, worker={"image": "shop/orders", "concurrency": 4, **runner}))["runs"]
    assert said == f"{words}; 2 workers, 4 messages at a time in each"


def test_consumer_without_a_worker_runs_nothing():
    assert "runs" not in dict(facts(worker=None))


@pytest.mark.parametrize(("retention", "words"), [("Forever", "for ever"), ("36h", "for 36h"), ("48h", "for 2 days")])
def test_retention_is_said_in_days_where_it_has_whole_ones(retention, words):
    assert dict(facts(deadLetter={"retention": retention}))["dead"] == f"redrive.dead.orders, kept {words}"


def test_what_is_ignored_is_named():
    said = facts(ignored=("Secret rabbitmq", "Deployment shop"), paused=True)
    assert said[-2:] == [
        ("ignored", "Secret rabbitmq, Deployment shop"),
        ("ignored", "spec.paused, which is for the cluster"),
    ]


def test_what_is_missing_without_a_management_api_is_one_line():
    [sentence] = [fact for label, fact in facts(missing=WITHOUT_MANAGEMENT) if label == "but"]
    assert sentence.startswith("no management API: nothing keeps other people's policies away from the delays; dead")
    assert dict(facts(address=ALONE))["dead"] == "redrive.dead.orders"


def test_sentences_that_begin_differently_stay_apart():
    assert say_missing(["a: 1", "b", "a: 2", "c: d: e"]) == ["a: 1; 2", "b", "c: d: e"]
