"""Mode Process runs a handler in children: what it is given, what comes back, and what is left when it is over."""

import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import samples
from process_bed import is_alive, lay_bed, make_job, wire_job

from redrive.handler import HandlerError
from redrive.outcome import Failed, Rejected, Snoozed, Succeeded, Unreadable
from redrive.properties import Properties
from redrive.runners.open_files import allow_files

MIB = 1 << 20


@pytest.fixture(scope="module")
def bed():
    """One for all tests that leave it as it was."""
    with lay_bed() as bed:
        yield bed


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("succeed", Succeeded()),
        ("snooze", Snoozed(timedelta(seconds=5))),
        ("retry", Failed("later", ("redrive.Retry",), asked_delay=timedelta(seconds=90))),
        ("reject never", Rejected("never")),
        ("raise_error no", Failed("no", ("ValueError", "Exception", "BaseException"))),
        ("exit_python 3", Failed("3", ("SystemExit", "BaseException"))),
        ("interrupt", Failed("", ("KeyboardInterrupt", "BaseException"))),
    ],
)
def test_result_is_what_the_handler_said(bed, body, result):
    (came,) = bed.run(body)
    assert (replace(came, trace="") if hasattr(came, "trace") else came) == result


def test_trace_leads_into_the_handler(bed):
    (failed,) = bed.run("raise_error no")
    assert "process_handlers.py" in failed.trace
    assert "in raise_error" in failed.trace


def test_handler_that_takes_the_message_is_given_all_of_it():
    properties = Properties(message_id="m-7", priority=3, headers={"tenant": "a", "n": [1, {"deep": b"\xff"}]})
    message = samples.deliver(properties, body=b"body", redrive_attempt=3, redrive_first_attempt_at="2026-01-01T00:00Z")
    with lay_bed("process_handlers:check_message") as bed:
        (failed,) = bed.run(wire_job(message))
    assert failed.error == repr(message)


def test_handler_that_takes_the_body_is_given_the_body():
    with lay_bed("process_handlers:take_body") as bed:
        assert bed.run(b"xxx", b"", b"y")[:2] == [Succeeded(), Succeeded()]


def test_body_that_is_not_what_the_handler_wants_is_unreadable():
    with lay_bed("process_handlers:take_text") as bed:
        (result,) = bed.run(b"\xff")
    assert isinstance(result, Unreadable)


def test_async_handlers_are_awaited():
    with lay_bed("process_handlers:wait_async") as bed:
        assert bed.run(b"0", b"0.01", b"0.001") == [Succeeded()] * 3


