"""Running messages on the in-memory broker: what a run tells."""

import asyncio
import concurrent.futures.thread
import gc
import threading
from datetime import timedelta

import pydantic
import pytest

from redrive import Message, Reject, Retry, Snooze
from redrive.testing import InMemoryBroker, NeverIdle

from .handlers import FIXED, TEN, fail, succeed


def test_nothing_to_run_is_none():
    broker = InMemoryBroker(succeed)
    assert broker.run_once() is None
    assert broker.run() == []
    assert broker.run_until_idle() == []


def test_failure_is_a_value_with_what_was_raised(failing):
    run = failing.run_once()
    assert (run.id, run.attempt, run.outcome, run.tries) == ("m-1", 1, "retry", 1)
    assert (run.error_type, run.error) == ("ConnectionError", "no answer")
    assert "in fail" in run.trace
    assert run.due_at == failing.now + TEN
    with pytest.raises(ConnectionError, match="no answer"):
        run.raise_error()


def test_success_raises_nothing_when_asked():
    broker = InMemoryBroker(succeed)
    broker.publish("m")
    run = broker.run_once()
    run.raise_error()
    assert (run.outcome, run.error, run.delay, run.reason, run.exception) == ("done", None, None, None, None)


def test_only_the_last_try_counts_for_what_was_raised():
    tries = iter([ValueError("first"), None])

    def handle(_body: bytes) -> None:
        if (error := next(tries)) is not None:
            raise error

    broker = InMemoryBroker(handle, retry={"immediate": {"tries": 2}})
    broker.publish("m")
    run = broker.run_once()
    assert (run.outcome, run.tries, run.exception) == ("done", 2, None)


def test_unreadable_body_is_dead_without_a_try():
    class Order(pydantic.BaseModel):
        number: int

    def handle(order: Order) -> None:
        pass

    broker = InMemoryBroker(handle)
    broker.publish({"number": "many"})
    run = broker.run_once()
    assert (run.outcome, run.reason, run.tries) == ("dead", "Unreadable", 0)
    with pytest.raises(pydantic.ValidationError):
        run.raise_error()


def test_wishes_of_a_handler_are_told():
    wishes = iter([Retry("soon", delay=1), Snooze(delay=2), Reject("never")])

    def handle(_body: bytes) -> None:
        raise next(wishes)

    broker = InMemoryBroker(handle)
    broker.publish("m")
    told = [(run.outcome, run.attempt, run.delay, run.error) for run in broker.run_until_idle()]
    assert told == [
        ("retry", 1, timedelta(seconds=1), "soon"),
        ("snooze", 2, timedelta(seconds=2), None),
        ("dead", 2, None, "never"),
    ]


def test_delay_is_what_the_ladder_makes_of_it():
    broker = InMemoryBroker(fail, retry={"backoff": {"strategy": "Fixed", "base": "100ms"}})
    broker.publish("m")
    delay = broker.run_once().delay
    assert delay == timedelta(milliseconds=125)
    broker.advance(delay)
    assert broker.run_once().attempt == 2


def test_messages_are_run_in_their_order_and_all_of_them():
    seen = []

    def handle(body: str) -> None:
        seen.append(body)

    broker = InMemoryBroker(handle)
    for number in range(50):
        broker.publish(str(number))
    assert len(broker.run()) == 50
    assert seen == [str(number) for number in range(50)]


def test_slow_handler_that_fails_leaves_nobody_waiting():
    """Acknowledgements wait for each other, and hold up what is to come: also where no time passes."""

    def handle(_body: bytes, message: Message) -> None:
        if message.id == "made-up-1":
            broker.advance(0.4)
        raise ConnectionError

    broker = InMemoryBroker(handle, retry=FIXED)
    for _ in range(20):
        broker.publish("m")
    assert len(broker.run()) == 20


