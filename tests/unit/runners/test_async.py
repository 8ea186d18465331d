"""Mode Async: handlers beside each other in one event loop, which none of them can end."""

import asyncio
import contextvars
import os
import signal
import threading
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from unittest.mock import ANY

import pytest
from runner_bed import KILLERS, behave, hold, running, slot_threads, with_neighbours

from redrive.handler import HandlerError, read_handler
from redrive.outcome import Crashed, Failed, Succeeded, TimedOut, Unreadable
from redrive.runners import attempts, coroutine
from redrive.runners.coroutine import AsyncRunner

LONG = timedelta(hours=1)
SHORT = timedelta(milliseconds=200)
A_WHILE = timedelta(seconds=2)


def make(function, loop, *, concurrency=4, timeout=LONG):
    handler = read_handler(function, "shop.orders:handle")
    return AsyncRunner(handler, concurrency=concurrency, timeout=timeout, loop=loop)


def asynchronous(function, **settings):
    return running(lambda loop: make(function, loop, **settings))


async def do_nothing(body):
    pass


async def wait_a_little(body):
    await asyncio.sleep(0)


class Gate:
    """A handler that awaits being let through, and says who has begun and how many there were at once."""

    def __init__(self):
        self.begun = []
        self.inside = self.most = 0
        self.opened = threading.Event()

    async def __call__(self, body):
        self.begun.append(body)
        self.inside += 1
        self.most = max(self.most, self.inside)
        while not self.opened.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.001)
        self.inside -= 1


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.mark.parametrize("function", [do_nothing, wait_a_little], ids=lambda function: function.__name__)
@pytest.mark.parametrize("concurrency", [1, 4, 64])
def test_every_job_is_reported_once(function, concurrency):
    with asynchronous(function, concurrency=concurrency) as bed:
        jobs = bed.submit(*[b"x"] * 500)
        bed.wait(lambda: len(bed.ended) >= 500)
        jobs += bed.submit(*[b"x"] * 5)
        bed.wait(lambda: len(bed.ended) >= 505)
        assert bed.reports() == dict.fromkeys(jobs, 1)
        assert all(ended.result == Succeeded() and ended.seconds >= 0 for ended in bed.ended)


def test_jobs_begin_in_the_order_in_which_they_came():
    begun = []

    async def handle(body):
        begun.append(body)
        await asyncio.sleep(0)

    with asynchronous(handle) as bed:
        bodies = [str(number).encode() for number in range(200)]
        bed.run(*bodies)
    assert begun == bodies


def test_as_many_run_at_once_as_the_concurrency_says(gate):
    with asynchronous(gate, concurrency=3) as bed:
        bed.submit(*[b"x"] * 10)
        bed.wait(lambda: len(gate.begun) == 3)
        gate.opened.set()
        bed.wait(lambda: len(bed.ended) == 10)
        assert gate.most == 3


def test_what_has_not_begun_is_taken_back_and_what_has_is_reported(gate):
    with asynchronous(gate, concurrency=2) as bed:
        jobs = bed.submit(*[b"x"] * 10)
        bed.wait(lambda: len(gate.begun) == 2)
        back = bed.runner.withdraw()
        gate.opened.set()
        bed.wait(lambda: len(bed.ended) == 2)
        assert back == jobs[2:]
        assert {ended.job for ended in bed.ended} == {*jobs[:2]}


def test_job_is_either_taken_back_or_reported_under_load():
    with asynchronous(do_nothing) as bed:
        jobs, back = [], []
        for _ in range(50):
            jobs += bed.submit(*[b"x"] * 40)
            back += bed.runner.withdraw()
        bed.wait(lambda: len(bed.ended) + len(back) >= len(jobs))
        assert bed.reports() + Counter(back) == dict.fromkeys(jobs, 1)


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "after a while"])
@pytest.mark.parametrize("killer", KILLERS, ids=bytes.decode)
def test_killer_fails_and_its_neighbours_succeed(killer, waits):
    async def handle(body):
        if waits:
            await asyncio.sleep(0)
        behave(body)

    with asynchronous(handle) as bed:
        bodies = with_neighbours(killer)
        results = dict(zip(bodies, bed.run(*bodies), strict=True))
        assert isinstance(results.pop(killer), Failed)
        assert {*results.values()} == {Succeeded()}
        assert not bed.failures


async def exits_in_a_task():
    async def exits():
        raise SystemExit(1)

    await asyncio.create_task(exits())


async def stops_the_event_loop():
    asyncio.get_running_loop().stop()


async def cancels_its_own_task():
    asyncio.current_task().cancel()


async def cancels_and_waits():
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


async def closes_the_event_loop():
    asyncio.get_running_loop().close()


async def leaves_a_task_behind():
    leaves_a_task_behind.task = asyncio.create_task(asyncio.sleep(3600))