@pytest.mark.parametrize("size", [65_000, 65_536, 70_000, 16 * MIB, 40 * MIB])
def test_large_body_comes_through_whole(size):
    bodies = [os.urandom(size) for _ in range(3)]
    jobs = [wire_job(samples.deliver(body=body, digest=hashlib.sha256(body).hexdigest())) for body in bodies]
    with lay_bed("process_handlers:check_digest", concurrency=2) as bed:
        assert bed.run(*jobs) == [Succeeded()] * 3


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        ("no_such_module:handle", "the handler no_such_module:handle cannot be imported: ModuleNotFoundError"),
        ("process_handlers:no_such", "the handler process_handlers:no_such cannot be imported: AttributeError"),
        ("leaves:handle", "cannot be imported: the process that imports it exited with code 7"),
        ("dies:handle", "cannot be imported: the process that imports it was ended by SIGKILL"),
    ],
)
def test_handler_that_cannot_be_imported_is_told_in_one_sentence(tmp_path, monkeypatch, handler, problem):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "leaves.py").write_text("import os\nos._exit(7)\n")
    (tmp_path / "dies.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(HandlerError) as error, lay_bed(handler):
        pass
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_handler_is_found_on_the_path_of_the_worker_and_nowhere_else(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('this is not the json that was meant')")
    (tmp_path / "handlers_here.py").write_text("def handle(body): pass")
    monkeypatch.chdir(tmp_path)
    with lay_bed() as bed:
        assert bed.run("succeed") == [Succeeded()]
    with pytest.raises(HandlerError), lay_bed("handlers_here:handle"):
        pass


@pytest.fixture
def files(monkeypatch):
    """Limit the open files, until the end of the test."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda soft, hard: monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_files_that_many_children_need_are_asked_for(files):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files(300, hard)
    allow_files(500)
    assert Path("/proc/self/limits").read_text().split("Max open files")[1].split()[:2] == ["500", str(hard)]


def test_more_children_than_there_can_be_files_are_refused_in_one_sentence(files):
    files(300, 400)
    with pytest.raises(HandlerError) as error, lay_bed(concurrency=100):
        pass
    assert "worker.concurrency is too high: it needs 856 open files, and a process may have 400" in str(error.value)


def test_one_child_runs_jobs_in_the_order_in_which_they_came(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    with lay_bed(concurrency=1) as bed:
        jobs = bed.submit(*(make_job("succeed", str(number)) for number in range(300)))
        bed.wait_for(*jobs)
    assert [one.job for one in bed.ended] == jobs
    assert (tmp_path / "runs").read_text().split() == [str(number) for number in range(300)]


def test_fast_jobs_are_sent_ahead_and_slow_ones_are_not(bed):
    bed.run(*["succeed"] * 300)
    assert bed.runner._household.crew.tempo.depth > 4
    bed.run(*["work 0.02"] * 60)
    assert bed.runner._household.crew.tempo.depth == 1


def test_slow_message_holds_up_nobody_while_a_child_is_free(bed, tmp_path):
    bed.run(*["succeed"] * 300)  # so that much is sent ahead
    slow = bed.submit(*[f"wait_for {tmp_path / 'done'}"] * 3)
    jobs = bed.submit(*["succeed"] * 200)
    bed.wait_for(*jobs)
    assert not {one.job for one in bed.ended} & set(slow)
    (tmp_path / "done").touch()
    bed.wait_for(*slow)
    bed.assert_each_succeeded_once([*slow, *jobs])


def test_as_many_jobs_run_at_once_as_there_are_children(bed, tmp_path):
    (tmp_path / "done.pids").touch()
    jobs = bed.submit(*[f"tell_pid_and_wait_for {tmp_path / 'done'}"] * 10)
    bed.loop.run_until(lambda: len((tmp_path / "done.pids").read_text().split()) == 4)
    withdrawn = bed.runner.withdraw()
    assert len(withdrawn) == 6
    (tmp_path / "done").touch()
    bed.wait_for(*(job for job in jobs if job not in withdrawn))


def test_child_whose_only_job_was_withdrawn_is_given_others(tmp_path):
    with lay_bed(concurrency=1) as bed:
        bed.loop.run_until(lambda: len(bed.pids()) == 1)
        for _ in range(50):
            bed.submit("succeed")
            bed.runner.withdraw()
        assert bed.run("succeed") == [Succeeded()]


def test_children_are_replaced_after_their_runs_and_no_job_notices():
    with lay_bed(concurrency=2, runs=50) as bed:
        bed.loop.run_until(lambda: len(bed.pids()) == 2)
        first = bed.pids()
        jobs = bed.submit(*["succeed"] * 1000)
        bed.wait_for(*jobs)
        bed.assert_each_succeeded_once(jobs)
        assert not first & bed.pids()
        bed.loop.run_until(lambda: not any(map(is_alive, first)))


@pytest.mark.parametrize("register", ["atexit.register(", "weakref.finalize(handle, "])
def test_child_that_is_replaced_does_what_its_handler_has_registered_for_the_exit(tmp_path, monkeypatch, register):
    monkeypatch.syspath_prepend(tmp_path)
    farewell = tmp_path / "farewell"
    code = f"""
import atexit, pathlib, weakref
weakref.finalize(atexit.register, str)
def handle(body): {register}pathlib.Path({str(farewell)!r}).touch)
"""
    (tmp_path / "polite.py").write_text(code)
    with lay_bed("polite:handle", concurrency=1, runs=1) as bed:
        bed.run(b"", b"")
        bed.loop.run_until(farewell.exists)


def test_what_the_import_has_registered_for_the_exit_is_done_once_and_by_no_child(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    code = f"""
import atexit, os, pathlib, tempfile
folder = tempfile.TemporaryDirectory(dir={str(tmp_path)!r})
def say_farewell():
    with open({str(tmp_path / "farewells")!r}, "a") as file:
        print(os.getpid(), file=file)
atexit.register(say_farewell)
def handle(body):
    pathlib.Path(folder.name, "file").touch()
    pathlib.Path({str(tmp_path / "folder")!r}).write_text(folder.name)
"""
    (tmp_path / "sharing.py").write_text(code)
    with lay_bed("sharing:handle", concurrency=1, runs=1) as bed:
        zygote = bed.zygote
        for _ in range(5):
            assert bed.run(b"") == [Succeeded()]
            bed.loop.run_until(lambda: not bed.runner._household.departing)
    assert (tmp_path / "farewells").read_text().split() == [str(zygote)]
    assert not Path((tmp_path / "folder").read_text()).exists()


def test_handler_that_forks_is_answered_once(bed):
    before = len(bed.ended)
    jobs = bed.submit(*["fork_and_return"] * 5, *["succeed"] * 50)
    bed.wait_for(*jobs)
    bed.assert_each_succeeded_once(jobs)
    assert len(bed.ended) == before + 55


@pytest.mark.parametrize(("given", "code"), [("3", 3), ("", 0), ("what was wrong", 1)])
def test_process_that_a_handler_forks_exits_with_its_own_code(bed, given, code):
    (result,) = bed.run(f"fork_and_exit {given}")
    assert result.error == f"it exited with {code}"


def test_alarm_that_a_message_has_left_does_not_hurt_the_next():
    with lay_bed(concurrency=1) as bed:
        assert bed.run("set_alarm 0.3", "work 0.6") == [Succeeded()] * 2


def test_message_that_a_child_cannot_take_for_want_of_files_is_run_by_another():
    with lay_bed(concurrency=1) as bed:
        bed.run("leak_files")
        (leaky,) = bed.pids()
        (result,) = bed.run("succeed " + "x" * MIB)
        assert result == Succeeded()
        assert leaky not in bed.pids()


def test_large_message_that_cannot_be_sent_fails_and_holds_up_nobody(monkeypatch):
    def forbid(_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    with lay_bed(concurrency=1) as bed:
        bed.run("succeed")
        monkeypatch.setattr(os, "memfd_create", forbid)
        large, *others = bed.run("succeed " + "x" * MIB, "succeed", "succeed", within=10)
        assert isinstance(large, Failed)
        assert "cannot be handed to another process: PermissionError" in large.error
        assert others == [Succeeded()] * 2
        (slow,) = bed.submit("work 0.2")
        (large,) = bed.submit("succeed " + "x" * MIB)  # found to be so when there is room for it
        bed.wait_for(slow, large, within=10)


def test_kernel_that_must_kill_kills_a_child_rather_than_the_worker(bed):
    bed.run("succeed")
    scores = {Path(f"/proc/{pid}/oom_score_adj").read_text() for pid in bed.pids()}
    assert scores == {"1000\n"}
    assert Path("/proc/self/oom_score_adj").read_text() != "1000\n"


def test_what_a_handler_prints_is_seen_at_once(capfd):
    with lay_bed() as bed:
        bed.run("print Hello")
        assert capfd.readouterr().out == "Hello\n"


def test_stop_ends_what_runs_and_reports_nothing_more(tmp_path):
    with lay_bed(concurrency=1) as bed:
        bed.submit(f"start_program {tmp_path}/pid", "succeed")
        bed.loop.run_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        bed.runner.stop()
        assert bed.ended == []
        assert not is_alive(int((tmp_path / "pid").read_text()))


def test_stop_ends_what_messages_have_left_in_sessions_of_their_own(tmp_path):
    with lay_bed(concurrency=1) as bed:
        bed.run(f"leave_a_session {tmp_path}/pid")
        program = int((tmp_path / "pid").read_text())
        assert is_alive(program)
    assert not is_alive(program)


def test_children_die_with_their_worker(tmp_path):
    script = Path(__file__).with_name("process_worker.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as worker:
        assert worker.stdout
        pids = [int(pid) for pid in worker.stdout.readline().split()]
        assert len(pids) == 3
        assert all(map(is_alive, pids))
        worker.send_signal(signal.SIGKILL)
    wait_until_dead(pids)


def wait_until_dead(pids: list[int]) -> None:
    from loops import SmallLoop

    loop = SmallLoop()
    loop.run_until(lambda: not any(map(is_alive, pids)))
    loop.close()


def test_time_that_a_handlers_module_sets_for_every_socket_is_not_that_of_the_connection_to_the_worker(
    tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    code = "import socket\nsocket.setdefaulttimeout(0.05)\ndef handle(body): pass\n"
    (tmp_path / "hasty.py").write_text(code)
    with lay_bed("hasty:handle", concurrency=1) as bed:
        bed.loop.run_until(bed.pids)
        before, began = bed.pids(), bed.loop.now()
        bed.loop.run_until(lambda: bed.loop.now() - began > 0.5)
        assert bed.run(b"") == [Succeeded()]
        assert bed.pids() == before


def test_module_that_replaces_sockets_does_not_replace_those_to_the_worker(tmp_path, monkeypatch):
    """As gevent does: its sockets wait in their own way, and nobody would be told that something was answered."""
    monkeypatch.syspath_prepend(tmp_path)
    code = """
import select, socket
def refuse(*_, **__): raise AssertionError("not this one")
socket.socket = select.poll = refuse
def handle(body): pass
"""
    (tmp_path / "patching.py").write_text(code)
    with lay_bed("patching:handle", concurrency=1) as bed:
        assert bed.run(b"", b"") == [Succeeded(), Succeeded()]
