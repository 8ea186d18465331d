"""All Redrives of an operator: who was seen is worked on, in a thread of its own, and nobody holds up another."""

import threading
import time
from types import SimpleNamespace

import pytest
from redrive_bed import redrive_body

from redrive_operator import engine as engine_module
from redrive_operator.metrics import Metrics
from redrive_operator.redriving import redriving as module
from redrive_operator.redriving.redriving import Redriving
from redrive_operator.subject import Key
from redrive_operator.turns import Turn

PATIENCE = 10.0


class Desks:
    """Stands for every desk: notes the turns of each consumer, and does in them what the test says."""

    def __init__(self):
        self.turns = []
        self.doing = {}
        self.changed = threading.Condition()

    def __call__(self, consumer, _tools, _book, _ways, stopping):
        self.stopping = stopping
        return SimpleNamespace(turn=lambda: self._turn(consumer))

    def _turn(self, consumer):
        with self.changed:
            self.turns.append(consumer.name)
            self.changed.notify_all()
        return self.doing.get(consumer.name, lambda: None)()

    def wait(self, *names):
        with self.changed:
            assert self.changed.wait_for(lambda: sorted(self.turns) == sorted(names), PATIENCE), self.turns


@pytest.fixture
def desks(monkeypatch):
    made = Desks()
    monkeypatch.setattr(module, "RedriveDesk", made)
    monkeypatch.setattr(engine_module, "GATHER_SECONDS", 0.01)
    monkeypatch.setattr(engine_module, "REST_SECONDS", 0.01)
    return made


@pytest.fixture
def redriving(desks):
    tools = SimpleNamespace(
        settings=SimpleNamespace(interval=3600.0), clock=time.monotonic, metrics=Metrics(), kube=None, registry=None
    )
    made = Redriving(None, tools)
    made.start()
    yield made
    assert made.close(PATIENCE)


def body(name="fix", version=1, **more):
    return redrive_body(name, version=str(version), **more)


def test_redrive_that_was_seen_has_its_turn_and_is_then_left_alone(redriving, desks):
    redriving.seen(body())
    desks.wait("orders")
    redriving.seen(body())
    redriving.seen(body("other", consumer="bills"))
    desks.wait("orders", "bills")


def test_change_that_is_seen_during_the_last_turn_is_not_forgotten(redriving, desks):
    desks.doing["orders"] = lambda: (desks.doing.pop("orders"), redriving.seen(body(version=2)), None)[-1]
    redriving.seen(body())
    desks.wait("orders", "orders")


def test_redrive_that_takes_long_holds_up_no_other(redriving, desks):
    gate = threading.Event()
    desks.doing["orders"] = lambda: (gate.wait(PATIENCE), None)[-1]
    redriving.seen(body())
    desks.wait("orders")
    redriving.seen(body("other", consumer="bills"))
    desks.wait("orders", "bills")
    gate.set()


def test_turn_says_when_the_next_is(redriving, desks):
    turns = iter([Turn(reached=True, patience=0.0), Turn(reached=True, patience=0.01)])
    desks.doing["orders"] = lambda: next(turns, None)
    redriving.seen(body())
    desks.wait("orders", "orders", "orders")


def test_consumer_that_has_redrives_is_woken_and_another_is_not(redriving, desks):
    redriving.seen(body())
    desks.wait("orders")
    redriving.wake(Key("shop", "orders"))
    redriving.wake(Key("shop", "bills"))
    desks.wait("orders", "orders")


def test_list_takes_away_what_the_watch_did_not(redriving, desks):
    redriving.seen(body())
    desks.wait("orders")
    (known,) = redriving.watched.known()
    redriving.watched.found(known.key, known.uid, None)
    assert list(redriving.watched.known()) == []


def test_end_of_the_operator_is_told_to_whoever_works(redriving, desks):
    desks.doing["orders"] = lambda: (desks.stopping.wait(PATIENCE), None)[-1]
    redriving.seen(body())
    desks.wait("orders")
    assert redriving.close(PATIENCE)
