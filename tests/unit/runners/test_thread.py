"""Mode Thread: many at once, each ended for real when its time is over, and none for another."""

import asyncio
import contextlib
import contextvars
import os
import random
import signal
import sys
import threading
import time
import weakref
from collections import Counter
from datetime import timedelta

import pydantic
import pytest
import samples
from runner_bed import KILLERS, behave, hold, raising, recurse, running, slot_threads, with_neighbours

from redrive.handler import read_handler
from redrive.outcome import Failed, Succeeded, TimedOut, Unreadable
from redrive.runners import Job, attempts, slots
from redrive.runners import thread as thread_mode
from redrive.runners.thread import Overdue, ThreadRunner

LONG = timedelta(hours=1)
SHORT = timedelta(milliseconds=200)


def thread(function, *, concurrency=4, timeout=LONG):
    handler = read_handler(function, "shop.orders:handle")
    return running(lambda loop: ThreadRunner(handler, concurrency=concurrency, timeout=timeout, loop=loop))


def do_nothing(body):
    pass


def spin(body):
    while body == b"spins":
        pass


class Remembered(Job):
    """A job of which it can be seen whether anybody still has it."""

    __slots__ = ("__weakref__",)


class Gate:
    """A handler that waits until it is let through, and says who has begun."""

    def __init__(self):
        self.begun = []
        self.opened = threading.Event()

    def __call__(self, body):
        self.begun.append(body)
        self.opened.wait()


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.opened.set()


def test_every_job_is_reported_once():
    with thread(do_nothing) as bed:
        jobs = bed.submit(*[b"x"] * 500)
        bed.wait(lambda: len(bed.ended) >= 500)
        jobs += bed.submit(*[b"x"] * 5)
        bed.wait(lambda: len(bed.ended) >= 505)
        assert bed.reports() == dict.fromkeys(jobs, 1)
        assert all(ended.result == Succeeded() and ended.seconds >= 0 for ended in bed.ended)


def test_jobs_begin_in_the_order_in_which_they_came():
    begun = []
    with thread(lambda body: begun.append(body), concurrency=1) as bed:
        bodies = [str(number).encode() for number in range(200)]
        bed.run(*bodies)
    assert begun == bodies


def test_as_many_run_at_once_as_the_concurrency_says(gate):
    with thread(gate, concurrency=3) as bed:
        bed.submit(*[b"x"] * 10)
        bed.wait(lambda: len(gate.begun) == 3)
        assert len(bed.runner.withdraw()) == 7  # nobody else has begun
        gate.opened.set()
        bed.wait(lambda: len(bed.ended) == 3)


def test_what_has_not_begun_is_taken_back_and_what_has_is_reported(gate):
    with thread(gate, concurrency=2) as bed:
        jobs = bed.submit(*[b"x"] * 10)
        bed.wait(lambda: len(gate.begun) == 2)
        back = bed.runner.withdraw()
        gate.opened.set()
        bed.wait(lambda: len(bed.ended) == 2)
        assert back == jobs[2:]
        assert {ended.job for ended in bed.ended} == {*jobs[:2]}


def test_job_is_either_taken_back_or_reported_under_load():
    with thread(do_nothing) as bed:
        jobs, back = [], []
        for _ in range(50):
            jobs += bed.submit(*[b"x"] * 40)
            back += bed.runner.withdraw()
        bed.wait(lambda: len(bed.ended) + len(back) >= len(jobs))
        assert bed.reports() + Counter(back) == dict.fromkeys(jobs, 1)


@pytest.mark.parametrize("killer", KILLERS, ids=bytes.decode)
def test_killer_fails_and_its_neighbours_succeed(killer):
    with thread(behave) as bed:
        bodies = with_neighbours(killer)
        results = dict(zip(bodies, bed.run(*bodies), strict=True))
        assert isinstance(results.pop(killer), Failed)
        assert {*results.values()} == {Succeeded()}
        assert not bed.failures


def test_loop_without_end_times_out_with_the_trace_of_where_it_was_and_its_neighbours_succeed():
    with thread(spin, timeout=timedelta(seconds=2)) as bed:
        bodies = with_neighbours(b"spins")
        results = dict(zip(bodies, bed.run(*bodies), strict=True))
        spun = results.pop(b"spins")
        assert isinstance(spun, TimedOut)
        assert "in spin" in spun.trace
        assert {*results.values()} == {Succeeded()}
        assert not bed.failures


