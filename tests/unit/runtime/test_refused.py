"""What the broker refuses, or says nothing about, stays in a worker's hands, and is in nobody's way."""

import pytest
from samples import worker_config

from redrive.outcome import Rejected
from redrive.properties import Properties
from redrive.runtime.room import MOST_KEPT
from redrive.testing.vhost import Stored

from .stage import FULL, Stage

NEVER = Rejected("never")


def names(count):
    return [f"m{number}" for number in range(count)]


@pytest.fixture
def stage():
    """Give a worker that has had a suspect, takes one message at a time, and cannot park any."""
    stage = Stage()
    stage.publish("first", redrive_suspect=True)
    stage.succeed("first")
    assert stage.runtime._gate.prefetch == 1
    stage.refuse("redrive.dead")
    return stage


def test_refused_message_does_not_keep_away_the_next_of_a_worker_that_takes_one_at_a_time(stage):
    stage.publish("bad")
    stage.end(NEVER, "bad")
    stage.publish("good 1", "good 2")
    assert stage.unacked == ["bad", "good 1"]
    assert stage.runner.running_ids() == ["good 1"]
    stage.succeed()
    assert stage.runner.running_ids() == ["good 2"]


def test_refused_messages_do_not_keep_away_the_next_of_a_worker_that_never_had_a_suspect():
    stage = Stage(worker_config(concurrency=1))
    stage.refuse("redrive.dead")
    stage.publish("bad 1", "bad 2", "good")
    stage.end(NEVER)
    stage.end(NEVER)
    assert stage.runner.running_ids() == ["good"]


def test_refused_messages_are_parked_when_the_broker_takes_them(stage):
    stage.publish(*names(3))
    for _ in range(3):
        stage.end(NEVER)
    stage.accept()
    stage.loop.advance(31)
    assert (sorted(name for name, _ in stage.dead), stage.unacked) == (names(3), [])


def test_worker_whose_hands_are_full_of_refused_messages_takes_no_more(stage):
    stage.publish(*names(2 * MOST_KEPT))
    for _ in range(2 * MOST_KEPT):
        stage.end(NEVER)
    assert stage.runner.running_ids() == []
    assert len(stage.unacked) == MOST_KEPT


def test_worker_whose_hands_were_full_takes_again_when_one_of_the_first_is_parked(stage):
    stage.publish(*names(MOST_KEPT + 1))
    for _ in range(MOST_KEPT):
        stage.end(NEVER)
    assert stage.runner.running_ids() == []
    stage.accept()
    stage.loop.advance(31)
    assert stage.runner.running_ids() == [f"m{MOST_KEPT}"]


def test_large_refused_messages_fill_the_hands_sooner():
    stage = Stage(worker_config(concurrency=2))
    stage.publish("first", redrive_suspect=True)
    stage.succeed("first")
    stage.refuse("redrive.dead")
    for name in ("large 1", "large 2"):
        stage.vhost.arrive(Stored("", "orders", b"x" * 9 * 1024 * 1024, Properties(message_id=name)))
    stage.publish("next")
    stage.end(NEVER)
    assert stage.runner.running_ids() == ["large 2"]
    stage.end(NEVER)
    assert stage.runner.running_ids() == []


def test_refused_message_is_known_again_after_a_connection_that_broke(stage):
    stage.publish("bad", "good")
    stage.end(NEVER)
    stage.succeed("good")
    stage.break_connection()
    stage.connect()
    stage.publish("better")
    assert stage.runner.running_ids() == ["better"]
    stage.accept()
    stage.loop.advance(31)
    assert [name for name, _ in stage.dead] == ["bad"]
    assert [name for name, *_ in stage.runner.began] == ["first", "bad", "good", "better"]


def test_worker_that_stops_takes_nothing_more_because_of_a_refused_message(stage):
    stage.publish("bad")
    stage.drain()
    stage.publish("next")
    stage.end(NEVER, "bad")
    stage.loop.advance(60)
    assert stage.exit_codes == [0]
    assert [name for name, *_ in stage.runner.began] == ["first", "bad"]


# Silence.


def work_off(stage, seconds):
    """Have every handler succeed at once for some seconds, and say which messages ran."""
    for _ in range(seconds):
        stage.succeed()
        stage.loop.advance(1)
    return [name for name, *_ in stage.runner.began]


@pytest.mark.parametrize("odd", [1, 2, 5])
def test_messages_that_come_back_to_a_new_worker_in_an_alarm_keep_nobody_away(odd):
    stage = Stage(worker_config(concurrency=8))
    stage.publisher.connected = False
    stage.publish(*(f"odd {number}" for number in range(odd)), redelivered=True)
    stage.publish(*names(30))
    assert work_off(stage, 30) == names(30)
    stage.publisher.connect()
    stage.loop.advance(1)
    assert len(stage.unacked) <= 1  # those that came back went round, and now run one by one


def test_dead_letter_queue_that_says_nothing_does_not_keep_a_new_worker_from_its_messages():
    stage = Stage(worker_config(concurrency=8))
    stage.silence("redrive.dead")
    stage.publish("old", redrive_expires_at="2025-01-01T00:00:00.000Z")
    stage.publish(*names(30))
    assert work_off(stage, 30) == names(30)
    assert stage.unacked == ["old"]


def test_failures_that_wait_in_an_alarm_do_not_keep_away_the_next_of_a_worker_that_takes_one_at_a_time(stage):
    stage.accept()
    stage.publisher.connected = False
    stage.publish("bad", "good")
    stage.fail("bad")
    assert stage.runner.running_ids() == []
    stage.loop.advance(3)
    assert stage.runner.running_ids() == ["good"]


