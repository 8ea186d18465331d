"""The figures of trials: kept as they were, added up by fault, and nothing that went wrong is left out."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from faults.figures import (
    BEGIN,
    END,
    KUBERNETES_BEGIN,
    KUBERNETES_END,
    Row,
    place,
    read_report,
    read_rows,
    render,
    write_row,
)
from faults.suites import KUBERNETES, PROCESSES

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"

ROW = Row(
    "4.3.6", "broker-killed", 7, 1020, 0, 0, 3, 1, 2, 0, 0, (4.25,), 9.5, 40.0, "2026-05-01", "python -m faults",
    waiting=0,
)  # fmt: skip
WAITING = 4


def cells(text, fault):
    [line] = [line for line in text.splitlines() if f" {fault} |" in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_row_is_read_as_it_was_written():
    rows = [ROW, replace(ROW, together=("a", "b"), recoveries=(1.0, None))]
    assert read_rows("".join(f"{write_row(row)}\n" for row in rows)) == rows


def test_row_of_a_time_when_nobody_looked_for_what_is_stuck_is_read():
    old = {name: value for name, value in json.loads(write_row(ROW)).items() if name != "stuck"}
    assert read_rows(json.dumps(old)) == [ROW]


def test_row_of_a_time_when_nobody_counted_what_waits_is_read_and_nothing_is_claimed_of_it():
    old = {name: value for name, value in json.loads(write_row(ROW)).items() if name != "waiting"}
    [row] = read_rows(json.dumps(old))
    assert row.waiting is None
    assert cells(render([row]), "broker-killed")[WAITING] == "–"
    assert cells(render([row, ROW]), "broker-killed")[WAITING] == "–"
    assert cells(render([row, replace(ROW, waiting=3)]), "broker-killed")[WAITING] == "3"


def test_runs_of_a_fault_are_added_up():
    other = replace(ROW, seed=8, waiting=7, lost=2, stuck=5, wrong=3, recoveries=(30.0,), lateness=1.0)
    text = render([ROW, other])
    counts = ["2", "2,040", "7", "2", "5", "3", "6", "2", "4", "0", "0"]
    assert cells(text, "broker-killed") == ["4.3.6", "broker-killed", *counts, "30.0 (30.0)", "9.5"]


def test_releases_and_faults_have_lines_of_their_own():
    text = render([ROW, replace(ROW, version="3.10.8"), replace(ROW, fault="disk-alarm", recoveries=())])
    assert text.count("broker-killed") == 2
    assert cells(text, "disk-alarm")[-2] == "–"


def test_fault_after_which_nothing_was_handled_is_no_fault_of_which_nothing_is_known():
    assert cells(render([replace(ROW, recoveries=(2.0, None))]), "broker-killed")[-2] == "2.0 (never)"
    assert cells(render([replace(ROW, recoveries=(None,))]), "broker-killed")[-2] == "never"


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


def on_page(text):
    return read_report(place(f"{BEGIN}\n{END}\n", text))


def test_line_of_a_page_whose_rows_are_on_another_machine_stays_as_it_was():
    mixed = replace(ROW, fault="several together", together=("disk-alarm", "worker-killed"))
    before = on_page(render([ROW, mixed]))
    assert render([], before=before) == render([ROW, mixed])
    text = render([replace(ROW, fault="disk-alarm", command="python -m faults --seed 8")], before=before)
    assert cells(text, "broker-killed") == cells(render([ROW]), "broker-killed")
    assert "- 2026-05-01: `python -m faults`\n- 2026-05-01: `python -m faults --seed 8`" in text
    assert "RabbitMQ 4.3.6, seed 7: disk-alarm, worker-killed" in text


def test_line_of_the_same_release_and_fault_is_replaced_and_so_is_what_was_broken_together():
    mixed = replace(ROW, fault="several together", together=("disk-alarm", "worker-killed"))
    text = render([replace(mixed, seed=9, messages=7)], before=on_page(render([ROW, mixed])))
    assert text.count("several together") == 1
    assert cells(text, "several together")[3] == "7"
    assert "seed 7" not in text
    assert "RabbitMQ 4.3.6, seed 9: disk-alarm, worker-killed" in text


def test_line_of_a_page_without_a_title_claims_nothing_under_it():
    before = on_page("| RabbitMQ | fault | runs |\n| --- | --- | --- |\n| 4.3.6 | broker-killed | 1 |")
    assert cells(render([], before=before), "broker-killed") == ["4.3.6", "broker-killed", "1", *["–"] * 12]


@pytest.mark.parametrize("suite", [PROCESSES, KUBERNETES])
def test_report_of_the_page_stays_as_it_is_when_nothing_new_is_known(suite):
    page = PAGE.read_text()
    assert suite.place(page, suite.render([], page)) == page
