"""A job whose time is over is ended for real: politely, then not; and nothing else is ended with it."""

import os
import resource
import signal
from collections import Counter
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from process_bed import descriptors, is_alive, lay_bed, make_job

from redrive.outcome import Succeeded, TimedOut
from redrive.runners import rounds, seat
from redrive.runners.household import Household

HALF = timedelta(seconds=0.5)
ERROR = "it was not done within 0.5 s, and was ended"


@pytest.fixture
def little_grace(monkeypatch):
    monkeypatch.setattr(rounds, "GRACE", 0.2)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    return lambda: Counter((tmp_path / "runs").read_text().split("\n"))


def test_handler_is_interrupted_cleans_up_and_its_child_lives_on(runs):
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        bed.run("succeed")
        pids = bed.pids()
        (result,) = bed.run("loop_for_ever")
        assert isinstance(result, TimedOut)
        assert result.error == ERROR
        assert runs()["cleaned up"] == 1
        assert bed.run("succeed") == [Succeeded()]
        assert bed.pids() == pids


def test_trace_says_where_the_handler_hung():
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        (result,) = bed.run("work 60")
    assert result.trace.startswith("Traceback (most recent call last):\n")
    assert "in work\n    time.sleep(float(seconds))\n" in result.trace
    assert "runners/child.py" not in result.trace


def test_async_handler_is_interrupted_cleans_up_and_its_child_lives_on(runs):
    with lay_bed("process_handlers:wait_async", concurrency=1, timeout=HALF) as bed:
        bed.run(b"0")
        pids = bed.pids()
        (result,) = bed.run(b"60")
        assert isinstance(result, TimedOut)
        assert "in wait_async\n    await _sleep_async(float(body))\n" in result.trace
        assert "in _sleep_async\n    await asyncio.sleep(seconds)\n" in result.trace
        assert bed.run(b"0.001") == [Succeeded()]
        assert runs()["cleaned up"] == 3
        assert bed.pids() == pids


def test_handler_that_swallows_its_interruption_has_not_succeeded():
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        (result,) = bed.run("swallow_interruption")
    assert isinstance(result, TimedOut)
    assert "in swallow_interruption\n" in result.trace


def test_handler_that_cannot_be_interrupted_is_killed_with_what_it_started(little_grace, tmp_path):
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        (job,) = bed.submit(f"start_program_and_loop {tmp_path}/pid")
        bed.loop.run_until(lambda: bed.pids())
        pids = bed.pids()
        bed.wait_for(job)
        assert bed.result_of(job) == TimedOut(ERROR)
        assert bed.run("succeed") == [Succeeded()]
        assert not bed.pids() & pids
        assert not is_alive(int((tmp_path / "pid").read_text()))


def test_what_a_handler_starts_in_sessions_of_their_own_is_killed_with_it(little_grace, tmp_path):
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        assert bed.run(f"start_session_and_loop {tmp_path}/pids") == [TimedOut(ERROR)]
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert len(pids) == 2
        bed.loop.run_until(lambda: not any(map(is_alive, pids)), within=5)


def test_child_that_does_not_die_though_it_was_killed_is_done_without(little_grace, monkeypatch):
    monkeypatch.setattr(rounds, "TIME_TO_DIE", 0.2)
    monkeypatch.setattr(seat, "kill_family", lambda _: None)  # as if it hung in the kernel
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        assert bed.run("loop_whatever_comes") == [TimedOut(ERROR)]
        assert bed.run("succeed") == [Succeeded()]


def test_handler_that_has_made_the_signal_deadly_has_timed_out_and_not_crashed():
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        assert bed.run("die_of_sigterm") == [TimedOut(ERROR)]


def test_time_of_a_job_does_not_begin_before_the_job_does():
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        assert bed.run(*["work 0.1"] * 8) == [Succeeded()] * 8


def test_seconds_are_those_that_the_handler_ran(little_grace):
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        bed.run("work 0.1", "loop_whatever_comes", "succeed")
        worked, looped, succeeded = (one.seconds for one in bed.ended)
        assert succeeded < worked < looped
        assert worked >= 0.1
        assert looped >= 0.7  # it had its time, and the grace


def test_signal_that_comes_late_does_not_hurt_the_next_message():
    """Send SIGTERM all the time, as if each were the one for the message before."""
    with lay_bed(concurrency=2) as bed:
        bed.loop.run_until(lambda: len(bed.pids()) == 2)
        jobs = bed.submit(*["work 0.001"] * 1000)

        def all_ended():
            for pid in bed.pids():
                os.kill(pid, signal.SIGTERM)
            return len(bed.ended) == len(jobs)

        bed.loop.run_until(all_ended)
        bed.assert_each_succeeded_once(jobs)


def test_interruption_is_for_the_job_that_it_names_and_no_other():
    """Lay down an interruption of every job, from before its beginning on, and send the signals: each is hit or not."""
    with lay_bed(concurrency=1) as bed:
        bed.loop.run_until(lambda: len(bed.pids()) == 1)
        (only,) = bed.runner._household.seats.values()
        for _ in range(200):
            (job,) = bed.submit("work 0.0002")
            only.condemn(bed.loop.now(), TimedOut(""))
            bed.wait_for(job)
            (after,) = bed.run("succeed")
            assert after == Succeeded()


def test_timeouts_and_quick_jobs_side_by_side_are_each_told_once(runs):
    with lay_bed(concurrency=3, timeout=HALF) as bed:
        bed.run(*["succeed"] * 200)
        slow = [make_job("loop_for_ever", f"slow-{number}") for number in range(6)]
        jobs = [make_job("succeed", f"quick-{number}") for number in range(300)]
        mixed = [job for row in zip(*[iter(jobs)] * 50, slow, strict=True) for job in row]
        bed.submit(*mixed)
        bed.wait_for(*mixed)
        bed.assert_each_succeeded_once(jobs)
        assert all(isinstance(bed.result_of(job), TimedOut) for job in slow)
        assert {runs()[job.message.id] for job in mixed} == {1}


def test_child_that_takes_no_jobs_is_replaced_and_the_job_is_run_by_another():
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        bed.run("succeed")
        (stopped,) = bed.pids()
        os.kill(stopped, signal.SIGSTOP)
        bed.loop.run_until(lambda: Path(f"/proc/{stopped}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        assert bed.run("succeed") == [Succeeded()]
        assert not is_alive(stopped)


def test_child_that_is_given_up_is_not_sent_the_same_job_again_in_its_last_moment(monkeypatch):
    """Woken in that moment it would begin, and be killed; and its end be put down to the job."""
    had = []
    end = Household.end
    monkeypatch.setattr(
        Household, "end", lambda self, seat, *rest: had.append(len(seat.jobs)) or end(self, seat, *rest)
    )
    with lay_bed(concurrency=1, timeout=HALF) as bed:
        bed.run("succeed")
        (stopped,) = bed.pids()
        os.kill(stopped, signal.SIGSTOP)
        assert bed.run("succeed") == [Succeeded()]
    assert had == [0]


@contextmanager
def no_more_files():
    """Have this process open no file any more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, descriptors())) + 1, limits[1]))
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in taken:
            os.close(descriptor)


@pytest.mark.usefixtures("little_grace")
def test_job_is_ended_though_the_worker_can_open_no_more_files():
    with lay_bed(concurrency=2, timeout=HALF) as bed:
        bed.loop.run_until(lambda: len(bed.pids()) == 2)
        with no_more_files():
            [job] = bed.submit("loop_whatever_comes")
            bed.wait_for(job)
        assert isinstance(bed.result_of(job), TimedOut)
        assert bed.run("succeed") == [Succeeded()]
