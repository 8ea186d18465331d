"""The figures of trials: kept as they were, added up by fault, and nothing that went wrong is left out."""

import json
from dataclasses import replace

import pytest
from faults.figures import BEGIN, END, KUBERNETES_BEGIN, KUBERNETES_END, Row, place, read_rows, render, write_row

ROW = Row("4.3.6", "broker-killed", 7, 1020, 0, 0, 3, 1, 2, 0, 0, (4.25,), 9.5, 40.0, "2026-05-01", "python -m faults")


def cells(text, fault):
    [line] = [line for line in text.splitlines() if f" {fault} |" in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_row_is_read_as_it_was_written():
    rows = [ROW, replace(ROW, together=("a", "b"), recoveries=(1.0, None))]
    assert read_rows("".join(f"{write_row(row)}\n" for row in rows)) == rows


def test_row_of_a_time_when_nobody_looked_for_what_is_stuck_is_read():
    old = {name: value for name, value in json.loads(write_row(ROW)).items() if name != "stuck"}
    assert read_rows(json.dumps(old)) == [ROW]


def test_runs_of_a_fault_are_added_up():
    text = render([ROW, replace(ROW, seed=8, lost=2, stuck=5, wrong=3, recoveries=(30.0,), lateness=1.0)])
    expected = ["4.3.6", "broker-killed", "2", "2,040", "2", "5", "3", "6", "2", "4", "0", "0", "30.0 (30.0)", "9.5"]
    assert cells(text, "broker-killed") == expected


def test_releases_and_faults_have_lines_of_their_own():
    text = render([ROW, replace(ROW, version="3.10.8"), replace(ROW, fault="disk-alarm", recoveries=(None,))])
    assert text.count("broker-killed") == 2
    assert cells(text, "disk-alarm")[-2] == "–"


def test_what_was_broken_together_is_told_with_its_seed():
    text = render([replace(ROW, fault="several together", together=("disk-alarm", "worker-killed"))])
    assert "RabbitMQ 4.3.6, seed 7: disk-alarm, worker-killed" in text


def test_report_stands_between_the_markers_of_its_page_and_nothing_else_is_touched():
    page = f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n"
    assert place(page, "new") == f"# Title\n\n{BEGIN}\n\nnew\n{END}\n\nThe end.\n"
    with pytest.raises(ValueError, match="no place"):
        place("# Title\n", "new")


def test_table_of_kubernetes_tells_how_long_it_took_until_all_was_as_before_and_has_markers_of_its_own():
    text = render([replace(ROW, whole=(3.0, 12.5)), replace(ROW, whole=(7.0,))], whole=True)
    assert cells(text, "broker-killed")[-1] == "12.5"
    assert "whole again after" not in render([ROW])
    page = f"{BEGIN}\na\n{END}\n{KUBERNETES_BEGIN}\nb\n{KUBERNETES_END}\n"
    placed = place(page, "new", begin=KUBERNETES_BEGIN, end=KUBERNETES_END)
    assert placed == f"{BEGIN}\na\n{END}\n{KUBERNETES_BEGIN}\n\nnew\n{KUBERNETES_END}\n"
