"""Tables of the worker's bench: nobody is said to have a concurrency that it was not told, or a figure twice."""

import math
from dataclasses import fields

import pytest

from bench.worker_contenders import CONTENDERS, describe_concurrency
from bench.worker_figures import Retry, Run, Sleepers, Success
from bench.worker_report import render
from bench.worker_sweep_report import show_sweep


def row(contender, per_second, concurrency=4, handler_ms=0, body_bytes=1024):
    values = {field.name: 0 for field in fields(Success)} | {"version": "4.3.6", "contender": contender}
    known = {"per_second": per_second, "concurrency": concurrency, "handler_ms": handler_ms, "body_bytes": body_bytes}
    return Success(**values | known)


def lines_of(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, _rule, *others = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return head, others


@pytest.mark.parametrize("name", [name for name, contender in CONTENDERS.items() if not contender.concurrent])
def test_whoever_is_not_told_a_concurrency_says_what_it_runs_at_once(name):
    assert CONTENDERS[name].at_once


def test_concurrency_is_told_of_those_only_that_were_told():
    assert describe_concurrency(["select", "thread", "celery", "dramatiq"], 4) == (
        "Concurrency 4 is what `thread` and `celery` are told; `select` runs one at a time, with a prefetch of 500 "
        "(200 with retries); `dramatiq` runs 8 threads."
    )


def test_table_of_successes_says_under_it_what_each_runs_at_once():
    text = render(Run({}, success=[row("blocking", 100), row("process", 200)]))
    assert "Concurrency 4 is what `process` is told; `blocking` runs one at a time, with a prefetch of 100." in text


def test_sweep_shows_who_is_not_told_a_concurrency_once_for_each_kind_of_work():
    rows = [row("thread", 100 * at_once, at_once, ms) for ms in (0, 10) for at_once in (1, 4, 16)]
    rows += [row(name, rate, 1, ms) for ms in (0, 10) for name, rate in (("blocking", 50), ("dramatiq", 75))]
    (text,) = show_sweep(rows)
    head, lines = lines_of(text)
    assert head == ["handler ms", "bytes", "concurrency", "blocking", "thread", "dramatiq"]
    assert lines == [
        [ms, "1,024", at_once, *cells]
        for ms in ("0", "10")
        for at_once, cells in (
            ("1", ["50 (1.00)", "100 (2.00)", "75 (1.50)"]),
            ("4", ["″", "400 (8.00)", "″"]),
            ("16", ["″", "1,600 (32.00)", "″"]),
        )
    ]
    assert "″ is the same figure" in text


def test_sweep_of_larger_bodies_shows_everybody_in_its_only_row():
    (text,) = show_sweep([row("blocking", 50, 4, body_bytes=65_536), row("async", 100, 4, body_bytes=65_536)])
    assert lines_of(text)[1] == [["0", "65,536", "4", "50 (1.00)", "100 (2.00)"]]


def test_contender_that_was_not_measured_has_no_figure_in_the_sweep():
    (text,) = show_sweep([row("thread", 100, 1), row("thread", 400, 4), row("process", 90, 4)])
    assert [line[-1] for line in lines_of(text)[1]] == ["–", "90 (–)"]


def test_table_of_retries_says_who_was_offered_fewer_messages_a_second():
    values = {field.name: 0 for field in fields(Retry)} | {"version": "4.3.6", "concurrency": 4}
    paces = (("select", 50.0), ("thread", 50.0), ("command", 5.0))
    rows = [Retry(**values | {"contender": name, "offered_per_second": pace}) for name, pace in paces]
    assert "Lateness at 50 messages a second offered, 5 to `command`;" in render(Run({}, retry=rows))
    assert "Lateness at 50 messages a second offered;" in render(Run({}, retry=rows[:2]))


def test_sleepers_have_the_memory_of_the_worker_s_own_process_beside_that_of_all():
    values = {field.name: 0 for field in fields(Sleepers)} | {"version": "4.3.6", "contender": "process"}
    known = {"memory_before": 64.0, "memory_asleep": 65.0}
    new = Sleepers(**values | known | {"own_before": 33.0, "own_asleep": 34.0})
    old = Sleepers(**values | known | {"own_before": math.nan, "own_asleep": math.nan})
    for row_, own in ((new, ["33.0", "34.0"]), (old, ["–", "–"])):
        _, (line,) = lines_of(render(Run({}, sleepers=[row_])))
        assert line[4:8] == ["64.0", "65.0", *own]
