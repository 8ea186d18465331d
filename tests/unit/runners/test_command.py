"""Command: a program a message, and nothing of it left when it is over."""

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from runner_bed import hold, running, slot_threads, with_neighbours

from redrive.handler import HandlerError
from redrive.memory import Reading
from redrive.outcome import Crashed, Failed, Rejected, Snoozed, Succeeded, TimedOut
from redrive.properties import Properties
from redrive.runners import command as command_mode
from redrive.runners import lineage, program, slots, strays
from redrive.runners.command import ProgramRunner, read_exit
from redrive.runners.program import Exit
from redrive.spec.worker import CommandRunner, ExitCodes

LONG = timedelta(hours=1)
CODES = ExitCodes(done=(0,), reject=(3,), snooze=(4,))


def command(*args, concurrency=4, timeout=LONG, memory=None, codes=CODES):
    spec = CommandRunner(args, codes)

    def make(loop):
        settings = {"concurrency": concurrency, "timeout": timeout, "loop": loop, "memory": memory}
        return ProgramRunner(spec, consumer="shop/orders", **settings)

    return running(make)


def shell(script, **settings):
    return command("sh", "-c", script, **settings)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Have what programs write go nowhere, unless a test looks at it."""
    with Path(os.devnull).open("wb") as nowhere:
        monkeypatch.setattr(program, "_STDERR", nowhere.fileno())
        yield


def is_alive(pid):
    """Say whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def read_pid(path):
    hold(lambda: path.exists() and path.read_text().strip())
    return int(path.read_text())


def test_exit_codes_say_what_came_of_it():
    with shell("read code; echo some >&2; echo words >&2; echo >&2; exit $code") as bed:
        assert bed.run(b"0", b"3", b"4", b"75", b"1") == [
            Succeeded(),
            Rejected("words", "some\nwords\n\n"),
            Snoozed(),
            Failed("words", trace="some\nwords\n\n", exit_code=75),
            Failed("words", trace="some\nwords\n\n", exit_code=1),
        ]


def test_map_of_exit_codes_is_the_users():
    with shell("read code; exit $code", codes=ExitCodes(done=(0, 7), reject=(8,), snooze=())) as bed:
        results = bed.run(b"7", b"8", b"4")
        assert [type(result) for result in results] == [Succeeded, Rejected, Failed]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"", "exit code 1, and nothing on stderr"),
        (b"\n \n", "exit code 1, and nothing on stderr"),
        (b"one\ntwo\n\n", "two"),
        (b"\xff\xfe broken", "\ufffd\ufffd broken"),
    ],
)
def test_last_line_on_stderr_is_the_error(said, error):
    assert read_exit(Exit(1, said), CODES).error == error


# What a program can do, and what that comes to. None may harm another, for each has a process of its own.
KILLERS = {
    b"fails": ("echo no >&2; exit 1", Failed),
    b"kills itself": ("kill -KILL $$", Crashed),
    b"segfaults": ("kill -SEGV $$", Crashed),
    b"kills its group": ("kill -KILL 0", Crashed),
    b"sleeps": ("sleep 60", TimedOut),
    b"spins": ("while :; do :; done", TimedOut),
    b"ignores signals": ("trap '' TERM INT HUP; while :; do sleep 1; done", TimedOut),
    b"writes without end": ("yes >&2", TimedOut),
    b"writes to stdout without end": ("yes", TimedOut),
    b"closes everything and sleeps": ("exec sleep 60 <&- >&- 2>&-", TimedOut),
    b"leaves somebody behind": ("sleep 60 & exit 5", Failed),
    b"stops itself": ("kill -STOP $$", TimedOut),
}