@pytest.fixture
def ran(tmp_path):
    """Say what was run, in whatever process."""
    path = tmp_path / "ran"
    path.touch()
    return path


def note(path, body):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, body + b"\n")
    os.close(fd)


@pytest.fixture
def fork():
    """Fork, as often as one likes; whoever is left is killed at the end."""
    copies = []

    def make():
        if pid := os.fork():
            copies.append(pid)
        return pid

    make.copies = copies
    yield make
    for pid in copies:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def exit_code_of(pid):
    ended = []
    hold(lambda: ended.append(os.waitpid(pid, os.WNOHANG)) or ended[-1][0])
    return os.waitstatus_to_exitcode(ended[-1][1])


def returns():
    pass


EXITS = {returns: 0, raising(SystemExit(7)): 7, raising(SystemExit()): 0, raising(SystemExit("no")): 1, recurse: 1}


@pytest.mark.parametrize(("leave", "code"), EXITS.items(), ids=["returns", "exits 7", "exits", "exits no", "fails"])
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_copy_that_a_handler_forked_ends_as_it_says_and_runs_nothing_else(is_async, leave, code, ran, fork):
    def handle(body):
        note(ran, body)
        if body == b"forks":
            hold(lambda: len(bed.runner.running()) == 1 and bed.runner._inbox.qsize() == 3)
            if fork() == 0:
                leave()

    async def handle_async(body):
        await asyncio.sleep(0)
        handle(body)

    with thread(handle_async if is_async else handle, concurrency=1) as bed:
        assert bed.run(b"forks", b"x", b"y", b"z") == [Succeeded()] * 4
        assert exit_code_of(fork.copies[0]) == code
        assert ran.read_text().split() == ["forks", "x", "y", "z"]


def test_copy_that_a_task_or_a_validator_forked_runs_nothing_else(ran, fork):
    class Order(pydantic.BaseModel):
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def check(cls, number):
            if number == 1 and fork() == 0:
                raise SystemExit(0)
            return number

    async def handle(order: Order):
        note(ran, str(order.number).encode())
        if order.number == 2:
            await asyncio.create_task(forks())

    async def forks():
        if fork() == 0:
            raise SystemExit(7)

    with thread(handle, concurrency=1) as bed:
        assert bed.run(*[b'{"number": %d}' % number for number in range(1, 6)]) == [Succeeded()] * 5
        assert [exit_code_of(pid) for pid in fork.copies] == [1, 7]
        assert ran.read_text().split() == ["1", "2", "3", "4", "5"]


def test_thread_that_ends_is_told_and_so_is_what_it_ran(monkeypatch):
    def break_down(attempt):
        raise OSError("no more files")

    monkeypatch.setattr(ThreadRunner, "equip", lambda self: contextlib.nullcontext(break_down))
    with thread(do_nothing, concurrency=1) as bed:
        result = bed.run(b"x")[0]
        assert result.error == "no more files"
        bed.wait(lambda: bed.failures)
        assert "a thread that runs messages has ended: OSError: no more files" in bed.failures[0]


def test_thread_that_cannot_begin_is_told(monkeypatch):
    @contextlib.contextmanager
    def fail(self):
        raise OSError("no more files")
        yield

    monkeypatch.setattr(ThreadRunner, "equip", fail)
    with thread(do_nothing) as bed:
        bed.wait(lambda: bed.failures)
        assert len(bed.failures) == 1
        assert "this process must be replaced" in bed.failures[0]


def test_body_that_is_no_text_is_unreadable():
    def handle(body: str): ...

    with thread(handle) as bed:
        assert isinstance(bed.run(b"\xff")[0], Unreadable)


def swallow(body):
    try:
        while True:
            pass
    except BaseException:
        return


def test_handler_that_catches_the_end_of_its_time_has_timed_out_all_the_same():
    with thread(swallow, timeout=SHORT) as bed:
        assert isinstance(bed.run(b"x")[0], TimedOut)
        assert not bed.failures


def test_thread_goes_on_after_a_timeout():
    with thread(spin, concurrency=1, timeout=timedelta(seconds=1)) as bed:
        results = bed.run(b"spins", b"x", b"spins", b"x")
        assert [type(result) for result in results] == [TimedOut, Succeeded, TimedOut, Succeeded]


