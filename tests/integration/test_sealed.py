"""Sealed programs leave nothing behind, however they or their starter end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_lists import program_of

from redrive_testbed import sealed
from redrive_testbed.processes import Process, Processes
from redrive_testbed.sealed import Seal
from redrive_testbed.shell import wait_until

# A program that leaves a daemon behind: the daemon is not its child any more.
DAEMON = ("sh", "-c", "(setsid sleep 1000 &) ; exec sleep 1000")
ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def seal(session_broker, tmp_path):
    """Use the root file system of a broker, which is there because the broker is."""
    return Seal(session_broker.root, user="rabbitmq", home=tmp_path)


@pytest.fixture
def processes(tmp_path):
    processes = Processes(tmp_path)
    yield processes
    for name in processes.names():
        sealed.kill(processes, name)


def start_daemon(processes, seal, **how):
    process = processes.start("daemon", seal.command(*DAEMON, env=ENV, **how))
    wait_until("there is no daemon", lambda: sleepers(process) == 2, within=30)
    return process, sealed.pids_inside(process)


def sleepers(process):
    return sum(program_of(pid) == "sleep" for pid in sealed.pids_inside(process))


def living(pids):
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_ended_program_takes_its_daemons_with_it(processes, seal):
    _, pids = start_daemon(processes, seal)
    sealed.end(processes, "daemon", patience=20)
    assert living(pids) == []
    assert processes.names() == []


def test_killed_program_takes_its_daemons_with_it(processes, seal):
    _, pids = start_daemon(processes, seal)
    sealed.kill(processes, "daemon")
    assert living(pids) == []


def test_program_that_ignores_the_polite_way_is_ended_by_force(processes, seal):
    stubborn = seal.command("sh", "-c", "trap '' TERM; while :; do sleep 1; done", env=ENV)
    process = processes.start("stubborn", stubborn)
    wait_until("it does not sleep", lambda: sleepers(process) == 1, within=30)
    sealed.end(processes, "stubborn", patience=0.5)
    assert not process.alive()


def test_nothing_stays_when_only_the_outermost_process_is_killed(processes, seal):
    process, pids = start_daemon(processes, seal)
    os.kill(process.pid, signal.SIGKILL)
    wait_until("something still runs", lambda: living(pids) == [], within=30)


def test_leashed_program_dies_with_its_starter(seal, tmp_path):
    command = [str(word) for word in seal.command(*DAEMON, env=ENV, leashed=True)]
    script = "import subprocess, sys, time; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", script, *command], stdout=subprocess.PIPE, text=True) as starter:
        program = Process("program", pid=int(starter.stdout.readline()), born=0, log=tmp_path)
        wait_until("there is no daemon", lambda: sleepers(program) == 2, within=30)
        pids = [program.pid, *sealed.pids_inside(program)]
        starter.kill()
    wait_until("something still runs", lambda: living(pids) == [], within=30)


def test_status_of_the_program_comes_out(seal):
    command = [str(word) for word in seal.command("sh", "-c", "exit 7", env=ENV)]
    assert subprocess.run(command, check=False).returncode == 7
