"""Jobs that take no time are sent to one child together, and none of them pays for another that does take time."""

from datetime import timedelta

import pytest
from process_bed import lay_bed, make_job

from redrive.outcome import Crashed, Succeeded, TimedOut
from redrive.runners import crew, rounds
from redrive.runners.bell import Bell


@pytest.fixture
def bed():
    with lay_bed(concurrency=4) as bed:
        bed.loop.run_until(lambda: len(bed.pids()) == 4)
        yield bed


@pytest.fixture
def fast(bed):
    """Make it known that jobs take no time; nobody has one."""
    bed.loop.run_until(lambda: bed.run(*["succeed"] * 50) and bed.runner._household.crew.tempo.together >= 10)
    return bed


def loads(bed):
    """How many jobs each child has, the busiest first."""
    return sorted((len(seat.jobs) for seat in bed.runner._household.seats.values()), reverse=True)


def test_as_long_as_nothing_is_known_each_child_gets_one_job(bed):
    jobs = bed.submit(*["succeed"] * 4)
    assert loads(bed) == [1, 1, 1, 1]
    bed.wait_for(*jobs)


def test_jobs_that_take_no_time_wake_one_child(fast, monkeypatch):
    monkeypatch.setattr(crew, "HOLDING", 60.0)  # however busy this machine is
    jobs = fast.submit(*["succeed"] * 3)
    jobs += fast.submit(*["succeed"] * 5)
    assert loads(fast) == [8, 0, 0, 0]
    fast.wait_for(*jobs)
    fast.assert_each_succeeded_once(jobs)


def test_more_jobs_than_one_child_does_in_no_time_wake_another(fast):
    together = fast.runner._household.crew.tempo.together
    jobs = fast.submit(*["succeed"] * (together + 1))
    assert loads(fast) == [together, 1, 0, 0]
    fast.wait_for(*jobs)


@pytest.fixture
def only_quick_looks(monkeypatch):
    """Have nobody look after slow jobs but those who look whether a child is free."""
    for module in (crew, rounds):
        monkeypatch.setattr(module, "SLOW", 60.0)


def test_what_stands_behind_a_slow_job_is_run_by_a_child_that_is_free(only_quick_looks, fast, tmp_path):
    slow, *others = fast.submit(f"wait_for {tmp_path / 'done'}", *["succeed"] * 7)
    assert loads(fast) == [8, 0, 0, 0]
    fast.wait_for(*others, within=10)
    assert slow not in {one.job for one in fast.ended}
    (tmp_path / "done").touch()
    fast.wait_for(slow)
    fast.assert_each_succeeded_once([slow, *others])


def test_jobs_that_have_become_slow_all_run_at_once(only_quick_looks, fast, tmp_path):
    (tmp_path / "done.pids").touch()
    jobs = fast.submit(*[f"tell_pid_and_wait_for {tmp_path / 'done'}"] * 4)
    assert loads(fast) == [4, 0, 0, 0]
    fast.loop.run_until(lambda: len((tmp_path / "done.pids").read_text().split()) == 4, within=10)
    (tmp_path / "done").touch()
    fast.wait_for(*jobs)


def test_answer_is_heard_while_the_job_after_it_runs(only_quick_looks, fast, tmp_path):
    quick, slow = fast.submit("succeed", f"wait_for {tmp_path / 'done'}")
    assert loads(fast) == [2, 0, 0, 0]
    fast.wait_for(quick, within=10)
    (tmp_path / "done").touch()
    fast.wait_for(slow)


def test_killer_costs_nobody_anything_that_was_sent_together_with_it(fast):
    for _ in range(20):
        fast.run(*["succeed"] * 100)
        before, after = [[make_job("succeed") for _ in range(4)] for _ in range(2)]
        killer = make_job("kill_itself SIGKILL")
        fast.submit(*before, killer, *after)
        fast.wait_for(*before, killer, *after)
        fast.assert_each_succeeded_once([*before, *after])
        assert isinstance(fast.result_of(killer), Crashed)


def test_child_that_did_not_hear_its_bell_is_called_again(bed, monkeypatch):
    rung = []
    ring = Bell.ring

    def lose_the_first(bell):
        rung.append(bell)
        if len(rung) > 1:
            ring(bell)

    monkeypatch.setattr(Bell, "ring", lose_the_first)
    assert bed.run("succeed", within=10) == [Succeeded()]


@pytest.mark.parametrize("spoil", ["hush_bells", "ring_bells", "wait_for_bells"])
def test_handler_that_plays_with_the_bells_harms_nobody(fast, spoil):
    for _ in range(5):
        assert fast.run(spoil, *["succeed"] * 20) == [Succeeded()] * 21


def test_handler_that_has_its_bells_waited_for_holds_up_nobody_but_itself():
    with lay_bed(concurrency=2, timeout=timedelta(seconds=1)) as bed:
        spoiler, other = bed.submit("wait_for_bells_for_ever", "succeed")
        bed.wait_for(spoiler, other, within=20)
        assert bed.result_of(other) == Succeeded()
        assert isinstance(bed.result_of(spoiler), TimedOut)
