"""Whatever a handler does to its process, it costs one message, and that is the one that did it."""

import os
import signal
import textwrap
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from process_bed import is_alive, lay_bed, make_job

from redrive.outcome import Crashed, Failed, Succeeded, TimedOut
from redrive.runners import household

NEIGHBOURS = 100


def crashed(how):
    return Crashed(f"the process that ran this message {how}", alone=True)


KILLERS = {
    "leave_at_once 7": crashed("exited with code 7"),
    "leave_at_once 0": crashed("exited with code 0"),
    "exit_from_thread 9": crashed("exited with code 9"),
    "kill_itself SIGKILL": crashed("was ended by SIGKILL"),
    "kill_itself SIGSEGV": crashed("was ended by SIGSEGV"),
    "touch_forbidden_memory": crashed("was ended by SIGSEGV"),
    "kill_itself SIGABRT": crashed("was ended by SIGABRT"),
    "close_everything": crashed("could not answer any more: the handler had closed the connection to the worker"),
}

# They do not die, and nobody else does.
FAILURES = ["exit_python 3", "interrupt", "raise_long_text", "raise_unspeakable"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Who was begun, and how often."""
    file = tmp_path_factory.mktemp("killers") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNS", str(file))
        yield lambda: Counter(file.read_text().split("\n"))


@pytest.fixture(scope="module")
def shared_bed(runs):
    """One for all killers: it must be as good as new after each."""
    with lay_bed(concurrency=2) as bed:
        yield bed


@pytest.fixture
def bed(shared_bed):
    shared_bed.run(*["succeed"] * 200)  # so that much is sent ahead
    return shared_bed


@pytest.fixture
def among_neighbours(runs):
    """Run a killer in the middle of others, and see that each of them succeeds, having been begun once."""

    def run(bed, killer):
        killer = make_job(killer)
        jobs = [make_job("succeed") for _ in range(NEIGHBOURS)]
        bed.submit(*jobs[: NEIGHBOURS // 2], killer, *jobs[NEIGHBOURS // 2 :])
        bed.wait_for(killer, *jobs)
        bed.assert_each_succeeded_once(jobs)
        assert {runs()[job.message.id] for job in [killer, *jobs]} == {1}
        assert bed.failures == []
        return bed.result_of(killer)

    return run


@pytest.mark.parametrize("killer", KILLERS)
def test_killer_is_convicted_and_its_neighbours_succeed(bed, among_neighbours, killer):
    assert among_neighbours(bed, killer) == KILLERS[killer]


@pytest.mark.parametrize("killer", FAILURES)
def test_what_ends_a_program_is_inside_a_handler_just_a_failure(bed, among_neighbours, killer):
    pids = bed.pids()
    assert isinstance(among_neighbours(bed, killer), Failed)
    assert bed.pids() == pids


@pytest.mark.parametrize("killer", ["loop_for_ever", "loop_whatever_comes"])
def test_endless_loop_times_out_and_its_neighbours_succeed(among_neighbours, killer):
    with lay_bed(concurrency=2, timeout=timedelta(seconds=1)) as bed:
        bed.run(*["succeed"] * 200)
        assert isinstance(among_neighbours(bed, killer), TimedOut)


def test_handler_that_writes_into_the_connection_costs_its_own_message(bed, among_neighbours):
    result = among_neighbours(bed, "write_everywhere")
    assert isinstance(result, Crashed)
    assert "written into it" in result.error


def test_killer_of_the_zygote_is_suspected_with_what_ran_beside_it_and_nothing_is_lost(bed, runs):
    jobs = bed.submit(*["succeed"] * 50, "kill_zygote", *["succeed"] * 50)
    bed.wait_for(*jobs)
    suspects = [job for job in jobs if bed.result_of(job) != Succeeded()]
    assert jobs[50] in suspects
    assert len(suspects) <= 2
    how = "died with the process that it was made from, which was ended by SIGKILL"
    assert {bed.result_of(job) for job in suspects} == {replace(crashed(how), alone=False)}
    assert {runs()[job.message.id] for job in jobs if job not in suspects} == {1}


def test_killer_of_the_zygote_is_convicted_when_it_runs_alone(bed):
    (result,) = bed.run("kill_zygote", alone=True)
    assert isinstance(result, Crashed)
    assert result.alone
    assert bed.run("succeed") == [Succeeded()]


def test_many_killers_at_once_cost_no_more_than_themselves(bed, runs):
    killers = [make_job("kill_itself SIGKILL") for _ in range(20)]
    jobs = [make_job("succeed") for _ in range(200)]
    mixed = [job for row in zip(*[iter(jobs)] * 10, killers, strict=True) for job in row]
    bed.submit(*mixed)
    bed.wait_for(*mixed)
    bed.assert_each_succeeded_once(jobs)
    assert {bed.result_of(job) for job in killers} == {crashed("was ended by SIGKILL")}
    assert {runs()[job.message.id] for job in mixed} == {1}


def test_what_a_handler_has_started_dies_with_its_child(bed, tmp_path):
    (job,) = bed.submit(f"start_program {tmp_path}/pid")
    bed.loop.run_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    program = int((tmp_path / "pid").read_text())
    assert is_alive(program)
    os.kill(parent_of(program), signal.SIGKILL)
    bed.wait_for(job)
    bed.loop.run_until(lambda: not is_alive(program))


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_child_that_dies_with_nothing_to_do_costs_nobody_anything(bed):
    told, pids = len(bed.ended), bed.pids()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    bed.loop.run_until(lambda: len(bed.pids()) == 2 and not bed.pids() & pids)
    assert bed.run("succeed") == [Succeeded()]
    assert len(bed.ended) == told + 1


@pytest.fixture
def stillborn(tmp_path, monkeypatch):
    """A handler whose children die as soon as they are born; say how many were."""
    monkeypatch.syspath_prepend(tmp_path)
    births = tmp_path / "births"
    code = f"""
        import os
        def die():
            with open({str(births)!r}, "a") as file:
                file.write("born ")
            os._exit(1)
        os.register_at_fork(after_in_child=die)
        def handle(body): pass
    """
    (tmp_path / "stillborn.py").write_text(textwrap.dedent(code))
    return lambda: len(births.read_text().split())


def test_children_that_die_at_once_are_replaced_ever_more_slowly(stillborn):
    with lay_bed("stillborn:handle", concurrency=2) as bed:
        bed.submit(b"")
        started = bed.loop.now()
        bed.loop.run_until(lambda: bed.loop.now() - started > 1.0)
        assert 2 <= stillborn() <= 20
        assert len(bed.runner.withdraw()) == 1


def test_worker_whose_children_all_die_at_once_says_so_in_the_end(stillborn, monkeypatch):
    monkeypatch.setattr(household, "LONGEST_PAUSE", 0.01)
    with lay_bed("stillborn:handle", concurrency=2) as bed:
        jobs = bed.submit(b"")
        bed.loop.run_until(lambda: bed.failures)
        assert "exited with code 1 before it runs one" in bed.failures[0]
        assert stillborn() > household.MOST_MISFORTUNES
        assert bed.runner.withdraw() == jobs
