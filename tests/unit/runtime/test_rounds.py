"""What goes round is never on its way to a worker whose taking is about to end: it would come back as redelivered."""

import pytest
from samples import worker_config

from redrive.outcome import Crashed, Succeeded

from .stage import Stage

BROKEN = Crashed("the server closed the connection", alone=False)


class SlowPauses:
    """A consumer whose pauses begin for good when the test says so, unless it is resumed before."""

    def __init__(self, stage, monkeypatch):
        self._pause, self._resume, self.calls = stage.consumer.pause, stage.consumer.resume, []
        monkeypatch.setattr(stage.consumer, "pause", self.calls.append)
        monkeypatch.setattr(stage.consumer, "resume", self._forget)
        self._stage = stage

    def _forget(self, **prefetch):
        self.calls.clear()
        self._resume(**prefetch)

    def end(self):
        calls, self.calls[:] = list(self.calls), []
        for call in calls:
            self._pause(call)
        self._stage.loop.settle()


@pytest.fixture
def stage():
    stage = Stage(worker_config(concurrency=4))
    stage.meet_first()
    return stage


@pytest.fixture
def sent(stage, monkeypatch):
    """List the ids of what is published."""
    ids, send = [], stage.publisher.send

    def note(exchange, key, body, properties, confirmed):
        ids.append(properties.message_id)
        send(exchange, key, body, properties, confirmed)

    monkeypatch.setattr(stage.publisher, "send", note)
    return ids


def test_what_broke_together_is_not_sent_round_while_the_first_of_it_has_taking_end(stage, sent, monkeypatch):
    pauses = SlowPauses(stage, monkeypatch)
    stage.publish("a", "b", "c")
    stage.end(BROKEN, "a")
    assert (sent, len(pauses.calls)) == (["a"], 1), "it went round, came back, and is to run alone"
    stage.end(BROKEN, "b")
    assert sent == ["a"]
    pauses.end()
    assert sent == ["a", "b"]
    stage.end(BROKEN, "c")
    for _ in range(3):
        stage.succeed()
        stage.loop.advance(1)
    assert (stage.unacked, stage.waiting, stage.dead) == ([], [], [])
    assert not any(story.crashes for story in stage.stories().values())


def test_what_broke_while_taking_ends_is_sent_round_once_when_the_connection_breaks_too(stage, sent, monkeypatch):
    pauses = SlowPauses(stage, monkeypatch)
    stage.publish("a", "b")
    stage.end(BROKEN, "a")
    assert len(pauses.calls) == 1
    stage.break_connection()
    stage.end(BROKEN, "b")
    stage.connect()
    pauses.end()
    for _ in range(6):
        stage.succeed()
        stage.loop.advance(1)
        pauses.end()
    assert sent.count("b") == 1
    assert (stage.unacked, stage.waiting, stage.dead) == ([], [], [])


def test_suspects_are_not_sent_round_while_a_worker_goes_over_to_less(stage, sent, monkeypatch):
    for number in range(300):
        stage.publish(f"fast {number}")
        stage.runner.end(Succeeded(), seconds=0.001)
        stage.loop.advance(0.01)
    pauses = SlowPauses(stage, monkeypatch)
    for number in range(40):
        stage.publish(f"slow {number}")
        stage.runner.end(Succeeded(), seconds=60.0)
        stage.loop.advance(0.6)
        if pauses.calls:
            break
    assert len(pauses.calls) == 1, "it was to take fewer"
    stage.publish("of a dead worker", redelivered=True)
    assert sent == []
    pauses.end()
    assert sent == ["of a dead worker"]