def test_run_once_leaves_the_others_waiting():
    broker = InMemoryBroker(succeed)
    for name in "abc":
        broker.publish(name, message_id=name)
    assert broker.run_once().id == "a"
    assert [message.id for message in broker.waiting] == ["b", "c"]


def test_handler_may_publish_to_its_own_queue():
    def handle(body: str) -> None:
        if body == "first":
            broker.publish("second")

    broker = InMemoryBroker(handle)
    broker.publish("first")
    assert [run.message.body for run in broker.run()] == [b"first", b"second"]


def test_handler_may_not_run_others():
    def handle(_body: bytes) -> None:
        broker.run_once()

    broker = InMemoryBroker(handle)
    broker.publish("m")
    assert broker.run_once().error == "a handler is running: it may publish and let time pass, but not run others"


def test_message_that_always_snoozes_does_not_hang_the_test():
    def handle(_body: bytes) -> None:
        raise Snooze

    broker = InMemoryBroker(handle)
    broker.publish("m", message_id="sleepy")
    with pytest.raises(NeverIdle, match="'sleepy'"):
        broker.run_until_idle(most=100)
    assert len(broker.runs) == 101


@pytest.mark.parametrize("outcome", [KeyboardInterrupt, pytest.fail.Exception, pytest.skip.Exception])
@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_meant_for_the_test_goes_to_the_test(outcome, is_async):
    def handle(_body: bytes) -> None:
        raise outcome

    async def handle_async(_body: bytes) -> None:
        raise outcome

    broker = InMemoryBroker(handle_async if is_async else handle)
    broker.publish("m")
    with pytest.raises(outcome):
        broker.run_once()
    assert [message.redelivered for message in broker.waiting] == [True]


def test_handler_that_wants_to_end_the_program_fails():
    def handle(_body: bytes) -> None:
        raise SystemExit(3)

    broker = InMemoryBroker(handle)
    broker.publish("m")
    assert broker.run_once().error_type == "SystemExit"


# Async handlers.


async def fail_twice(body: dict, message: Message) -> None:
    await asyncio.sleep(0)
    if message.attempt < 3:
        raise ConnectionError("no answer")


def test_async_handler_is_awaited():
    broker = InMemoryBroker(fail_twice)
    broker.publish({})
    runs = broker.run_until_idle()
    assert [run.outcome for run in runs] == ["retry", "retry", "done"]
    with pytest.raises(ConnectionError):
        runs[0].raise_error()


@pytest.mark.asyncio
async def test_async_handler_is_awaited_in_an_async_test_too():
    broker = InMemoryBroker(fail_twice)
    broker.publish({})
    assert [run.outcome for run in broker.run_until_idle()] == ["retry", "retry", "done"]


@pytest.mark.asyncio
async def test_async_handler_is_awaited_and_its_loop_closed_while_somebody_is_in_the_middle_of_an_executor():
    """Brokers are collected, and closed, at any moment: also when that lock is held, which all executors share."""
    with concurrent.futures.thread._global_shutdown_lock:
        broker = InMemoryBroker(fail_twice)
        broker.publish({})
        assert [run.outcome for run in broker.run_until_idle()] == ["retry", "retry", "done"]
        del broker
        gc.collect()


@pytest.mark.asyncio
@pytest.mark.timeout(20, method="thread")
async def test_loop_is_closed_while_a_thread_is_being_joined():
    """That holds a lock which all threads share but daemons, and the collector may come in that moment."""
    broker = InMemoryBroker(fail_twice)
    broker.publish({})
    broker.run_until_idle()
    with threading._shutdown_locks_lock:
        del broker
        gc.collect()


def test_async_handler_finds_its_event_loop_again():
    loops = set()

    async def handle(body: bytes) -> None:
        loops.add(asyncio.get_running_loop())

    broker = InMemoryBroker(handle)
    broker.publish("a")
    broker.publish("b")
    broker.run()
    assert len(loops) == 1
    loops.clear()
    del broker
    gc.collect()  # an event loop that nobody closed would be a warning, and so an error
