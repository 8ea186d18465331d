"""The process that all children are forked from may die too; there is another, or the worker says that it must go."""

import os
import select
import signal
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest
from process_bed import children, is_alive, lay_bed

from redrive.handler import HandlerError
from redrive.outcome import Crashed, Succeeded
from redrive.runners import household, lineage, nursery, spawned


@pytest.fixture
def quick(monkeypatch):
    """Pauses that a test can wait for."""
    monkeypatch.setattr(nursery, "LONGEST_PAUSE", 0.05)


def kill_zygote(bed):
    zygote = bed.zygote
    os.kill(zygote, signal.SIGKILL)
    bed.loop.run_until(lambda: not is_alive(zygote))


def test_death_of_the_zygote_ends_what_runs_and_nothing_that_waits(tmp_path):
    with lay_bed(concurrency=2) as bed:
        bed.run(*["succeed"] * 100)
        running = bed.submit(*[f"tell_pid_and_wait_for {tmp_path}/never"] * 2)
        bed.loop.run_until(lambda: len(pids_in(tmp_path / "never.pids")) == 2)
        waiting = bed.submit(*["succeed"] * 20)
        pids = bed.pids()
        kill_zygote(bed)
        bed.wait_for(*running, *waiting)
        bed.assert_each_succeeded_once(waiting)
        for job in running:
            result = bed.result_of(job)
            assert isinstance(result, Crashed)
            assert not result.alone
        assert not any(map(is_alive, pids))


