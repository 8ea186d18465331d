"""Making an in-memory broker: of a policy, or of a manifest."""

import doctest
import json
import re
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest

from redrive.errors import SpecError
from redrive.handler import HandlerError
from redrive.testing import InMemoryBroker

from .handlers import fail, succeed

ROOT = Path(__file__).parents[3]
ORDERS = ROOT / "examples" / "orders"


@pytest.mark.parametrize("name", ["redrive.testing", "redrive.testing.broker"])
def test_examples_in_the_code_are_true(name):
    done = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0


def test_examples_in_the_docs_are_true():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)
    ran = 0
    for block in blocks:
        scope = {}
        exec(block, scope)  # noqa: S102 - our own
        for name in [name for name in scope if name.startswith("test_")]:
            scope[name]()
            ran += 1
    assert ran == 3


# The policy.


def test_policy_is_that_of_a_manifest_with_its_defaults():
    broker = InMemoryBroker(fail, random=lambda: 1.0)
    broker.publish("m")
    runs = broker.run_until_idle()
    assert [run.delay.total_seconds() for run in runs[:-1]] == [2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert (runs[-1].outcome, runs[-1].reason) == ("dead", "Exhausted")


def test_wrong_policy_names_its_field_as_in_a_manifest():
    with pytest.raises(SpecError) as error:
        InMemoryBroker(fail, retry={"maxAttempts": 0})
    assert str(error.value) == "spec.retry.maxAttempts: must be at least 1, got 0"


def test_handler_that_cannot_be_used_is_refused_at_once():
    with pytest.raises(HandlerError, match=r"the handler .*test_making:.*must take \(body\)"):
        InMemoryBroker(lambda: None)


def test_jitter_is_the_same_every_time():
    def delays(**options):
        broker = InMemoryBroker(fail, **options)
        broker.publish("m")
        return [run.delay for run in broker.run_until_idle()]

    assert delays() == delays()
    assert len(set(delays())) > 5
    assert delays() != delays(random=lambda: 0.5)


# Manifests.


def test_manifest_gives_policy_and_handler(monkeypatch):
    monkeypatch.syspath_prepend(ORDERS)
    broker = InMemoryBroker.from_manifest(ORDERS / "orders.yaml")
    broker.publish({"number": 7, "succeeds_on": 3})
    runs = broker.run_until_idle()
    assert [(run.outcome, run.delay and run.delay.total_seconds()) for run in runs] == [
        ("retry", 1),
        ("retry", 2),
        ("done", None),
    ]
    assert runs[0].error_type == "orders.PaymentDown"


def test_manifest_may_be_json_and_have_another_handler(tmp_path):
    raw = {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": {"name": "orders"},
        "spec": {"broker": {"secretRef": {"name": "rabbitmq"}}, "deadLetter": {"retention": "1h"}},
    }
    file = tmp_path / "orders.json"
    file.write_text(json.dumps(raw))
    for manifest in (file, str(file), raw):
        broker = InMemoryBroker.from_manifest(manifest, handle=fail, random=lambda: 0.0)
        broker.publish("m")
        broker.run_until_idle()
        broker.advance(timedelta(minutes=59))
        assert len(broker.dead_letters) == 1
        broker.advance(timedelta(minutes=1))
        assert broker.dead_letters == []


def test_manifest_of_a_program_needs_a_function_that_stands_for_it():
    manifest = ROOT / "examples" / "command.yaml"
    with pytest.raises(HandlerError, match="names no Python handler"):
        InMemoryBroker.from_manifest(manifest)
    broker = InMemoryBroker.from_manifest(manifest, handle=succeed)
    broker.publish("m")
    assert broker.run_once().outcome == "done"


def test_manifest_without_a_consumer_is_refused():
    with pytest.raises(SpecError, match="must have one RetryingConsumer, and has 0"):
        InMemoryBroker.from_manifest(ROOT / "examples" / "brokerconnection.yaml")
