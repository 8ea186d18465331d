"""What a worker held of a queue that was deleted is nowhere else, least of all when the channel is gone too."""

import pytest

from redrive.outcome import Rejected
from redrive.testing.memory import TURNS_TO_PAUSE

from .stage import FULL, Stage, make_stored


@pytest.fixture
def stage():
    return Stage()


def wait_for_others(stage):
    """Have a suspect wait until others have ended."""
    stage.publish("a", "b")
    stage.publish("odd", redrive_suspect=True)
    assert stage.runner.running_ids() == ["a", "b"]


def lose_queue_and_channel(stage):
    """Have the queue deleted and the connection break, before anything else happens."""
    session = stage.consumer.session
    stage.consumer.cancel(takes_back=False)
    session.is_open = False
    stage.runtime.lost(session, "the connection broke")


def assert_each_is_done(stage, *names):
    for _ in range(5):
        stage.loop.advance(31)
        stage.succeed()
    assert sorted(name for name, kind in stage.notes.of("settled") if kind == "Done") == sorted(names)
    assert (stage.dead, stage.waiting, stage.vhost.sleeping) == ([], [], 0)


def test_suspect_that_waits_to_be_alone_is_sent_on_when_its_queue_and_then_its_channel_are_gone(stage):
    wait_for_others(stage)
    stage.lose(stage.delete_queue())
    assert stage.vhost.sleeping == 1  # at once: whoever runs may kill us
    stage.connect()
    assert_each_is_done(stage, "a", "b", "odd")


@pytest.mark.parametrize("turns", range(TURNS_TO_PAUSE + 6))
def test_suspect_of_a_deleted_queue_is_not_lost_with_its_channel_at_any_moment(stage, turns):
    stage.vhost.arrive(make_stored("odd", redrive_suspect=True))
    for _ in range(turns):
        stage.loop.turn()
    lose_queue_and_channel(stage)
    stage.loop.settle()
    stage.connect()
    assert_each_is_done(stage, "odd")


def test_suspect_of_a_deleted_queue_is_sent_on_when_the_broker_takes_it(stage):
    wait_for_others(stage)
    stage.vhost.refusing = FULL
    stage.lose(stage.delete_queue())
    stage.succeed()
    stage.connect()
    stage.accept()
    assert_each_is_done(stage, "a", "b", "odd")


def test_suspect_of_a_deleted_queue_is_sent_on_once_by_a_worker_that_stops(stage):
    stage.publish("a")
    stage.vhost.arrive(make_stored("odd", redrive_suspect=True))
    for _ in range(3):  # it is delivered, and the pause is not agreed to yet
        stage.loop.turn()
    lose_queue_and_channel(stage)
    stage.runtime.drain()
    stage.loop.settle()
    stage.succeed("a")
    assert stage.exit_codes == [0]
    assert stage.vhost.sleeping + len(stage.waiting) == 1


def test_suspect_that_the_broker_took_back_after_all_is_not_accused_when_it_comes_again(stage):
    wait_for_others(stage)
    session = stage.consumer.session
    stage.cancel(takes_back=True)
    stage.lose(session)
    stage.connect()
    for _ in range(5):
        stage.loop.advance(31)
        stage.succeed()
    assert stage.dead == []
    assert (stage.waiting, stage.vhost.sleeping, stage.unacked) == ([], 0, [])
    assert all(alone for name, _, alone, _ in stage.runner.began if name == "odd")


@pytest.mark.parametrize("loses_channel", [True, False])
def test_no_suspect_runs_while_the_broker_refuses_what_only_the_worker_has(stage, loses_channel):
    stage.publish("a")
    session = stage.delete_queue()
    if loses_channel:
        stage.lose(session)
    stage.refuse("redrive.dead")
    stage.end(Rejected("never"), "a")
    stage.connect()
    stage.publish("odd", redrive_suspect=True)
    stage.publish("b")
    stage.loop.advance(60)
    assert [name for name, *_ in stage.runner.began] == ["a", "b"]
    stage.succeed("b")
    stage.accept()
    stage.loop.advance(40)
    assert ([name for name, _ in stage.dead], stage.runner.running_ids()) == (["a"], ["odd"])


def test_no_suspect_runs_beside_what_waits_and_only_the_worker_has(stage):
    stage.publish("a", "b", "c")
    assert stage.runner.running_ids() == ["a", "b"]
    stage.delete_queue()
    stage.connect()
    stage.publish("odd", redrive_suspect=True)
    stage.succeed("a", "b")
    assert stage.runner.running_ids() == ["c"]
    stage.succeed("c")
    stage.loop.advance(10)
    assert stage.runner.running_ids() == ["odd"]


def test_suspects_do_not_run_round_while_one_runs_that_came_to_empty_hands_and_lost_its_queue(stage):
    stage.publish("first", redrive_suspect=True)
    stage.succeed("first")
    stage.publish("odd", redrive_suspect=True)
    stage.delete_queue()
    stage.connect()
    stage.publish("odder", redrive_suspect=True)
    stage.loop.advance(10)
    assert stage.runner.running_ids() == ["odd"]
    assert len([kind for _, kind in stage.notes.of("settled") if kind == "GiveBack"]) < 10
    stage.succeed("odd")
    stage.loop.advance(5)
    assert stage.runner.running_ids() == ["odder"]


def test_worker_that_stops_waits_for_what_only_it_has_and_the_broker_refuses(stage):
    stage.publish("a")
    stage.lose(stage.delete_queue())
    stage.refuse("redrive.retry")
    stage.fail("a")
    stage.drain()
    assert stage.exit_codes == []
    stage.accept()
    stage.loop.advance(2)
    assert (stage.vhost.sleeping, stage.exit_codes) == (1, [0])


def test_worker_that_stops_does_not_wait_for_what_has_come_again(stage):
    stage.publish("a")
    session = stage.consumer.session
    stage.cancel(takes_back=True)
    stage.lose(session)
    stage.connect()
    stage.succeed("a")
    stage.drain()
    assert (stage.exit_codes, stage.waiting) == ([0], [])