def pids_in(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def test_answer_that_was_given_before_the_zygote_died_counts(tmp_path):
    with lay_bed(concurrency=1) as bed:
        bed.run("succeed")
        (job,) = bed.submit("succeed")
        (seat,) = bed.runner._household.seats.values()
        bell = seat.channel.answers.descriptor
        assert select.select([bell], [], [], 20)[0]  # the loop does not turn, and has not heard it
        os.kill(bed.zygote, signal.SIGKILL)
        bed.wait_for(job)
        assert bed.result_of(job) == Succeeded()


@pytest.fixture
def first_process():
    """Inherit orphans, as the first process of a container does."""
    lineage.adopt_orphans()
    yield
    lineage._prctl(lineage._PR_SET_CHILD_SUBREAPER, 0)


def test_worker_that_inherits_the_children_of_its_zygote_buries_them(first_process, tmp_path):
    with lay_bed(concurrency=2) as bed:
        jobs = bed.submit(f"start_program {tmp_path}/pid", f"tell_pid_and_wait_for {tmp_path}/never")
        bed.loop.run_until(lambda: pids_in(tmp_path / "pid") and pids_in(tmp_path / "never.pids"))
        pids = {*bed.pids(), *map(int, pids_in(tmp_path / "pid"))}
        kill_zygote(bed)
        bed.wait_for(*jobs)
        bed.loop.run_until(lambda: not pids & children())
        assert not any(map(is_alive, pids))


HELPERS = {
    "forked": """
        helper = os.fork()
        if not helper:
            time.sleep(60)
            os._exit(0)
    """,
    "started": """
        helper = subprocess.Popen(["sleep", "60"], close_fds=False).pid
    """,
    "forked with a copy of all sockets": """
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                os.dup(int(descriptor))
        helper = os.fork()
        if not helper:
            time.sleep(60)
            os._exit(0)
    """,
}


@pytest.fixture
def with_helper(tmp_path, monkeypatch):
    """Give a function that makes a handler whose import starts another process, which is ended with the test."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(code):
        head = "import os, subprocess, time\nfrom contextlib import suppress\nfrom process_handlers import handle\n"
        tail = f"\nwith open({str(tmp_path / 'helpers')!r}, 'a') as file:\n    print(helper, file=file)\n"
        (tmp_path / "with_helper.py").write_text(head + textwrap.dedent(code) + tail)
        return "with_helper:handle"

    yield make
    for pid in pids_in(tmp_path / "helpers"):
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("helper", HELPERS)
def test_death_of_the_zygote_is_noticed_whatever_its_import_has_started(with_helper, quick, tmp_path, helper):
    with lay_bed(with_helper(HELPERS[helper]), concurrency=1) as bed:
        (result,) = bed.run("kill_zygote", within=10)
        assert isinstance(result, Crashed)
        assert bed.run("succeed", within=10) == [Succeeded()]
        for pid in pids_in(tmp_path / "helpers")[:1]:  # its parent has died, and left nobody who knew of it
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("helper", ["forked", "started"])
def test_connection_to_the_zygote_is_not_given_to_what_its_import_starts(
    with_helper, quick, tmp_path, helper, monkeypatch
):
    monkeypatch.setattr(spawned, "_watch_death", lambda _: None)  # as in a kernel that does not tell
    monkeypatch.setattr(spawned.Spawned, "mourn", lambda _: None)
    with lay_bed(with_helper(HELPERS[helper]), concurrency=1) as bed:
        (result,) = bed.run("kill_zygote", within=10)
        assert isinstance(result, Crashed)
        for pid in pids_in(tmp_path / "helpers")[:1]:
            os.kill(int(pid), signal.SIGKILL)


def test_death_during_the_import_is_noticed_whatever_that_has_started(with_helper, tmp_path):
    handler = with_helper(HELPERS["forked with a copy of all sockets"])
    with (tmp_path / "with_helper.py").open("a") as file:
        file.write("os.kill(os.getpid(), 9)\n")
    with pytest.raises(HandlerError, match="was ended by SIGKILL"), lay_bed(handler):
        pass


def test_what_the_import_has_started_ends_with_the_worker(with_helper, tmp_path):
    with lay_bed(with_helper(HELPERS["forked"]), concurrency=1) as bed:
        bed.run("succeed")
    (helper,) = pids_in(tmp_path / "helpers")
    assert not is_alive(int(helper))


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(nursery, "LOOK", 0.1)


def test_zygote_that_does_not_fork_any_more_is_replaced(impatient, quick):
    with lay_bed(concurrency=1, runs=1) as bed:
        bed.run("succeed")
        bed.loop.run_until(lambda: bed.pids() and not bed.runner._household.departing)
        stopped = bed.zygote
        os.kill(stopped, signal.SIGSTOP)
        assert bed.run(*["succeed"] * 3, within=10) == [Succeeded()] * 3
        assert not is_alive(stopped)


def test_zygote_that_does_not_bury_any_more_is_replaced(impatient, quick, monkeypatch):
    died = household.Household.died

    def stop_zygote(self, number, status):
        if number in self.departing:  # nobody need be hired for it
            os.kill(bed.zygote, signal.SIGSTOP)
        died(self, number, status)

    with lay_bed(concurrency=1, runs=2) as bed:
        first = bed.zygote
        monkeypatch.setattr(household.Household, "died", stop_zygote)
        bed.run("succeed", "succeed")
        bed.loop.run_until(lambda: not is_alive(first))
        monkeypatch.undo()
        assert bed.run("succeed") == [Succeeded()]


def test_zygote_that_answers_is_not_replaced_however_slowly(impatient, tmp_path, monkeypatch):
    """Longer, for all of them together, than it may be silent."""
    monkeypatch.syspath_prepend(tmp_path)
    code = "import os, time\nos.register_at_fork(before=lambda: time.sleep(0.4))\nfrom process_handlers import handle\n"
    (tmp_path / "slow_forks.py").write_text(code)
    with lay_bed("slow_forks:handle", concurrency=4) as bed:
        zygote = bed.zygote
        bed.loop.run_until(lambda: len(bed.pids()) == 4)
        assert bed.zygote == zygote


def test_order_that_could_not_be_sent_is_sent_again(impatient, monkeypatch):
    tell, refused = spawned.Spawned.tell, []

    def refuse_once(self, *order, give=()):
        if order[0] not in refused:
            refused.append(order[0])
            return False
        return tell(self, *order, give=give)

    monkeypatch.setattr(spawned.Spawned, "tell", refuse_once)
    with lay_bed(concurrency=1, runs=1) as bed:
        zygote = bed.zygote
        assert bed.run(*["succeed"] * 5) == [Succeeded()] * 5
        bed.loop.run_until(lambda: refused == ["fork", "bury"] and not bed.runner._household._nursery._is_waiting())
        assert bed.zygote == zygote
        refused.append("end")


def test_zygote_that_may_have_no_more_open_files_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(household, "LONGEST_PAUSE", 0.01)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "greedy.py").write_text("from process_handlers import handle, leak_files\nleak_files('')\n")
    with lay_bed("greedy:handle", concurrency=1) as bed:
        bed.loop.run_until(lambda: bed.failures)
        assert "may have no more open files" in bed.failures[0]


def test_zygote_that_dies_again_and_again_is_started_again_and_again(quick):
    with lay_bed(concurrency=1) as bed:
        for _ in range(4):
            (result,) = bed.run("kill_zygote")
            assert isinstance(result, Crashed)
        assert bed.run("succeed") == [Succeeded()]
        assert bed.failures == []


def test_zygote_that_cannot_be_started_any_more_is_told_once_and_its_jobs_can_be_had(quick, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "fleeting.py").write_text("import process_handlers\nhandle = process_handlers.handle\n")
    with lay_bed("fleeting:handle", concurrency=1) as bed:
        bed.run("succeed")
        (tmp_path / "fleeting.py").write_text("raise RuntimeError('it is over')\n")
        (running,) = bed.submit("kill_zygote")
        waiting = bed.submit("succeed", "succeed")
        bed.loop.run_until(lambda: bed.failures)
        assert [one.job for one in bed.ended[1:]] == [running]
        (failure,) = bed.failures
        assert "the handler fleeting:handle cannot be imported: RuntimeError: it is over" in failure
        assert bed.runner.withdraw() == waiting


def test_fork_that_fails_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    code = f"""
import os
from pathlib import Path
fork = os.fork
def refuse():
    if not Path({str(tmp_path / "enough")!r}).exists():
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()
os.fork = refuse
def handle(body): pass
"""
    (tmp_path / "crowded.py").write_text(code)
    with lay_bed("crowded:handle", concurrency=2) as bed:
        (job,) = bed.submit(b"")
        started = bed.loop.now()
        bed.loop.run_until(lambda: bed.loop.now() > started + 0.3)
        assert bed.pids() == set()
        (tmp_path / "enough").touch()
        bed.wait_for(job)
        assert bed.result_of(job) == Succeeded()


def test_zygote_survives_the_signals_of_a_terminal_and_of_a_service_manager():
    with lay_bed(concurrency=1) as bed:
        bed.run("succeed")
        before = bed.zygote, bed.pids()
        for number in (signal.SIGINT, signal.SIGTERM):
            for pid in (bed.zygote, *bed.pids()):
                os.kill(pid, number)
        assert bed.run(*["work 0.01"] * 20) == [Succeeded()] * 20
        assert (bed.zygote, bed.pids()) == before


def test_orphans_of_a_handler_are_buried(tmp_path):
    with lay_bed(concurrency=1) as bed:
        bed.run(f"orphan_a_program {tmp_path}/pid")
        pid = int((tmp_path / "pid").read_text())
        bed.loop.run_until(lambda: not Path(f"/proc/{pid}").exists())
