"""How the operator is, to whoever asks: alive while its loop turns and its watch tells, ready when it has begun."""

import asyncio
import time
from http import HTTPStatus
from types import SimpleNamespace

import pytest

from redrive.listener import Request
from redrive_operator.main import LOOP_PATIENCE, Probes
from redrive_operator.metrics import Metrics

OK, UNAVAILABLE = HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE


class Watch:
    """A watch that is stale when the test says so."""

    def __init__(self):
        self.stale = False

    def is_stale(self):
        return self.stale

    def age(self):
        return 321.0


@pytest.fixture
def office():
    return SimpleNamespace(metrics=Metrics(), watching=Watch())


@pytest.fixture
def starting():
    return Probes()


@pytest.fixture
def probes(starting, office):
    starting.office = office
    starting.turned_at = time.monotonic()
    return starting


def ask(probes, path):
    answer = probes.respond(Request("GET", path))
    return answer.status, answer.body.decode()


def test_operator_that_starts_is_alive_and_not_ready(starting):
    assert ask(starting, "/livez")[0] == OK
    status, said = ask(starting, "/readyz")
    assert status == UNAVAILABLE
    assert "starting" in said


def test_operator_that_starts_has_no_metrics_yet(starting):
    assert ask(starting, "/metrics")[0] == UNAVAILABLE


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_operator_that_works_says_so(probes, path):
    assert ask(probes, path)[0] == OK


def test_metrics_are_those_of_the_office(probes, office):
    office.metrics.reconciled("ok")
    assert 'redrive_reconciles_total{result="ok"} 1.0' in ask(probes, "/metrics")[1]


@pytest.mark.parametrize("began", [True, False], ids=["working", "starting"])
def test_operator_whose_loop_does_not_turn_is_dead(probes, office, began):
    probes.office = office if began else None
    probes.turned_at = time.monotonic() - LOOP_PATIENCE - 1
    assert ask(probes, "/livez")[0] == UNAVAILABLE


def test_operator_whose_watch_is_stale_is_dead_and_says_why(probes, office):
    office.watching.stale = True
    status, said = ask(probes, "/livez")
    assert status == UNAVAILABLE
    assert "the watch has missed" in said
    assert "321 s" in said


def test_stale_watch_takes_nothing_from_metrics(probes, office):
    office.watching.stale = True
    assert ask(probes, "/metrics")[0] == OK


def test_other_paths_are_not_found(probes):
    assert ask(probes, "/")[0] == HTTPStatus.NOT_FOUND


def test_beat_notes_that_the_loop_turns(starting):
    async def one_turn():
        beating = asyncio.create_task(starting.beat())
        await asyncio.sleep(0)
        beating.cancel()

    before = time.monotonic()
    asyncio.run(one_turn())
    assert starting.turned_at >= before
