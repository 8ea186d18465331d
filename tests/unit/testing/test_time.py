"""The time of the in-memory broker, and who ends in it."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from redrive import Message
from redrive.testing import InMemoryBroker

from .handlers import FIXED, TEN, fail, succeed


def test_sleeping_message_is_there_to_the_microsecond(failing):
    failing.run_once()
    failing.advance(TEN - timedelta(microseconds=1))
    assert (failing.run_once(), len(failing.sleeping)) == (None, 1)
    failing.advance(timedelta(microseconds=1))
    assert (len(failing.waiting), len(failing.sleeping)) == (1, 0)
    assert failing.run_once().attempt == 2


def test_time_in_small_steps_is_the_same_time(failing):
    began = failing.now
    failing.run_once()
    for _ in range(100):
        failing.advance(0.1)
    assert failing.now == began + TEN
    assert failing.run_once().attempt == 2


def test_time_goes_forward_only(failing):
    with pytest.raises(ValueError, match="forward"):
        failing.advance(-1)


def test_two_weeks_of_retries_take_no_time(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it sleeps"))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    broker = InMemoryBroker(fail, retry={"backoff": {"strategy": "Fixed", "base": "36h"}}, now=now)
    broker.publish("m")
    broker.run_until_idle()
    assert broker.now - now == 9 * timedelta(hours=36)


def test_clock_begins_where_it_is_told():
    now = datetime(2030, 5, 1, 12, tzinfo=UTC)
    broker = InMemoryBroker(succeed, now=now)
    broker.publish("m")
    assert broker.run_once().message.received_at == broker.now == now


def test_tries_in_place_are_one_run_and_take_their_time():
    broker = InMemoryBroker(fail, retry={**FIXED, "immediate": {"tries": 3, "within": "9s"}})
    broker.publish("m")
    began = broker.now
    run = broker.run_once()
    assert (run.outcome, run.attempt, run.tries) == ("retry", 1, 3)
    assert broker.now - began == timedelta(seconds=4)  # at 1 s and 4 s
    assert len(broker.runs) == 1


def test_handler_takes_as_long_as_it_says():
    def handle(_body: bytes) -> None:
        broker.advance(20)
        raise ConnectionError

    broker = InMemoryBroker(handle, retry={**FIXED, "immediate": {"tries": 3, "within": "9s"}})
    broker.publish("m")
    began = broker.now
    run = broker.run_once()
    assert run.tries == 1  # nothing begins later than `within`
    assert run.due_at == began + timedelta(seconds=20) + TEN


def test_what_wakes_up_while_a_handler_runs_waits_for_its_end():
    def handle(body: str, message: Message) -> None:
        if body == "slow":
            broker.advance(60)
        elif message.attempt == 1:
            raise ConnectionError

    broker = InMemoryBroker(handle, retry=FIXED)
    for body in ("quick", "slow"):
        broker.publish(body, message_id=body)
    assert [(run.id, run.outcome) for run in broker.run()] == [("quick", "retry"), ("slow", "done"), ("quick", "done")]


# Workers.


def test_message_that_kills_its_worker_again_and_again_is_parked_and_its_neighbours_succeed():
    def handle(body: str) -> None:
        if body == "killer":
            broker.kill_worker()

    broker = InMemoryBroker(handle)
    for body in ("killer", "a", "b"):
        broker.publish(body, message_id=body)
    while broker.waiting or broker.sleeping:
        broker.run_until_idle()
    assert {run.id: (run.outcome, run.attempt) for run in broker.runs if run.id != "killer"} == {
        "a": ("done", 1),
        "b": ("done", 1),
    }
    [letter] = broker.dead_letters
    assert (letter.id, letter.reason, letter.message.story.crashes) == ("killer", "Crashed", 3)


@pytest.mark.parametrize("is_async", [False, True])
def test_handler_may_end_its_own_worker(is_async):
    calls = []

    def handle(_body: bytes, message: Message) -> None:
        calls.append(message.redelivered or message.story.suspect)
        if len(calls) == 1:
            broker.kill_worker()

    async def handle_async(body: bytes, message: Message) -> None:
        handle(body, message)

    broker = InMemoryBroker(handle_async if is_async else handle)
    broker.publish("m")
    assert broker.run() == []
    assert broker.waiting[0].redelivered
    assert [run.outcome for run in broker.run()] == ["done"]
    assert calls == [False, True]


def test_worker_between_two_messages_can_end_without_harm(failing):
    failing.run_once()
    failing.kill_worker()
    assert (len(failing.waiting), len(failing.sleeping)) == (0, 1)
    failing.advance(TEN)
    failing.drain_worker()
    assert [run.attempt for run in failing.run()] == [2]