def test_killers_are_told_from_their_neighbours_who_all_succeed(monkeypatch):
    monkeypatch.setattr(program, "TERM_SECONDS", 0.2)
    cases = "".join(f'"{name.decode()}") {script};;\n' for name, (script, _) in KILLERS.items())
    with shell(f'read -r body; case "$body" in\n{cases}esac', concurrency=8, timeout=timedelta(seconds=4)) as bed:
        bodies = [body + b"\n" for killer in KILLERS for body in with_neighbours(killer)[45:56]]
        kinds = [(body.strip(), type(result)) for body, result in zip(bodies, bed.run(*bodies), strict=True)]
        neighbours = [kind for body, kind in kinds if body not in KILLERS]
        assert {body: kind for body, kind in kinds if body in KILLERS} == {
            name: kind for name, (_, kind) in KILLERS.items()
        }
        assert len(neighbours) >= 100
        assert {*neighbours} == {Succeeded}
        assert not bed.failures


def test_every_job_is_either_taken_back_or_reported_once():
    with command("true") as bed:
        jobs = bed.submit(*[b"x"] * 60)
        bed.wait(lambda: len(bed.ended) > 10)
        back = bed.runner.withdraw()
        bed.wait(lambda: len(bed.ended) + len(back) >= len(jobs))
        assert bed.reports() + Counter(back) == dict.fromkeys(jobs, 1)


def test_death_by_a_signal_is_a_crash_of_this_message_alone():
    with shell("kill -SEGV $$") as bed:
        assert bed.run(b"x") == [Crashed("the program was ended by SIGSEGV", alone=True)]


def test_body_comes_by_stdin_however_large(tmp_path):
    body = os.urandom(5_000_000)
    with shell(f"cat > {tmp_path}/body") as bed:
        assert bed.run(body) == [Succeeded()]
    assert (tmp_path / "body").read_bytes() == body


@pytest.mark.parametrize("script", ["true", "exec <&-; sleep 0.1", "head -c 1 > /dev/null"])
def test_program_need_not_read_its_body(script):
    with shell(script) as bed:
        assert bed.run(b"x" * 5_000_000, b"") == [Succeeded()] * 2


def test_program_that_writes_much_leaves_only_the_end_of_it(capfd, monkeypatch):
    with shell("head -c 20000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; echo the end >&2; exit 1") as bed:
        result = bed.run(b"x")[0]
        assert result.error == "the end"
        assert len(result.trace) == program.LONGEST_SAID


def test_what_a_program_writes_comes_out_of_our_own_stderr(capfd, monkeypatch):
    monkeypatch.setattr(program, "_STDERR", 2)
    with shell("echo to stdout; echo to stderr >&2") as bed:
        bed.run(b"x")
    out, err = capfd.readouterr()
    assert sorted(err.splitlines()) == ["to stderr", "to stdout"]
    assert not out


@pytest.fixture
def own_stderr(monkeypatch):
    """Have our stderr be a pipe, of which this is the end to read from."""
    heard, ours = os.pipe()
    monkeypatch.setattr(program, "_STDERR", ours)
    yield heard
    os.close(ours)
    os.close(heard)


def test_stderr_that_nobody_reads_holds_up_neither_a_program_nor_the_end_of_its_time(own_stderr):
    script = "read then; head -c 1000000 /dev/zero >&2; exec $then"
    with shell(script, timeout=timedelta(seconds=3)) as bed:
        done, slept = bed.run(b"true\n", b"sleep 60\n")
        assert done == Succeeded()
        assert isinstance(slept, TimedOut)
        assert not bed.failures


def test_stderr_that_is_read_slowly_gets_all_that_a_program_writes(own_stderr):
    heard = []

    def listen():
        while sum(map(len, heard)) < 1_000_000:
            heard.append(os.read(own_stderr, 16_384))
            time.sleep(0.002)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    with shell("seq 1000000 | head -c 1000000 >&2") as bed:
        assert bed.run(b"x") == [Succeeded()]
    listener.join(20)
    assert b"".join(heard) == "".join(f"{number}\n" for number in range(1, 1_000_000)).encode()[:1_000_000]


