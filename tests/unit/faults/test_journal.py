"""Accounting part by part from disk comes to the same as all at once, and hides nothing that is wrong."""

import json
from dataclasses import replace

import pytest
from faults import journal
from faults.accounting import Disturbance, Findings, Letter, Published, Wrong, account
from faults.journal import LetterBox, Register, account_by_parts, pair_runs, sort_runs
from faults.scripts import SCRIPTS

NOTHING = Findings({}, [], [])


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(journal, "PART", 3)


class Hour:
    """Messages at 100, 110, 120 …, a part lasts 30 seconds; each is handled when it is a second old."""

    def __init__(self, folder, messages=10):
        self.folder = folder
        self.ledger = folder / "ledger"
        self.register, self.box = Register(folder), LetterBox(folder)
        self.names = [f"m-{number}-plain" for number in range(messages)]
        for name in self.names:
            self.register[name] = Published(SCRIPTS["plain"], self.at(name))
        self.notes = [note for name in self.names for note in self.run(name)]

    def at(self, name):
        return 100.0 + 10 * journal.number_of(name)

    def run(self, name, *, after=1.0, ended=True, attempt=1, what="ok"):
        key, at = f"{name} {after}", self.at(name) + after
        facts = {"attempt": attempt, "what": what, "snoozes": 0, "suspect": False}
        begin = {"run": key, "id": name, "at": at, **facts}
        return [begin, {"run": key, "at": at + 0.1}] if ended else [begin]

    def account(self, rest=NOTHING):
        self.ledger.write_text("".join(json.dumps(note) + "\n" for note in self.notes))
        return account_by_parts(self.register, sort_runs(self.ledger, self.folder), self.box, rest)


def test_sum_of_the_parts_is_the_sum_of_all(tmp_path):
    hour = Hour(tmp_path)
    hour.box.add(Letter("m-3-plain", "Rejected", 1), at=200.0)
    hour.notes += hour.run("m-4-plain", after=5.0)
    at_once = Findings(
        {name: Published(SCRIPTS["plain"], hour.at(name)) for name in hour.names},
        pair_runs(hour.notes),
        [Letter("m-3-plain", "Rejected", 1)],
    )
    found, expected = hour.account(), account(at_once)
    assert replace(found, complaints=()) == replace(expected, complaints=())
    assert {str(one) for one in found.complaints} == {str(one) for one in expected.complaints}
    assert {one.wrong for one in found.complaints} == {Wrong.WRONGLY_PARKED, Wrong.REPEATED, Wrong.DOUBLED}


def test_message_that_is_nowhere_is_lost(tmp_path):
    hour = Hour(tmp_path)
    hour.notes = [note for note in hour.notes if not note["run"].startswith("m-9-")]
    assert (hour.account().lost, hour.account().handled) == (1, 9)


def test_message_that_waits_is_not_lost_but_wrong(tmp_path):
    hour = Hour(tmp_path)
    hour.notes = [note for note in hour.notes if not note["run"].startswith("m-9-")]
    found = hour.account(replace(NOTHING, waiting={"m-9-plain"}))
    assert (found.lost, found.waiting) == (0, 1)
    assert [one.wrong for one in found.complaints] == [Wrong.WAITING]


def test_message_that_nobody_published_is_told(tmp_path):
    hour = Hour(tmp_path)
    hour.notes += hour.run("m-10-plain")
    [complaint] = hour.account().complaints
    assert complaint.wrong is Wrong.UNKNOWN


@pytest.mark.parametrize(("began", "excused"), [(101.0, True), (160.0, False)])
def test_only_what_was_broken_while_messages_of_its_part_lived_excuses_a_second_run(tmp_path, began, excused):
    hour = Hour(tmp_path)
    hour.notes += hour.run("m-0-plain", after=5.0)
    found = hour.account(replace(NOTHING, disturbances=[Disturbance("broker-killed", began, began + 1)]))
    assert (found.repeated, not found.complaints) == (1, excused)


def test_timed_out_attempt_is_known_to_its_part(tmp_path):
    hour = Hour(tmp_path)
    hour.notes = [note for note in hour.notes if not note["run"].startswith("m-7-")]
    hour.notes += hour.run("m-7-plain", attempt=2)
    assert [one.wrong for one in hour.account().complaints] == [Wrong.SKIPPED]
    assert not hour.account(replace(NOTHING, timed_out={("m-7-plain", 1)})).complaints


def test_run_that_was_killed_has_no_end(tmp_path):
    hour = Hour(tmp_path, messages=1)
    hour.notes = [*hour.run("m-0-plain", ended=False), *hour.run("m-0-plain", after=2.0)]
    assert hour.account().cut_short == 1


def test_cut_end_of_the_ledger_is_no_note(tmp_path):
    hour = Hour(tmp_path)
    hour.account()
    with hour.ledger.open("a") as ledger:
        ledger.write('{"run": "x", "id": "m-1-')
    pages = sort_runs(hour.ledger, tmp_path)
    assert len(pair_runs(pages.read(3))) == 1


def test_death_that_was_noted_a_little_after_the_last_letter_of_its_part_is_known_to_it(tmp_path):
    hour = Hour(tmp_path, messages=1)
    hour.notes = [*hour.run("m-0-plain", ended=False), *hour.run("m-0-plain", after=1.5, ended=False)]
    hour.box.add(Letter("m-0-plain", "Crashed", 1, crashes=3, dead_at=102.5), at=103.0)
    killed = [Disturbance("workers-killed", 100.0, 104.0, breaks=3)]
    assert not hour.account(replace(NOTHING, disturbances=killed, deaths=[103.5])).complaints
    assert hour.account(replace(NOTHING, disturbances=killed, deaths=[109.0])).complaints