@pytest.mark.parametrize(
    "meddle",
    [
        exits_in_a_task,
        stops_the_event_loop,
        cancels_its_own_task,
        cancels_and_waits,
        closes_the_event_loop,
        leaves_a_task_behind,
    ],
    ids=lambda function: function.__name__,
)
def test_handler_that_meddles_with_the_event_loop_harms_no_other(meddle):
    async def handle(body):
        await (meddle() if body == b"killer" else asyncio.sleep(0))

    with asynchronous(handle, concurrency=1) as bed:
        bodies = with_neighbours(b"killer")
        results = dict(zip(bodies, bed.run(*bodies), strict=True))
        assert isinstance(results.pop(b"killer"), Succeeded | Failed)
        assert {*results.values()} == {Succeeded()}


def test_handler_that_cancels_the_others_takes_no_place_away():
    async def handle(body):
        if body == b"killer":
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        await asyncio.sleep(0.001)

    with asynchronous(handle) as bed:
        assert bed.run(b"killer", *[b"x"] * 20)[0] == Succeeded()
        assert bed.run(*[b"x"] * 20) == [Succeeded()] * 20
        hold(lambda: bed.runner._busy == 0)


def exits_itself(fork):
    if fork() == 0:
        raise SystemExit(7)


async def exits_after_a_while(fork):
    await asyncio.sleep(0)
    exits_itself(fork)


async def exits_in_its_task(fork):
    await asyncio.create_task(exits_after_a_while(fork))


