"""Large messages: a worker holds no more of them than it must, whatever became of the one before."""

import pytest
from samples import worker_config

from redrive.outcome import Succeeded
from redrive.properties import Properties
from redrive.testing.vhost import Stored

from .stage import Stage

SIZE = 8 * 1024 * 1024
AHEAD = 2  # of such, in 16 MiB
MOST = 1 + 8 + AHEAD  # a consumer counts from none, whatever the one before it was given


@pytest.fixture
def stage():
    return Stage(worker_config(concurrency=8))


def publish_large(stage, count, *, redelivered=False):
    """Publish many that share their bytes, or the test would be what it is about."""
    body = bytes(SIZE)
    for number in range(count):
        stage.vhost.arrive(Stored("", "orders", body, Properties(message_id=f"large {number}"), redelivered))
    stage.loop.settle()


def run_small(stage, count=300):
    """Have it run so many small ones that it takes as many ahead as it ever does."""
    for number in range(count):
        stage.publish(f"small {number}")
        stage.succeed()
        stage.loop.advance(0.01)
    assert prefetches(stage)[-1] > 100


def prefetches(stage):
    """List all that were asked for, in order."""
    return [prefetch for [prefetch] in stage.notes.of("consuming")]


def most_held(stage):
    """Say how many it had at once."""
    held, most = 0, 0
    for kind, *_ in stage.notes.said:
        held += {"received": 1, "settled": -1}.get(kind, 0)
        most = max(most, held)
    return most


def test_first_large_messages_are_as_many_as_run_at_once_and_a_few(stage):
    publish_large(stage, 50)
    assert most_held(stage) <= MOST


def test_worker_takes_one_message_and_soon_as_many_as_it_ever_does(stage):
    run_small(stage)
    assert prefetches(stage)[:2] == [1, 15]  # the first is in its hands beside these
    assert len(prefetches(stage)) == 3


def test_handlers_that_take_long_all_have_one_before_the_first_has_ended(stage):
    stage.publish(*(f"slow {number}" for number in range(20)))
    assert len(stage.runner.running) == 8


@pytest.mark.parametrize("concurrency", [1, 2, 3, 8])
def test_slow_handlers_soon_hold_nothing_that_they_do_not_run(concurrency):
    stage = Stage(worker_config(concurrency=concurrency))
    stage.publish(*(f"slow {number}" for number in range(200)))
    for _ in range(10):
        stage.loop.advance(60)
        stage.runner.end(Succeeded(), seconds=60.0)
        stage.loop.settle()
    assert (stage.runtime.held, len(stage.runner.running)) == (concurrency, concurrency)


def test_first_message_that_comes_back_does_not_keep_the_others_from_running_side_by_side(stage):
    stage.consumer.stop()
    stage.publish("odd", redelivered=True)
    stage.publish(*(f"slow {number}" for number in range(30)))
    stage.start()
    assert len(stage.runner.running) == 8


def test_large_messages_that_have_ended_a_worker_come_to_the_next_one_by_one(stage):
    stage.consumer.stop()
    publish_large(stage, 40, redelivered=True)
    stage.start()
    rounds = 0
    while stage.waiting or stage.unacked:
        stage.succeed()
        rounds += 1
        assert rounds < 200
    assert most_held(stage) == 1
    assert len(stage.notes.of("settled")) == 80  # each went round, and was done
    assert stage.dead == []


def test_fewer_large_messages_are_taken_at_once_also_while_suspects_are_about(stage):
    run_small(stage)
    stage.refuse("")  # so that it cannot go round
    publish_large(stage, 1, redelivered=True)
    assert prefetches(stage)[-1] == 8 + AHEAD
    stage.accept()
    stage.loop.advance(31)
    stage.succeed()
    assert (stage.dead, stage.waiting, stage.unacked) == ([], [], [])


def test_large_messages_that_come_back_are_nobodys_crash_while_fewer_are_taken(stage):
    run_small(stage)
    publish_large(stage, 300, redelivered=True)
    for _ in range(700):
        stage.succeed()
    stage.loop.advance(10)
    assert (stage.dead, stage.waiting, stage.unacked, stage.vhost.sleeping) == ([], [], [], 0)


@pytest.mark.parametrize("moment", range(12))
def test_worker_that_stops_while_it_goes_over_to_fewer_takes_nothing_more(stage, moment):
    run_small(stage)
    stage.vhost.arrive(Stored("", "orders", bytes(SIZE), Properties(message_id="odd"), redelivered=True))
    for _ in range(moment):
        stage.loop.turn()
    stage.drain()
    stage.publish("later")
    stage.loop.advance(10)
    assert stage.exit_codes == [0]
    assert sorted(stage.waiting) == ["later", "odd"]


def test_large_message_that_comes_among_small_ones_lowers_the_prefetch_at_once(stage):
    run_small(stage)
    publish_large(stage, 1)
    assert prefetches(stage)[-1] == 8 + AHEAD


def test_as_many_run_as_can_however_large_the_first_was():
    stage = Stage(worker_config(concurrency=4))
    body = bytes(17 * 1024 * 1024)  # more than is ever held ahead
    for number in range(12):
        stage.vhost.arrive(Stored("", "orders", body, Properties(message_id=f"huge {number}")))
    stage.loop.settle()
    seen = []
    for _ in range(8):
        seen.append(len(stage.runner.running))
        stage.runner.end(Succeeded(), stage.runner.running_ids()[0], seconds=2.0)
        stage.loop.advance(2)
    assert seen == [4] * 8
