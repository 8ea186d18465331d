"""The ledger of the worker's bench: what handlers noted is counted right."""

import pytest

from bench.worker_ledger import Ledger

ALL = range(4)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", len(ALL))


def test_whoever_opens_the_file_sees_the_same_notes(ledger, tmp_path):
    ledger.note_success(3, 7)
    other = Ledger(tmp_path / "ledger")
    assert (other.succeeded(ALL), other.succeeded_at(3)) == (1, 7)


def test_message_that_succeeds_on_the_attempt_it_should_has_spent_none_too_many(ledger):
    ledger.note_attempt(0, 2)
    assert ledger.overspent(ALL, failures=1) == 0


def test_attempts_beyond_the_one_that_should_have_succeeded_are_overspent(ledger):
    ledger.note_attempt(0, 4)
    ledger.note_attempt(1, 2)
    assert ledger.overspent(ALL, failures=1) == 2


def test_first_attempt_that_succeeds_is_the_one_that_counts(ledger):
    ledger.note_attempt(0, 2)
    ledger.note_attempt(0, 5)
    assert ledger.overspent(ALL, failures=1) == 0


def test_runs_beyond_one_success_and_the_ordered_failures_are_duplicates(ledger):
    for _ in range(3):
        ledger.note_success(1, 1)
        ledger.note_failure(1, 1)
    assert ledger.duplicated(ALL, failures=1) == 4


def test_notes_of_one_message_do_not_touch_its_neighbours(ledger):
    ledger.note_failure(1, 5)
    ledger.note_success(1, 6)
    ledger.note_attempt(1, 9)
    assert (ledger.failed(range(2, 4)), ledger.succeeded(range(1)), ledger.overspent(range(2, 4), failures=0)) == (
        0,
        0,
        0,
    )