@pytest.mark.parametrize("forks", [exits_itself, exits_after_a_while, exits_in_its_task], ids=lambda one: one.__name__)
def test_copy_that_a_handler_forked_ends_as_it_says_and_runs_nothing_else(forks, tmp_path):
    copies, log = [], os.open(tmp_path / "ran", os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def fork():
        pid = os.fork()
        copies.extend([pid] if pid else [])
        return pid

    async def handle(body):
        os.write(log, body + b"\n")
        if body == b"forks":
            going = forks(fork)
            await (going or asyncio.sleep(0))

    try:
        with asynchronous(handle, concurrency=1) as bed:
            assert bed.run(b"forks", *[b"x"] * 20) == [Succeeded()] * 21
            ended = []
            hold(lambda: ended.append(os.waitpid(copies[0], os.WNOHANG)) or ended[-1][0])
            assert os.waitstatus_to_exitcode(ended[-1][1]) == 7
            assert (tmp_path / "ran").read_text().split() == ["forks", *["x"] * 20]
    finally:
        os.close(log)
        for pid in copies:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def test_handler_is_cancelled_when_its_time_is_over_and_its_neighbours_succeed():
    cleaned = []

    async def handle(body):
        try:
            await asyncio.sleep(3600 if body == b"sleeps" else 0)
        finally:
            cleaned.append(body)

    with asynchronous(handle, timeout=A_WHILE) as bed:
        bodies = with_neighbours(b"sleeps")
        results = dict(zip(bodies, bed.run(*bodies), strict=True))
        slept = results.pop(b"sleeps")
        assert isinstance(slept, TimedOut)
        assert "in handle" in slept.trace
        assert {*results.values()} == {Succeeded()}
        assert sorted(cleaned) == sorted(bodies)
        assert not bed.failures


def test_cancellation_that_is_caught_once_is_repeated(monkeypatch):
    monkeypatch.setattr(coroutine, "AGAIN_SECONDS", 0.05)

    async def handle(body):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(3600)

    with asynchronous(handle, timeout=SHORT) as bed:
        assert isinstance(bed.run(b"x")[0], TimedOut)
        assert not bed.failures


def test_handler_that_does_not_let_itself_be_cancelled_is_given_up_and_the_process_with_it(gate, monkeypatch):
    monkeypatch.setattr(attempts, "GRACE_SECONDS", 0.2)

    async def handle(body):
        while not gate.opened.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    with asynchronous(handle, timeout=SHORT) as bed:
        first, second = bed.submit(b"x", b"y")
        bed.wait(lambda: bed.failures)
        assert isinstance(bed.result_of(first), TimedOut)
        assert len(bed.failures) == 1
        assert "shop.orders:handle does not end" in bed.failures[0]
        assert "mode Process" in bed.failures[0]
        bed.wait(lambda: len(bed.ended) == 2)
        gate.opened.set()
        bed.wait(lambda: not bed.runner._running)
        assert bed.reports() == {first: 1, second: 1}


class Block:
    """A handler that blocks the event loop when told so, until it is let go; otherwise it waits for a long time."""

    def __init__(self):
        self.let_go, self.begun = threading.Event(), []

    async def handle(self, body):
        self.begun.append(body)
        if body == b"blocks":
            self.let_go.wait()
        else:
            await asyncio.sleep(3600 if not self.let_go.is_set() else 0)


@pytest.fixture
def block(monkeypatch):
    """A block that is soon taken for one."""
    monkeypatch.setattr(attempts, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(coroutine, "BLOCKED_SECONDS", 0.1)
    return Block()


def test_handler_that_blocks_the_event_loop_is_given_up_and_those_that_it_blocks_are_not(block):
    with asynchronous(block.handle, timeout=timedelta(seconds=1)) as bed:
        innocent = bed.submit(b"innocent")[0]
        bed.wait(lambda: block.begun == [b"innocent"])
        blocker = bed.submit(b"blocks")[0]
        bed.wait(lambda: bed.failures)
        assert isinstance(bed.result_of(blocker), TimedOut)
        assert "let_go.wait()" in bed.result_of(blocker).trace
        assert innocent not in bed.reports()
        assert len(bed.failures) == 1
        assert "shop.orders:handle blocks the event loop" in bed.failures[0]
        block.let_go.set()
        bed.wait(lambda: len(bed.ended) == 2)
        assert bed.reports() == {blocker: 1, innocent: 1}
        assert bed.run(b"x") == [Succeeded()]


def test_those_that_wait_for_a_blocked_event_loop_are_let_go_of_without_blame(block):
    with asynchronous(block.handle, timeout=timedelta(seconds=1)) as bed:
        innocents = [*bed.submit(b"innocent"), *bed.submit(b"innocent")]
        bed.wait(lambda: block.begun == [b"innocent"] * 2)
        blocker = bed.submit(b"blocks")[0]
        bed.wait(lambda: len(bed.ended) == 3)
        assert isinstance(bed.result_of(blocker), TimedOut)
        for innocent in innocents:
            assert bed.result_of(innocent) == Crashed(ANY, alone=False)
        assert len(bed.failures) == 1
        block.let_go.set()
        bed.wait(lambda: not bed.runner._running)
        assert set(bed.reports().values()) == {1}


customer = contextvars.ContextVar("customer", default="nobody")


def test_context_of_one_message_is_not_that_of_another():
    seen = []

    async def handle(body):
        seen.append(customer.get())
        customer.set("somebody")
        await asyncio.sleep(0)
        seen.append(customer.get())

    with asynchronous(handle, concurrency=1) as bed:
        bed.run(b"x", b"y", b"z")
    assert seen == ["nobody", "somebody"] * 3


def test_context_that_a_handler_sets_reaches_its_own_tasks():
    async def handle(body):
        customer.set("somebody")
        assert await asyncio.create_task(ask()) == "somebody"

    async def ask():
        return customer.get()

    with asynchronous(handle) as bed:
        assert bed.run(b"x") == [Succeeded()]


def test_handlers_that_wait_have_a_task_each():
    tasks = []

    async def handle(body):
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)

    with asynchronous(handle, concurrency=2) as bed:
        bed.run(*[b"x"] * 20)
    assert len({*tasks}) == 20


def test_what_asyncio_offers_for_waiting_works_inside_of_a_handler():
    async def handle(body):
        async with asyncio.timeout(60):
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(0))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(3600), 0.01)
        assert await asyncio.to_thread(lambda: 7) == 7

    with asynchronous(handle) as bed:
        assert bed.run(b"x", b"y") == [Succeeded()] * 2


def test_body_that_is_no_text_is_unreadable():
    async def handle(body: str): ...

    with asynchronous(handle) as bed:
        assert isinstance(bed.run(b"\xff")[0], Unreadable)


def test_plain_function_is_refused_at_the_start_with_what_to_change():
    says = r"needs an `async def` handler: make shop.orders:handle one, or set"
    with pytest.raises(HandlerError, match=says), asynchronous(lambda body: None):
        pass


def test_stopping_ends_what_runs_reports_nothing_and_leaves_no_thread():
    ended = []

    async def handle(body):
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(body)

    with asynchronous(handle) as bed:
        bed.submit(b"x", b"y")
        bed.wait(lambda: len(bed.runner._running) == 2)
        bed.runner.stop()
        assert not slot_threads()
        assert sorted(ended) == [b"x", b"y"]
        bed.turn()
        assert not bed.ended


def test_stopping_does_not_wait_for_an_event_loop_that_is_blocked(monkeypatch):
    monkeypatch.setattr(coroutine, "FAREWELL_SECONDS", 0.1)
    let_go, begun = threading.Event(), threading.Event()

    async def handle(body):
        begun.set()
        let_go.wait()

    with asynchronous(handle) as bed:
        bed.submit(b"x")
        bed.wait(begun.is_set)
        bed.runner.stop()
        assert len(slot_threads()) == 1
    let_go.set()
    hold(lambda: not slot_threads())
