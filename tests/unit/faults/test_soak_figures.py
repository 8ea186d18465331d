"""The figures of an hour's work: what is wrong with it is told, and what was hardly seen is not called flat."""

from dataclasses import replace

import pytest
from faults.accounting import Account, Complaint, Wrong
from faults.flatness import Course
from faults.soak_figures import BEGIN, END, Soak, place, render, sparkline

FLAT = Course((40.0, 41.0), 50.0, 1.0, 4.0)
RIGHT = Account(100, 80, 20, 0, 0, 0, 0, 3, 1, 2, 0)


def soak(account=RIGHT, **courses):
    told = {("worker 1", what): course for what, course in (courses or {"memory": FLAT}).items()}
    return Soak("4.3.6", 7, "2026-05-01", "python -m faults.soak", 61.2, account, 5, ("b", "a", "b"), told)


def test_hour_without_a_complaint_is_right():
    assert soak().is_right


@pytest.mark.parametrize(
    "wrong",
    [
        soak(memory=Course((40.0, 41.0), 50.0, 4.1, 4.0)),
        soak(memory=None),
        soak(Account(100, 79, 20, 0, 0, 1, 0, 0, 0, 0, 0, (Complaint("m-1", Wrong.LOST),))),
        soak(Account(100, 79, 20, 0, 0, 1, 0, 0, 0, 0, 0)),
        soak(Account(100, 79, 20, 1, 0, 0, 0, 0, 0, 0, 0)),
        replace(soak(), wrong=("told too often",)),
    ],
    ids=["grows", "hardly seen", "complaint", "lost", "waiting", "told"],
)
def test_hour_in_which_something_grew_was_not_seen_still_waits_or_is_missing_is_not_right(wrong):
    assert not wrong.is_right


def test_hour_that_was_not_watched_is_not_right():
    assert not Soak("4", 7, "", "", 1.0, RIGHT, 0, (), {}).is_right


def test_figures_are_told_with_the_faults_counted():
    text = render(soak(memory=FLAT, files=None))
    assert "3 faults: a (1), b (2)" in text
    assert "| worker 1 | memory | 40.0 | 41.0 | 50.0 | 1.0 | 4.0 | ██ | yes |" in text
    assert "| worker 1 | files | – | – | – | – | – | – | not judged |" in text
    assert "| 100 | 80 | 20 | 0 | 0 | 0 | 0 | 3 | 1 | 2 | 0 | 5 |" in text


def test_what_grew_is_marked():
    assert "| **no** |" in render(soak(memory=Course((1.0, 9.0), 9.0, 8.0, 4.0)))


def test_line_begins_at_nothing():
    assert sparkline((10.0, 10.0)) == "██"
    assert sparkline((0.0, 5.0, 10.0)) == "▁▅█"
    assert sparkline((0.0, 0.0)) == "▁▁"


def test_report_is_placed_between_its_own_markers():
    page = f"a\n{BEGIN}\nold\n{END}\nb <!-- faults: begin -->"
    assert place(page, "new") == f"a\n{BEGIN}\n\nnew\n{END}\nb <!-- faults: begin -->"
    with pytest.raises(ValueError, match="soak"):
        place("nothing", "new")
