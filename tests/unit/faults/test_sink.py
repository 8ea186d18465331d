"""Notes that pods tell: each is in the ledger once, before it is answered; and what they say of timeouts."""

import json
import socket
import urllib.request
from types import SimpleNamespace
from urllib.parse import urlsplit

from faults.accounting import Letter
from faults.evidence import read_runs, told_timeouts
from faults.sink import Sink
from workers import accounted


def tell(url, line):
    urllib.request.urlopen(url, data=line, timeout=5).close()  # noqa: S310 - ours


def test_note_is_in_the_ledger_when_it_is_answered_and_once_if_it_is_told_again(tmp_path):
    ledger = tmp_path / "ledger"
    sink = Sink("127.0.0.1", ledger)
    tell(sink.url, b'{"run": 1}\n')
    tell(sink.url, b'{"run": 1}\n')
    assert ledger.read_bytes() == b'{"run": 1}\n'
    tell(sink.url, b'{"run": 2}\n')
    sink.close()
    assert ledger.read_bytes() == b'{"run": 1}\n{"run": 2}\n'


def test_note_of_a_pod_that_was_killed_while_it_told_it_is_not_kept(tmp_path):
    ledger = tmp_path / "ledger"
    sink = Sink("127.0.0.1", ledger)
    where = urlsplit(sink.url)
    with socket.create_connection((where.hostname, where.port), timeout=5) as half:
        half.sendall(b'POST / HTTP/1.0\r\nContent-Length: 11\r\n\r\n{"run": ')
        half.shutdown(socket.SHUT_WR)
        assert half.recv(100) == b""
    sink.close()
    assert ledger.read_bytes() == b""


def test_handler_tells_the_beginning_and_the_end_of_its_run(tmp_path, monkeypatch):
    sink = Sink("127.0.0.1", tmp_path / "ledger")
    monkeypatch.setenv("LEDGER", sink.url)
    accounted.handle({"do": ["ok"]}, SimpleNamespace(id="m-1", attempt=2, headers={}))
    sink.close()
    (run,) = read_runs(tmp_path / "ledger")
    assert (run.message, run.attempt, run.what) == ("m-1", 2, "ok")
    assert run.ended is not None


def test_attempt_that_took_too_long_is_known_from_the_next_one_and_from_the_dead_letter(tmp_path):
    ledger = tmp_path / "ledger"
    notes = [
        {"run": 1, "id": "slow", "attempt": 2, "failed_by": "redrive.TimedOut"},
        {"run": 2, "id": "down", "attempt": 2, "failed_by": "accounted.Down"},
        {"run": 2},
    ]
    ledger.write_text("".join(json.dumps(note) + "\n" for note in notes))
    letters = [
        Letter("late", "Exhausted", 3, failed_by="redrive.TimedOut"),
        Letter("hopeless", "Exhausted", 3, failed_by="accounted.Down"),
    ]
    assert told_timeouts(ledger, letters) == {("slow", 1), ("late", 3)}