def test_stopping_kills_a_program_whose_thread_hangs(tmp_path, monkeypatch):
    let_go = threading.Event()
    monkeypatch.setattr(slots, "FAREWELL_SECONDS", 0.1)
    monkeypatch.setattr(program, "_pass_on", lambda *_: let_go.wait())
    with shell(f"echo $$ > {tmp_path}/pid; echo x >&2; exec sleep 60") as bed:
        bed.submit(b"x")
        pid = read_pid(tmp_path / "pid")
        bed.runner.stop()
        hold(lambda: not is_alive(pid))
    let_go.set()
    hold(lambda: not slot_threads())


def test_program_is_asked_to_end_when_its_time_is_over():
    script = "trap 'echo cleaning up >&2; exit 0' TERM; while :; do sleep 0.05; done"
    with shell(script, timeout=timedelta(milliseconds=500)) as bed:
        result = bed.run(b"x")[0]
        assert isinstance(result, TimedOut)
        assert "cleaning up" in result.trace


def test_all_that_a_program_has_started_ends_with_it_when_its_time_is_over(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "TERM_SECONDS", 0.2)
    script = f"(trap '' TERM; echo $$ > {tmp_path}/pid; sleep 60) & trap '' TERM; sleep 60 & wait; wait"
    with shell(script, timeout=timedelta(seconds=1)) as bed:
        assert isinstance(bed.run(b"x")[0], TimedOut)
        # Killed they are; a busy machine takes a moment to be rid of them.
        hold(lambda: not [pid for pid in group_members(read_pid(tmp_path / "pid")) if is_alive(pid)])


def group_members(group):
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[2]) == group:
                    yield int(entry.name)


def test_what_a_program_leaves_behind_is_killed_when_it_has_ended(tmp_path):
    with shell(f"sleep 60 & echo $! > {tmp_path}/pid") as bed:
        assert bed.run(b"x") == [Succeeded()]
        hold(lambda: not is_alive(read_pid(tmp_path / "pid")))


@pytest.fixture
def first_process():
    """Be the one who inherits orphans, like the first process of a container."""
    lineage.adopt_orphans()
    yield
    lineage._prctl(lineage._PR_SET_CHILD_SUBREAPER, 0)


def test_what_a_program_leaves_behind_is_buried_by_the_first_process_of_a_container(first_process, tmp_path):
    with shell(f"sleep 60 & echo $! > {tmp_path}/pid; exit 0") as bed:
        bed.run(b"x")
        assert not Path(f"/proc/{read_pid(tmp_path / 'pid')}").exists()