def test_interruption_that_comes_when_its_message_is_over_hits_no_other(monkeypatch):
    """Hold the exception back until the thread is done with the handler, and see where it goes then."""
    done, let_go = threading.Event(), threading.Event()

    def handle(body):
        if body == b"late":
            while not claimed.is_set():
                pass
            done.set()
        else:
            spun.append(body)
            while not let_go.is_set():
                pass

    def interrupt_late(thread):
        claimed.set()
        done.wait()
        hold(lambda: spun or in_function(thread, attempts.Attempt.finish))
        interrupt(thread)
        hold(lambda: spun)
        let_go.set()

    claimed, spun, interrupt = threading.Event(), [], thread_mode._interrupt
    monkeypatch.setattr(thread_mode, "_interrupt", interrupt_late)
    with thread(handle, concurrency=1) as bed:
        late, other = bed.submit(b"late", b"other")
        bed.wait(lambda: bed.runner.running())
        helper = threading.Thread(target=lambda: hold(lambda: bed.runner.running()[0].interrupt()))
        helper.start()
        bed.wait(lambda: len(bed.ended) == 2)
        helper.join()
        assert isinstance(bed.result_of(late), TimedOut)
        assert bed.result_of(other) == Succeeded()


@pytest.mark.timeout(20, method="thread")
def test_interruption_that_did_not_come_in_time_leaves_nothing_that_a_profiler_would_wait_for(monkeypatch):
    """CPython before 3.13 can be left waiting for an exception for ever, and then calls nothing under a profiler."""

    def handle(body):
        hold(lambda: bed.runner.running()[0].interrupted)

    called = []
    monkeypatch.setattr(thread_mode, "_interrupt", lambda _thread: None)
    with thread(handle, concurrency=1, timeout=SHORT) as bed:
        (result,) = bed.run(b"x")
    assert isinstance(result, TimedOut)
    sys.setprofile(lambda *_: called.append(True))
    try:
        do_nothing(b"")
    finally:
        sys.setprofile(None)
    assert called


def in_function(thread, function):
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code is function.__code__:
            return True
        frame = frame.f_back
    return False


def test_interruptions_at_any_moment_hit_the_messages_that_they_are_meant_for():
    def handle(body):
        for _ in range(dice.randrange(20_000)):
            try:
                dice.random()
            finally:
                [*range(3)]

    dice = random.Random(7)  # noqa: S311 - no secret
    with thread(handle, concurrency=3) as bed:
        jobs, interrupted = [], set()
        while len(interrupted) < 50:
            jobs += bed.submit(b"x", b"x")
            bed.turn()
            interrupted |= {attempt.job for attempt in bed.runner.running()[:1] if attempt.interrupt()}
        bed.wait(lambda: len(bed.ended) >= len(jobs))
    results = {ended.job: ended.result for ended in bed.ended}
    assert bed.reports() == dict.fromkeys(jobs, 1)
    assert {type(results[job]) for job in interrupted} == {TimedOut}
    assert {type(results[job]) for job in jobs if job not in interrupted} == {Succeeded}


def test_handler_that_waits_outside_of_python_is_given_up_and_the_process_with_it(gate, monkeypatch):
    monkeypatch.setattr(attempts, "GRACE_SECONDS", 0.2)
    with thread(gate, concurrency=2, timeout=SHORT) as bed:
        first, second = bed.submit(b"x", b"y")
        bed.wait(lambda: len(bed.ended) == 2)
        assert isinstance(bed.result_of(first), TimedOut)
        assert isinstance(bed.result_of(second), TimedOut)
        assert "in __call__" in bed.result_of(first).trace  # where it waits
        assert len(bed.failures) == 1  # once for both
        assert "shop.orders:handle does not end" in bed.failures[0]
        assert "mode Process" in bed.failures[0]
        gate.opened.set()
        bed.wait(lambda: not bed.runner.running())
        bed.run(b"z")
        assert set(bed.reports().values()) == {1}  # also of those that ended after all


def test_job_is_reported_before_the_process_is_given_up(gate, monkeypatch):
    monkeypatch.setattr(attempts, "GRACE_SECONDS", 0.1)
    with thread(gate, concurrency=1, timeout=SHORT) as bed:
        seen = []
        bed.runner._reports._fail = lambda reason: seen.append(len(bed.ended))
        bed.submit(b"x")
        bed.wait(lambda: seen)
        assert seen == [1]
        gate.opened.set()


customer = contextvars.ContextVar("customer", default="nobody")


