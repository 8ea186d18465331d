"""What a message tells of the end of the process that ran it."""

import json

import pytest
from faults.accounting import Disturbance, Findings, Letter, Published, Run
from faults.evidence import to_letter, was_ended_for_memory, write_findings
from faults.queue_faults import NEIGHBOUR
from faults.scripts import SCRIPTS
from faults.search import Found

from redrive.delivery import Delivery
from redrive.message import read_message
from redrive.properties import Properties
from redrive.runners.verdicts import judge_end, too_big

KERNEL = "was ended by SIGKILL: the container was out of memory"


def note(name="greedy", **facts):
    return json.dumps({"run": "1", "id": name, "failed_by": "redrive.Crashed", "at": 1.0, **facts}) + "\n"


@pytest.fixture
def ledger(tmp_path):
    def write(*lines):
        (tmp_path / "ledger").write_text("".join(lines))
        return tmp_path / "ledger"

    return write


@pytest.mark.parametrize(
    "told",
    [too_big(used=250 << 20, limit=256 << 20, size=200 << 20), judge_end(None, how=KERNEL, guilty=True)],
    ids=["worker", "kernel"],
)
def test_process_that_was_ended_because_memory_was_short_is_known(ledger, told):
    first = note(failed_by=None, error=None)
    assert was_ended_for_memory(ledger(first, json.dumps({"run": "1"}) + "\n", note(error=told.error)), "greedy")


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [note(failed_by=None, error=None)],
        [note(error="the worker ended while it ran this message and nothing else")],
        [note(error=judge_end(None, how="was ended by SIGKILL", guilty=True).error)],
        [note("another", error=too_big(used=1, limit=1, size=1).error)],
        [note(failed_by="shop.Down", error=too_big(used=1, limit=1, size=1).error)],
    ],
)
def test_process_that_ended_in_any_other_way_is_not(ledger, lines):
    assert not was_ended_for_memory(ledger(*lines), "greedy")


def test_note_that_is_being_written_is_not_read(ledger):
    assert not was_ended_for_memory(ledger(note(failed_by=None, error=None), note(error="x")[:20]), "greedy")


def test_letter_says_when_it_was_parked():
    headers = {"redrive-dead-reason": "Crashed", "redrive-dead-at": "2026-05-01T12:00:00.250Z", "redrive-crashes": 3}
    delivery = Delivery(1, "", "", False, b"", Properties(message_id="m", headers=headers))
    letter = to_letter(read_message(delivery, now=None, max_attempts=1, new_id=str))
    assert (letter.dead_at, letter.crashes) == (1777636800.25, 3)


@pytest.mark.parametrize(
    ("key", "ours", "theirs"),
    [
        ("0.0.0.0.2.shop/neighbour", set(), 1),
        ("0.0.0.0.2.shop/orders", {"m"}, 0),
        ("nonsense", {"m"}, 0),
    ],
)
def test_orphan_is_a_neighbours_or_ours_by_its_routing_key(key, ours, theirs):
    delivery = Delivery(1, "redrive.dead", key, False, b"", Properties(message_id="m"))
    found, names = Found(), set()
    found.take_orphans([read_message(delivery, now=None, max_attempts=1, new_id=str)], names, {NEIGHBOUR: 1})
    assert (names, found.neighbours[NEIGHBOUR.address]) == (ours, theirs)


def test_what_is_known_of_a_trial_beside_its_runs_is_written_down(tmp_path):
    found = Findings(
        {"m": Published(SCRIPTS["flaky"], 5.0)},
        [Run("m", 1, "fail", 10.0, 10.1)],
        [Letter("m", "Rejected", 1)],
        waiting={"m-2", "m-1"},
        timed_out={("m", 1)},
        disturbances=[Disturbance("broker-killed", 15.0, 16.0)],
    )
    write_findings(tmp_path / "findings.json", found)
    told = json.loads((tmp_path / "findings.json").read_text())
    assert told["published"]["m"]["script"]["name"] == "flaky"
    assert (told["waiting"], told["timed_out"], told["runs"]) == (["m-1", "m-2"], [["m", 1]], [])
    assert (told["letters"][0]["reason"], told["disturbances"][0]["name"]) == ("Rejected", "broker-killed")