def list_zombies():
    """List the zombies that are ours to bury."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "Z" and int(parent) == os.getpid():
                yield int(entry.name)


def test_what_has_left_the_group_is_buried_when_it_ends_by_the_first_process_of_a_container(first_process, monkeypatch):
    monkeypatch.setattr(strays, "LOOK_SECONDS", 0.02)
    with shell("setsid sleep 0.2 < /dev/null > /dev/null 2>&1 & exit 0") as bed:
        bed.run(*[b"x"] * 10)
        bed.wait(lambda: len(strays.list_children()) == 0)
        assert not list(list_zombies())


def test_burying_strays_takes_no_programs_exit_code(first_process, monkeypatch):
    monkeypatch.setattr(strays, "LOOK_SECONDS", 0.001)
    with shell("setsid true & exit 5", concurrency=8) as bed:
        results = bed.run(*[b"x"] * 200)
        assert {(type(result), result.exit_code) for result in results} == {(Failed, 5)}


def test_who_inherits_no_orphans_buries_nobodys_children(monkeypatch):
    monkeypatch.setattr(strays, "LOOK_SECONDS", 0.001)
    with subprocess.Popen(["sh", "-c", "exit 7"]) as other, command("true") as bed:
        hold(lambda: not is_alive(other.pid))
        bed.run(*[b"x"] * 10)
        assert other.wait() == 7


def test_nobody_waits_for_what_has_left_the_group_and_holds_stderr_open(tmp_path):
    leaves = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 60' &"
    try:
        with shell(f"{leaves} while [ ! -s {tmp_path}/pid ]; do :; done") as bed:
            assert bed.run(b"x") == [Succeeded()]
    finally:
        os.kill(read_pid(tmp_path / "pid"), signal.SIGKILL)


def read_environment(path):
    pairs = (entry.partition(b"=") for entry in path.read_bytes().split(b"\0"))
    return {name.decode(): value for name, _, value in pairs}


def test_facts_are_in_the_environment_beside_the_workers_own(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_REGION", "north")
    with shell(f"env -0 > {tmp_path}/env") as bed:
        headers = {"x-customer": "c-7", "nested": {"list": [1, 2.5, None, b"\xff"]}, "x-death": [{"count": 1}]}
        bed.submit_message(Properties(message_id="m-9", content_type="text/plain", headers=headers), redrive_attempt=3)
        bed.wait(lambda: bed.ended)
    told = read_environment(tmp_path / "env")
    assert told["SHOP_REGION"] == b"north"
    assert told["REDRIVE_MESSAGE_ID"] == b"m-9"
    assert told["REDRIVE_ATTEMPT"] == b"3"
    assert told["REDRIVE_MAX_ATTEMPTS"] == b"10"
    assert told["REDRIVE_CONSUMER"] == b"shop/orders"
    assert told["REDRIVE_EXCHANGE"] == b"shop.events"
    assert told["REDRIVE_ROUTING_KEY"] == b"order.created"
    assert told["REDRIVE_REDELIVERED"] == b"false"
    assert told["REDRIVE_FIRST_ATTEMPT_AT"] == b"2026-05-01T12:00:00.250Z"
    assert told["REDRIVE_CONTENT_TYPE"] == b"text/plain"
    assert told["REDRIVE_HEADERS"] == rb'{"x-customer": "c-7", "nested": {"list": [1, 2.5, null, "\\xff"]}}'


def test_message_that_was_retried_is_told_where_it_first_came_from(tmp_path):
    with shell(f"env -0 > {tmp_path}/env") as bed:
        origin = {"redrive_origin_exchange": "shop.events", "redrive_origin_routing_key": "order.created"}
        bed.submit_message(exchange="redrive.delivery", key="0.0.0.1.0.shop/orders", **origin)
        bed.wait(lambda: bed.ended)
    told = read_environment(tmp_path / "env")
    assert (told["REDRIVE_EXCHANGE"], told["REDRIVE_ROUTING_KEY"]) == (b"shop.events", b"order.created")


def test_facts_that_no_environment_can_hold_are_escaped_or_left_out(tmp_path):
    with shell(f"env -0 > {tmp_path}/env") as bed:
        headers = {"null": "a\0b", "surrogate": "\ud800", "huge": "x" * 200_000, "nan": float("nan"), "key\0": 1}
        properties = Properties(message_id="m\0-\ud800", content_type="\0" * 255, headers=headers)
        bed.submit_message(properties, key="k\0")
        bed.wait(lambda: bed.ended)
        assert bed.ended[0].result == Succeeded()
    told = read_environment(tmp_path / "env")
    assert told["REDRIVE_MESSAGE_ID"] == rb"m\x00-\ud800"
    assert told["REDRIVE_ROUTING_KEY"] == rb"k\x00"
    assert told["REDRIVE_HEADERS"] == rb'{"null": "a\u0000b", "surrogate": "\ud800", "nan": "nan", "key\u0000": 1}'


@pytest.mark.parametrize("name", ["no-such-program", "/no/such/program", "/etc/passwd", "/etc"])
def test_program_that_cannot_be_started_is_refused_at_the_start_with_what_to_change(name):
    says = f"the program {name} cannot be started: .*spec.worker.command.args"
    with pytest.raises(HandlerError, match=says), command(name):
        pass


@pytest.fixture
def few_files():
    """Let this process have few open files, until it asks for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_as_many_files_are_asked_for_as_programs_may_need(few_files):
    with shell("sleep 0.5", concurrency=60) as bed:
        assert {*bed.run(*[b"x"] * 60)} == {Succeeded()}


