"""Loads of the sweep: everybody has work for a second or two, whatever it runs at once, and memory has room for it."""

from dataclasses import dataclass

import pytest

from bench import worker
from bench.errors import Abandoned
from bench.worker_contenders import CONTENDERS
from bench.worker_figures import Run
from bench.worker_sweep import MOST_BYTES, WORK_SECONDS, plan_sweep

BODIES = (1024, 16_384, 131_072, 2**20)
SMALL = 1024


def loads_of(name):
    return plan_sweep(
        CONTENDERS[name],
        seconds=WORK_SECONDS,
        usual=4,
        handlers=[0, 1, 10],
        bodies=BODIES,
        concurrencies=[1, 4, 16, 64],
    )


def seconds_of(name, load):
    """Say how long a load takes, where all that it may run at once are always busy."""
    contender = CONTENDERS[name]
    by_handlers = load.handler_ms / 1000 / contender.runs_at_once(load.concurrency)
    return load.messages * max(by_handlers, 1 / contender.per_second)


def the_one(name, **wanted):
    (load,) = [each for each in loads_of(name) if all(getattr(each, key) == value for key, value in wanted.items())]
    return load


@pytest.mark.parametrize("name", CONTENDERS)
def test_everybody_has_work_for_a_second_or_two_with_every_handler(name):
    found = {load: seconds_of(name, load) for load in loads_of(name) if load.body_bytes == SMALL}
    assert {load: seconds for load, seconds in found.items() if not 1 <= seconds <= 2} == {}


def test_who_runs_a_hundred_at_once_gets_what_a_hundred_can_do():
    assert the_one("taskiq", handler_ms=10).messages == 25 * the_one("blocking", handler_ms=10).messages


def test_who_is_told_a_concurrency_gets_what_so_many_can_do():
    assert the_one("thread", handler_ms=10, concurrency=64).messages == 9600


@pytest.mark.parametrize("name", CONTENDERS)
def test_no_queue_holds_more_than_there_is_room_for(name):
    assert max(load.messages * load.body_bytes for load in loads_of(name)) <= MOST_BYTES


def test_messages_of_a_mebibyte_are_hundreds():
    assert the_one("thread", body_bytes=2**20).messages == 256


@pytest.mark.parametrize("name", [name for name, contender in CONTENDERS.items() if not contender.concurrent])
def test_who_is_not_told_a_concurrency_is_measured_once_for_each_handler_and_body(name):
    kinds = [(load.handler_ms, load.body_bytes) for load in loads_of(name)]
    assert kinds == [(0, SMALL), (1, SMALL), (10, SMALL), *((0, size) for size in BODIES[1:])]


def test_who_is_told_one_is_measured_with_all_of_them():
    loads = loads_of("process")
    assert [load.concurrency for load in loads if load.handler_ms == 1] == [1, 4, 16, 64]
    assert len(loads) == len(set(loads)) == 15


@dataclass
class SomeBed:
    """A bed that notes when it was emptied, among what was measured in it."""

    told: list
    fresh: bool = True

    def empty(self):
        self.told.append("emptied")


def test_every_load_finds_the_queue_empty_and_a_broker_that_has_counted_before(monkeypatch):
    told = []
    options = worker.parse(["--handler-ms", "0", "--bodies", "1024,65536", "--concurrencies", "4"])

    def measure(bed, contender, load, *, round_):
        told.append((bed.fresh, load.body_bytes))
        if load.body_bytes == SMALL:
            raise Abandoned("it ended")
        return (contender.name, round_)

    run = Run({})
    monkeypatch.setattr(worker, "measure_success", measure)
    worker._sweep(run, SomeBed(told), CONTENDERS["thread"], 0, options)
    assert told == ["emptied", (False, 1024), "emptied", (False, 65_536)]
    assert run.sweep == [("thread", 0)]
    assert run.skipped == ["0 ms, 1,024 bytes, concurrency 4, thread: it ended"]
