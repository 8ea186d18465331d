"""What is kept of a wrong trial: all that tells of it, nothing large, and nothing of one that was right."""

import gzip
import os

import pytest
from faults import suites
from faults.accounting import Account, Complaint, Wrong
from faults.remains import FINDINGS, keep, kept_if_wrong
from faults.suites import PROCESSES
from faults.trial import Outcome
from faults.worker_faults import WorkerKilled

from redrive_testbed.errors import TestbedError

WRONG = Complaint("m-1-plain", Wrong.LOST)
FILES = {
    "worker/findings.json": b"{}",
    "worker/ledger": b"run\n",
    "worker/log-0": b"done\n",
    "worker/broker/uri": b"amqp://user:password@127.0.0.1/",
    "brokers/logs/rabbit.log": b"started\n",
    "brokers/rabbit/mnesia/quorum/segment": b"messages",
}


@pytest.fixture
def trial(tmp_path):
    folder = tmp_path / "trial"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)
    return folder


def names(folder):
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_notes_logs_and_complaints_are_kept_and_neither_messages_nor_passwords(trial, tmp_path):
    into = keep(trial, tmp_path / "kept" / "4-worker-killed-5", [WRONG])
    kept = {"worker/findings.json", "worker/ledger", "worker/log-0", "brokers/logs/rabbit.log"}
    assert names(into) == {"complaints", *kept}
    assert all((into / name).read_bytes() == FILES[name] for name in kept)
    assert (into / "complaints").read_text() == "m-1-plain: lost\n"


def test_what_was_kept_before_stays(trial, tmp_path):
    first, second = (keep(trial, tmp_path / "kept", [number]) for number in (1, 2))
    assert (first.name, second.name) == ("kept", "kept-2")
    assert (first / "complaints").read_text() == "1\n"


def test_large_file_is_packed_and_what_does_not_fit_is_named(trial, tmp_path):
    (trial / "worker" / "ledger").write_bytes(b"run\n" * (1 << 19))
    (trial / "worker" / "log-1").write_bytes(os.urandom(200_000))
    into = keep(trial, tmp_path / "kept", [WRONG], most=100_000)
    assert gzip.decompress((into / "worker" / "ledger.gz").read_bytes()) == b"run\n" * (1 << 19)
    assert (into / "left-out").read_text() == "worker/log-1\n"
    assert {"worker/log-0", "brokers/logs/rabbit.log"} <= names(into)
    assert "worker/log-1" not in names(into)


def test_nothing_is_kept_of_what_was_right(trial, tmp_path):
    with kept_if_wrong(trial, "name", findings=tmp_path / "kept"):
        pass
    assert not (tmp_path / "kept").exists()


def test_what_cannot_be_kept_hides_nothing(trial, tmp_path, capsys):
    (tmp_path / "kept").touch()
    with pytest.raises(ValueError, match="broken"), kept_if_wrong(trial, "name", findings=tmp_path / "kept"):
        raise ValueError("broken")
    assert "could not be kept" in capsys.readouterr().out


class Broker:
    """As much of a node as a trial's surroundings ask for: it leaves a log, and takes its folder along."""

    version = "4.3.6"

    def __init__(self, state):
        self._log = state / "logs" / "rabbit.log"
        self._log.parent.mkdir()
        self._log.write_text("started\n")

    def remove(self):
        self._log.unlink()


def run(monkeypatch, tmp_path, *, trial, start=lambda places, *_, **__: Broker(places.state)):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(suites, "start_broker", start)
    monkeypatch.setattr(suites, "run_trial", trial)
    with PROCESSES.ready() as perform:
        return perform("4", [[WorkerKilled()]], seed=5, messages=60, name="4-worker-killed-5")


def played(*complaints):
    def play(nodes, folder, lanes, *, seed, messages):
        (folder / "ledger").write_text("run\n")
        return Outcome((), Account(60, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, complaints), (), 0.0, 0, 1.0)

    return play


def test_trial_with_a_complaint_leaves_what_it_found(monkeypatch, tmp_path, capsys):
    run(monkeypatch, tmp_path, trial=played(WRONG))
    into = tmp_path / FINDINGS / "4-worker-killed-5"
    assert names(into) == {"complaints", "worker/ledger", "brokers/logs/rabbit.log"}
    assert "faults-findings/4-worker-killed-5" in capsys.readouterr().out


def test_trial_that_is_right_leaves_nothing(monkeypatch, tmp_path):
    run(monkeypatch, tmp_path, trial=played())
    assert names(tmp_path) == set()


def test_trial_that_ends_with_an_error_leaves_what_it_found(monkeypatch, tmp_path):
    def break_down(nodes, folder, lanes, *, seed, messages):
        (folder / "ledger").write_text("run\n")
        raise ValueError("it is still publishing")

    with pytest.raises(ValueError, match="still publishing"):
        run(monkeypatch, tmp_path, trial=break_down)
    into = tmp_path / FINDINGS / "4-worker-killed-5"
    assert names(into) == {"complaints", "worker/ledger", "brokers/logs/rabbit.log"}
    assert "it is still publishing" in (into / "complaints").read_text()


def test_broker_that_does_not_start_leaves_its_log(monkeypatch, tmp_path):
    def start(places, *_, **__):
        Broker(places.state)
        raise TestbedError("it lets nobody in")

    with pytest.raises(TestbedError):
        run(monkeypatch, tmp_path, trial=played(), start=start)
    assert names(tmp_path / FINDINGS / "4-worker-killed-5") == {"complaints", "brokers/logs/rabbit.log"}
