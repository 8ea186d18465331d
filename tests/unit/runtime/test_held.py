"""What a worker says it has in its hands: it is what the broker waits to hear about, wherever in the worker it is."""

import pytest

from redrive.runtime.ports import Refusal

from .stage import Stage


@pytest.fixture
def stage():
    return Stage()


def agrees(stage):
    """Give what is held, after making sure that broker and worker say the same."""
    unacked = len(stage.unacked)
    assert stage.runtime.held == unacked
    return unacked


def test_what_runs_and_what_waits_for_a_handler_is_held(stage):
    names = [f"m{number}" for number in range(stage.config.concurrency + 2)]
    stage.publish(*names)
    assert agrees(stage) == len(names)
    stage.succeed()
    stage.succeed()
    assert agrees(stage) == 0


def test_what_waits_behind_a_suspect_is_held(stage):
    stage.publish("a", "b", "c")
    stage.publish("odd", redrive_suspect=True)
    stage.succeed("a", "b")
    assert stage.runner.running_ids() == ["odd"]
    assert agrees(stage) == 2


def test_what_the_broker_does_not_take_is_held(stage):
    stage.vhost.refusing = Refusal("the queue did not take it")
    stage.publish("a")
    stage.fail()
    stage.loop.advance(600)
    assert stage.runtime.running == 0
    assert agrees(stage) == 1


def test_what_the_broker_has_taken_back_is_not_held(stage):
    stage.publish("a", "b")
    stage.break_connection()
    assert stage.runtime.held == 0
