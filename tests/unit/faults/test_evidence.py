"""What a message tells of the end of the process that ran it."""

import json

import pytest
from faults.evidence import to_letter, was_ended_for_memory
from faults.queue_faults import NEIGHBOUR
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
