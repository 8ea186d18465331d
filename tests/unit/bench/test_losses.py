"""Messages that somebody lost: told in words whoever it was, and a failure of the bench only if it was Redrive."""

from dataclasses import fields

import pytest

from bench import letters, report, worker_report
from bench.figures import Figures, Homecoming
from bench.figures import Run as LadderRun
from bench.worker_figures import Retry, Success
from bench.worker_figures import Run as WorkerRun


def row(kind, contender, lost):
    values = {field.name: 0 for field in fields(kind)} | {"version": "4.3.6", "part": "scan", "workload": "fixed 2 s"}
    known = {field.name: values[field.name] for field in fields(kind)}
    return kind(**known | {"contender": contender, "lost": lost})


def worker_run(*losses):
    return WorkerRun(
        {},
        success=[row(Success, name, lost) for name, lost in losses],
        retry=[row(Retry, name, lost) for name, lost in losses],
    )


def ladder_run(*losses):
    rows = [(row(Figures, *loss), row(Homecoming, *loss)) for loss in losses]
    return LadderRun({}, figures=[one for one, _ in rows], homecomings=[other for _, other in rows])


def letters_run(*losses):
    rows = [[row(letters.Figures, *loss)] * 2 for loss in losses]
    return letters.Run({}, figures=[figures for both in rows for figures in both])


BENCHES = [
    (worker_run, worker_report.render, "async", "celery"),
    (ladder_run, report.render, "hex", "plain"),
    (letters_run, letters.render, "redrive", "bare"),
]


@pytest.mark.parametrize(("make", "render", "ours", "other"), BENCHES)
def test_what_others_lose_is_told_and_no_failure(make, render, ours, other):
    run = make((ours, 0), (other, 2))
    assert run.lost() == 0
    assert f"**Messages were lost**: 4 by `{other}`.\n" in render(run)


@pytest.mark.parametrize(("make", "render", "ours", "other"), BENCHES)
def test_what_redrive_loses_is_told_and_a_failure(make, render, ours, other):
    run = make((ours, 1), (other, 2))
    assert run.lost() == 2
    assert f"2 by `{ours}`, which is Redrive" in render(run)


@pytest.mark.parametrize(("make", "render", "ours", "other"), BENCHES)
def test_where_nothing_was_lost_nothing_is_said(make, render, ours, other):
    assert "lost**" not in render(make((ours, 0), (other, 0)))


def test_hand_written_consumers_are_not_redrive():
    assert worker_run(("select", 1)).lost() == 0