def test_context_of_one_message_is_not_that_of_the_next():
    seen = []

    def handle(body):
        seen.append(customer.get())
        customer.set("somebody")

    with thread(handle, concurrency=1) as bed:
        bed.run(b"x", b"y", b"z")
    assert seen == ["nobody"] * 3


def test_async_handler_has_one_event_loop_a_thread_and_a_context_a_message():
    seen = []

    async def handle(body):
        seen.append((asyncio.get_running_loop(), customer.get()))
        customer.set("somebody")
        await asyncio.sleep(0)

    with thread(handle, concurrency=1) as bed:
        assert bed.run(b"x", b"y", b"z") == [Succeeded()] * 3
    assert len({loop for loop, _ in seen}) == 1
    assert [who for _, who in seen] == ["nobody"] * 3
    assert seen[0][0].is_closed()


@pytest.mark.parametrize("killer", KILLERS, ids=bytes.decode)
def test_async_killer_fails_and_its_neighbours_succeed(killer):
    async def handle(body):
        await asyncio.sleep(0)
        behave(body)

    with thread(handle) as bed:
        bodies = with_neighbours(killer)
        results = dict(zip(bodies, bed.run(*bodies), strict=True))
        assert isinstance(results.pop(killer), Failed)
        assert {*results.values()} == {Succeeded()}


def test_async_handler_is_cancelled_when_its_time_is_over():
    cleaned = []

    async def handle(body):
        try:
            await asyncio.sleep(3600 if body == b"sleeps" else 0)
        finally:
            cleaned.append(body)

    with thread(handle, concurrency=1, timeout=timedelta(seconds=1)) as bed:
        slept, other = bed.run(b"sleeps", b"x")
        assert isinstance(slept, TimedOut)
        assert "in handle" in slept.trace
        assert other == Succeeded()
        assert cleaned == [b"sleeps", b"x"]


def test_task_of_a_handler_that_exits_does_not_take_the_thread_with_it():
    async def handle(body):
        if body == b"exits":
            task = asyncio.create_task(exits())
            try:
                await asyncio.sleep(3600)
            finally:
                task.exception()  # it is of no interest to asyncio then

    async def exits():
        raise SystemExit(1)

    with thread(handle, concurrency=1) as bed:
        exited, other = bed.run(b"exits", b"x")
        assert isinstance(exited, Failed)
        assert exited.error_types[0] == "SystemExit"
        assert other == Succeeded()


def test_stopping_ends_what_runs_reports_nothing_and_leaves_no_thread():
    with thread(spin) as bed:
        bed.submit(b"spins", b"spins")
        bed.wait(lambda: len(bed.runner.running()) == 2)
        bed.runner.stop()
        assert not slot_threads()
        bed.turn()
        assert not bed.ended


def test_stopping_does_not_wait_for_a_thread_that_cannot_be_ended(gate, monkeypatch):
    monkeypatch.setattr(slots, "FAREWELL_SECONDS", 0.1)
    with thread(gate, concurrency=1) as bed:
        bed.submit(b"x")
        bed.wait(lambda: gate.begun)
        bed.runner.stop()
        assert len(slot_threads()) == 1
    gate.opened.set()
    hold(lambda: not slot_threads())
    assert not bed.ended


def test_what_has_not_begun_never_begins_when_all_is_stopped(gate, monkeypatch):
    monkeypatch.setattr(slots, "FAREWELL_SECONDS", 0.1)
    with thread(gate, concurrency=1) as bed:
        bed.submit(b"x", b"y")
        bed.wait(lambda: gate.begun)
        bed.runner.stop()
    gate.opened.set()
    hold(lambda: not slot_threads())
    assert gate.begun == [b"x"]


def test_interruption_is_no_exception_that_handlers_catch():
    assert not issubclass(Overdue, Exception)


def test_seconds_are_those_of_the_handler():
    with thread(lambda body: time.sleep(0.05), concurrency=1) as bed:
        bed.run(b"x", b"y")
        assert all(0.04 < ended.seconds < 10 for ended in bed.ended)


def test_thread_that_waits_for_a_message_does_not_keep_the_one_before():
    with thread(do_nothing, concurrency=1) as bed:
        job = Remembered(samples.deliver(body=b"large"))
        kept = weakref.ref(job)
        bed.runner.submit([job])
        bed.wait(lambda: bed.ended)
        bed.ended.clear()
        del job
        hold(lambda: kept() is None)