def test_answer_that_takes_no_longer_than_usual_changes_nothing(stage):
    stage.accept()
    stage.publisher.connected = False
    stage.publish("bad", "good")
    stage.fail("bad")
    stage.loop.advance(0.9)
    assert stage.unacked == ["bad"]


def test_worker_whose_hands_are_full_of_what_waits_takes_no_more_and_settles_it_when_the_alarm_ends():
    stage = Stage(worker_config(concurrency=4))
    stage.publisher.connected = False
    stage.publish(*names(3 * MOST_KEPT))
    for _ in range(300):
        stage.fail()
        stage.loop.advance(1)
    held = len(stage.unacked)
    assert MOST_KEPT <= held < MOST_KEPT + stage.runtime._gate.prefetch
    assert len(stage.runner.began) == held
    stage.publisher.connect()
    stage.loop.advance(1)
    stage.succeed()
    assert "m0" not in stage.unacked


def test_others_are_let_in_beside_what_waits_also_after_a_connection_that_broke_in_the_alarm(stage):
    stage.accept()
    stage.publisher.connected = False
    stage.publish("bad")
    stage.fail("bad")
    stage.loop.advance(1.5)
    stage.break_connection()
    stage.loop.advance(3)
    stage.connect()
    stage.publish("good")
    stage.loop.advance(3)
    assert stage.runner.running_ids() == ["good"]


# Suspects.


def test_worker_holds_one_suspect_and_no_other_beside_it_however_long_the_broker_is_silent(stage):
    """What it held would be accused with it, if it were killed."""
    stage.accept()
    stage.publisher.connected = False
    stage.publish("odd", redrive_suspect=True)
    stage.fail("odd")
    stage.publish(*names(20), redrive_suspect=True)
    stage.loop.advance(120)
    assert stage.unacked == ["odd"]


@pytest.fixture
def keeping(stage):
    """Give a worker that keeps a suspect which it cannot park."""
    stage.publish("bad", redrive_suspect=True)
    stage.end(NEVER, "bad")
    assert stage.unacked == ["bad"]
    return stage


def test_refused_suspect_does_not_keep_innocents_away_when_another_suspect_comes(keeping):
    keeping.publish("odd", redrive_suspect=True)
    keeping.publish("good")
    assert keeping.runner.running_ids() == ["good"]
    assert not keeping.consumer.is_paused


def test_no_suspect_runs_beside_one_that_is_refused_for_its_crash_would_be_put_down_to_both(keeping):
    keeping.publish("odd", redrive_suspect=True)
    keeping.loop.advance(60)
    assert "odd" not in [name for name, *_ in keeping.runner.began]
    assert keeping.unacked == ["bad"]


def test_suspect_that_waits_for_a_refused_one_goes_round_slowly(keeping):
    keeping.publish("odd", redrive_suspect=True)
    keeping.loop.advance(60)
    given_back = [name for name, kind in keeping.notes.of("settled") if kind == "GiveBack"]
    assert 5 <= len(given_back) <= 31


def test_suspect_that_waited_for_a_refused_one_runs_alone_and_accused_of_nothing(keeping):
    keeping.publish("odd", redrive_suspect=True)
    keeping.loop.advance(10)
    keeping.accept()
    keeping.loop.advance(40)
    assert keeping.runner.began[-1] == ("odd", 1, True, ("odd",))
    keeping.succeed("odd")
    assert ([name for name, _ in keeping.dead], keeping.unacked, keeping.vhost.sleeping) == (["bad"], [], 0)


def test_suspect_lets_others_in_when_another_cannot_be_sent_away():
    stage = Stage()
    stage.publish("a")
    stage.vhost.refusing = FULL
    stage.publish("odd", "odder", redrive_suspect=True)
    stage.publish("b")
    stage.succeed("a")
    assert stage.runner.running_ids() == ["b"]
    stage.succeed("b")
    stage.vhost.refusing = None
    for _ in range(4):
        stage.loop.advance(31)
        stage.succeed()
    assert [(name, alone) for name, _, alone, _ in stage.runner.began[2:]] in (
        [("odd", True), ("odder", True)],
        [("odder", True), ("odd", True)],
    )
    assert (stage.dead, stage.unacked, stage.vhost.sleeping) == ([], [], 0)


def test_suspect_that_cannot_be_sent_round_is_left_to_its_queue_slowly_and_keeps_nobody_away(keeping):
    keeping.publish("odd", redrive_suspect=True, blob="x" * 131_000)
    keeping.publish("good")
    assert keeping.runner.running_ids() == ["good"]
    keeping.succeed("good")
    keeping.loop.advance(20)
    assert len([kind for _, kind in keeping.notes.of("settled") if kind == "GiveBack"]) < 15
    keeping.accept()
    keeping.loop.advance(40)
    assert keeping.runner.began[-1] == ("odd", 1, True, ("odd",))
    assert [name for name, _ in keeping.dead] == ["bad"]


def test_suspect_runs_beside_a_dead_letter_about_which_the_broker_is_silent(stage):
    stage.silence("redrive.dead")
    stage.publish("bad")
    stage.end(NEVER, "bad")
    stage.loop.advance(5)
    stage.publish("of a dead worker", redelivered=True)
    stage.publish(*names(2))
    began = []
    for _ in range(5):
        began += stage.runner.running_ids()
        stage.succeed()
        stage.loop.advance(1)
    assert sorted(began) == ["m0", "m1", "of a dead worker"]
    assert stage.unacked == ["bad"]
