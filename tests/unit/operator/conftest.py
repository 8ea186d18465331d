"""An engine that is started and stopped again, for the tests of it."""

import time

import pytest
from engine_bed import PATIENCE, Even, Work

from redrive_operator import engine as module
from redrive_operator.engine import Engine


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def start(work, monkeypatch):
    """Start an engine that is in a hurry, and whose interval nobody lives to see, unless it is given."""
    monkeypatch.setattr(module, "GATHER_SECONDS", 0.01)
    monkeypatch.setattr(module, "REST_SECONDS", 0.01)
    monkeypatch.setattr(module, "BACKOFF_SECONDS", (0.03, 0.06, 0.12))
    started = []

    def start(*, interval=3600.0, threads=2, **more):
        engine = Engine(work, interval=interval, threads=threads, clock=time.monotonic, chance=Even(), **more)
        started.append(engine)
        engine.start()
        return engine

    yield start
    for engine in started:
        assert engine.stop(PATIENCE)
