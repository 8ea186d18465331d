"""Of two equal messages nobody can say which is which, so none stands for another that nobody has run."""

from dataclasses import replace

import pytest

from redrive.outcome import Crashed

from .stage import Stage, make_stored

TWIN = make_stored("tick", redrive_suspect=True)


@pytest.fixture
def stage():
    """Give a worker that has done and acknowledged a suspect."""
    stage = Stage()
    stage.publish("tick", redrive_suspect=True)
    stage.succeed("tick")
    assert stage.unacked == []
    return stage


def test_twin_of_a_suspect_that_is_done_is_sent_on_when_it_fails_over_a_connection_that_broke(stage):
    stage.vhost.arrive(TWIN)
    stage.loop.settle()
    assert stage.runner.running_ids() == ["tick"]
    stage.break_connection()
    stage.connect()
    assert len(stage.runner.began) == 2  # it goes on
    stage.fail("tick")
    assert (stage.vhost.sleeping, stage.unacked) == (1, [])


def test_twin_that_another_worker_had_is_run_alone_and_accused_of_nothing(stage):
    stage.vhost.arrive(replace(TWIN, redelivered=True))
    stage.loop.settle()
    assert stage.runner.began[1:] == [("tick", 1, True, ("tick",))]
    stage.succeed("tick")
    assert (stage.dead, stage.unacked, stage.waiting, stage.vhost.sleeping) == ([], [], [], 0)


def test_suspect_that_came_back_as_it_was_is_not_lost_when_the_connection_breaks():
    stage = Stage()
    stage.publish("odd", redrive_suspect=True)
    for _ in range(2):  # the first time, its story begins; then it goes round as it was
        stage.end(Crashed("its child died of another", alone=False), "odd")
    assert stage.runner.running_ids() == ["odd"]
    stage.break_connection()
    stage.connect()
    stage.fail("odd")
    assert (stage.vhost.sleeping, stage.unacked) == (1, [])


def test_slow_suspect_that_the_broker_took_back_while_it_ran_is_not_run_again():
    stage = Stage()
    stage.publish("odd", redrive_suspect=True)
    stage.cancel(takes_back=True)
    stage.succeed("odd")  # and acknowledged, which the broker ignores
    stage.loop.advance(1)
    stage.connect()
    assert (stage.unacked, stage.waiting, len(stage.runner.began)) == ([], [], 1)


def test_suspect_whose_retry_was_confirmed_while_its_delivery_was_gone_is_not_run_again():
    stage = Stage()
    stage.publish("odd", redrive_suspect=True)
    stage.publisher.connected = False
    stage.fail("odd")
    stage.break_connection()
    stage.publisher.connect()
    stage.loop.settle()
    stage.connect()
    assert (stage.unacked, stage.waiting, stage.vhost.sleeping) == ([], [], 1)
    assert len(stage.runner.began) == 1
