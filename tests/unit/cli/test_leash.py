"""A program on a leash: it ends as it likes, or with us, and leaves nobody behind."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from redrive_cli.leashed import describe_end, put_on_leash
from redrive_testbed.shell import wait_until

# Says its pid, and on SIGTERM that it came; ends at the second, or never.
STUBBORN = """
import os, signal, sys, time
seen = []
def end(*_):
    seen.append(1)
    print("term", len(seen), flush=True)
    if len(seen) == {patience}:
        sys.exit(7)
signal.signal(signal.SIGTERM, end)
print(os.getpid(), flush=True)
while True:
    time.sleep(0.05)
"""
# Starts a daemon as programs do: in a session of its own, and nobody's child.
DAEMON = """
import os, time
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(writing, str(os.getpid()).encode())
        time.sleep(600)
    os._exit(0)
os.wait()
print(os.read(reading, 20).decode(), flush=True)
"""


def alive(pid):
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_gone(*pids):
    wait_until(f"{pids} still run", lambda: not any(map(alive, pids)), within=30, every=0.02)


@pytest.fixture
def folder(tmp_path):
    """Give the folder that goes with a program whose starter is gone."""
    (tmp_path / "run" / "worker").mkdir(parents=True)
    (tmp_path / "run" / "worker" / "password").write_text("secret")
    return tmp_path / "run" / "worker"


@contextmanager
def leashed(script, folder, *, patience=30.0):
    command = put_on_leash([sys.executable, "-c", script], patience=patience, folder=folder)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, start_new_session=True) as leash:
        yield leash
        leash.kill()


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("", 0),
        ("raise SystemExit(2)", 2),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("import os; os.kill(os.getpid(), 15)", 143),
    ],
)
def test_leash_ends_as_its_program_did(script, code, folder):
    with leashed(script, folder) as leash:
        assert leash.wait(30) == code
    assert folder.exists()


def test_program_that_cannot_be_started_is_named(folder):
    command = put_on_leash(["/nowhere/at-all"], patience=0, folder=folder)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as leash:
        assert leash.stderr.readline() == "error: /nowhere/at-all cannot be started: No such file or directory\n"
        assert leash.wait(30) == 127


def test_program_reads_nothing_from_its_leash(folder):
    with leashed("import sys; print(repr(sys.stdin.read()))", folder) as leash:
        assert leash.stdout.readline() == "''\n"


def test_each_word_to_end_reaches_the_program_once(folder):
    with leashed(STUBBORN.format(patience=2), folder) as leash:
        leash.stdout.readline()
        for count in (1, 2):
            leash.stdin.write("t")
            leash.stdin.flush()
            assert leash.stdout.readline() == f"term {count}\n"
        assert leash.wait(30) == 7
    assert folder.exists()


def test_word_to_kill_ends_a_program_that_does_not_listen(folder):
    with leashed(STUBBORN.format(patience=0), folder) as leash:
        leash.stdout.readline()
        leash.stdin.write("k")
        leash.stdin.flush()
        assert leash.wait(30) == 137


def test_signal_to_the_leash_is_handed_on(folder):
    with leashed(STUBBORN.format(patience=1), folder) as leash:
        leash.stdout.readline()
        leash.terminate()
        assert leash.wait(30) == 7


def test_program_that_is_let_go_may_finish_and_its_folder_goes(folder):
    with leashed(STUBBORN.format(patience=1), folder) as leash:
        leash.stdout.readline()
        leash.stdin.close()
        assert leash.stdout.readline() == "term 1\n"
        assert leash.wait(30) == 7
    assert not folder.parent.exists()


def test_program_that_does_not_finish_in_time_is_asked_again_and_then_killed(folder):
    with leashed(STUBBORN.format(patience=0), folder, patience=0.2) as leash:
        leash.stdout.readline()
        leash.stdin.close()
        assert leash.stdout.read() == "term 1\nterm 2\n"
        assert leash.wait(30) == 137


def test_program_without_patience_is_killed_at_once(folder):
    with leashed(STUBBORN.format(patience=0), folder, patience=0) as leash:
        leash.stdout.readline()
        leash.stdin.close()
        assert (leash.stdout.read(), leash.wait(30)) == ("", 137)


def test_folder_of_another_program_stays(folder):
    (folder.parent / "other").mkdir()
    with leashed(STUBBORN.format(patience=1), folder) as leash:
        leash.stdout.readline()
        leash.stdin.close()
        leash.wait(30)
    assert list(folder.parent.iterdir()) == [folder.parent / "other"]


def test_program_ends_when_its_starter_is_killed(folder):
    command = put_on_leash([sys.executable, "-c", STUBBORN.format(patience=1)], patience=30, folder=folder)
    starter = f"import subprocess as s; s.Popen({command!r}, stdin=s.PIPE, start_new_session=True).wait()"
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as process:
        pid = int(process.stdout.readline())
        process.kill()
    wait_gone(pid)
    wait_until("the folder is still there", lambda: not folder.exists(), within=30, every=0.02)


def test_program_is_told_to_end_when_its_leash_is_killed(folder):
    with leashed(STUBBORN.format(patience=1), folder) as leash:
        pid = int(leash.stdout.readline())
        leash.kill()
        assert leash.stdout.readline() == "term 1\n"
    wait_gone(pid)


def test_daemon_ends_with_the_program_that_started_it(folder):
    with leashed(DAEMON, folder) as leash:
        pid = int(leash.stdout.readline())
        assert leash.wait(30) == 0
    assert not alive(pid)


def test_daemon_ends_when_its_program_is_killed(folder):
    with leashed(f"{DAEMON}\ntime.sleep(600)", folder, patience=0) as leash:
        pid = int(leash.stdout.readline())
        assert alive(pid)
        leash.stdin.close()
        leash.wait(30)
    assert not alive(pid)


def test_what_the_terminal_sends_does_not_reach_a_program_on_a_leash(folder):
    with leashed("import os, time; print(os.getpid(), flush=True); time.sleep(600)", folder) as leash:
        pid = int(leash.stdout.readline())
        assert os.getsid(pid) == leash.pid != os.getsid(0)
        assert os.getpgid(pid) == pid


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (137, "was ended by signal 9"),
        (-signal.SIGKILL, "was ended by signal 9"),
    ],
)
def test_end_is_described(code, words):
    assert describe_end(code) == words
