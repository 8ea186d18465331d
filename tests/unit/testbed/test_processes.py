import json
import os

import pytest

from redrive_testbed.errors import NotReady
from redrive_testbed.processes import Processes


@pytest.fixture
def processes(tmp_path):
    processes = Processes(tmp_path)
    yield processes
    for name in processes.names():
        processes.kill(name)


def test_started_program_is_found_by_another_command(processes, tmp_path):
    started = processes.start("sleeper", ["sleep", "60"])
    assert Processes(tmp_path).find("sleeper") == started


def test_second_start_leaves_the_first_running(processes):
    first = processes.start("sleeper", ["sleep", "60"])
    assert processes.start("sleeper", ["sleep", "60"]) == first


def test_stopped_program_is_gone_and_forgotten(processes):
    started = processes.start("sleeper", ["sleep", "60"])
    processes.stop("sleeper")
    assert not started.alive()
    assert processes.names() == []


def test_program_that_ignores_the_polite_signal_is_killed(processes):
    started = processes.start("deaf", ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"])
    while "ready" not in started.log.read_text():
        assert started.alive()
    processes.stop("deaf", patience=0.3)
    assert not started.alive()


def test_pid_that_now_belongs_to_somebody_else_is_neither_found_nor_ended(processes, tmp_path):
    processes.start("ours", ["sleep", "60"])
    record = tmp_path / "processes" / "ours.json"
    ours = json.loads(record.read_text())
    record.write_text(json.dumps(ours | {"pid": os.getpid()}))
    assert processes.find("ours") is None
    processes.stop("ours")  # would end this very test otherwise
    record.write_text(json.dumps(ours))


def test_record_of_an_earlier_boot_is_nobodys(processes, tmp_path):
    processes.start("ours", ["sleep", "60"])
    record = tmp_path / "processes" / "ours.json"
    ours = json.loads(record.read_text())
    record.write_text(json.dumps(ours | {"boot": "another"}))
    assert processes.find("ours") is None
    record.write_text(json.dumps(ours))


def test_program_that_ended_by_itself_is_told_with_the_end_of_its_log(processes):
    started = processes.start("brief", ["sh", "-c", "echo the reason; exit 3"])
    while started.alive():
        pass
    with pytest.raises(NotReady, match="the reason"):
        processes.must_live("brief")