def test_want_of_files_is_told_at_the_start_and_leaves_none_open(monkeypatch):
    before = {*Path("/proc/self/fd").iterdir()}
    made = iter([program.Bell] * 3)

    def make():
        try:
            return next(made)()
        except StopIteration:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE)) from None

    monkeypatch.setattr(command_mode, "Bell", make)
    with pytest.raises(HandlerError, match=r"worker.concurrency is too high: Too many open files"), command("true"):
        pass
    assert {*Path("/proc/self/fd").iterdir()} == before


def test_program_that_is_gone_later_is_a_failure(tmp_path):
    script = tmp_path / "program"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    with command(str(script)) as bed:
        assert bed.run(b"x") == [Succeeded()]
        script.unlink()
        result = bed.run(b"y")[0]
        assert isinstance(result, Failed)
        assert result.error_types[0] == "FileNotFoundError"


def test_stopping_kills_what_runs_and_leaves_no_process_thread_or_file(monkeypatch):
    before = {*Path("/proc/self/fd").iterdir()}
    with shell("trap '' TERM; sleep 60 & wait; wait", timeout=timedelta(milliseconds=500)) as bed:
        bed.submit(b"x", b"y", b"z")
        bed.wait(lambda: len(bed.runner.children()) == 3)
        bed.wait(lambda: any(attempt.interrupted for attempt in bed.runner.running()))  # one is being asked to end
        pids = [pid for pid, _ in bed.runner.children()]
        bed.runner.stop()
        assert not slot_threads()
        assert not [pid for group in pids for pid in group_members(group) if is_alive(pid)]
        bed.turn()
        assert not bed.ended
    assert {*Path("/proc/self/fd").iterdir()} == before


def test_program_is_known_by_its_message_and_can_be_ended_as_a_crash():
    verdict = Crashed("too big", alone=False)
    with shell("sleep 60") as bed:
        suspect, other = [*bed.submit(b"x", alone=True), *bed.submit(b"y")]
        bed.wait(lambda: len(bed.runner.children()) == 2)
        for pid, _ in bed.runner.children():
            bed.runner.end_child(pid, verdict)
        bed.wait(lambda: len(bed.ended) == 2)
        assert bed.result_of(suspect) == Crashed("too big", alone=True)
        assert bed.result_of(other) == verdict


class Container:
    """A container whose memory is short as long as the test says."""

    def __init__(self):
        self.used = 0

    def read(self):
        return Reading(self.used, 100 << 20)

    def count_kills(self):
        return 0


def test_biggest_program_is_ended_before_the_memory_is_gone():
    container = Container()
    code = "import sys, time; big = sys.stdin.read() == 'big' and b'x' * 60_000_000; time.sleep(60)"
    with command(sys.executable, "-c", code, memory=container) as bed:
        jobs = bed.submit(b"small", b"big", b"small")
        bed.wait(lambda: len(bed.runner.children()) == 3)
        big = next(pid for pid, job in bed.runner.children() if job is jobs[1])
        bed.wait(lambda: int(Path(f"/proc/{big}/statm").read_text().split()[1]) * 4096 > 60_000_000)
        container.used = 99 << 20
        bed.wait(lambda: bed.ended)
        container.used = 0
        result = bed.result_of(jobs[1])
        assert isinstance(result, Crashed)
        assert not result.alone
        assert "99 MiB of its 100 MiB" in result.error
        assert len(bed.ended) == 1


def test_end_of_a_program_is_seen_where_the_kernel_does_not_tell(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    with shell("sleep 0.05; exit 3") as bed:
        assert isinstance(bed.run(b"x")[0], Rejected)
