"""What comes from a worker by one pipe, taken apart: its own lines, and its handler's."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive_cli.worker_lines import Lines, Printed, Told, read_line

DONE = '{"time": "2026-05-01T12:00:00.250Z", "level": "info", "event": "done", "id": "m-1", "attempt": 2}'


def test_line_of_the_log_is_read_with_its_facts():
    [told] = read_line(DONE)
    assert (told.event, told.level, told.id, told.number("attempt")) == ("done", "info", "m-1", 2)
    assert told.time == datetime(2026, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    assert told.raw == DONE
    assert told.is_outcome


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        "",
        "{",
        '{"time": "',
        '{"time": "now"',
        '{"time": "now", "level": "info"}',
        '{"time": "now", "event": 3}',
        '{"event": "done", "id": "a handler may log as it likes"}',
        '["done"]',
        "null",
    ],
)
def test_line_that_is_not_the_logs_is_the_handlers_and_stays_whole(line):
    assert list(read_line(line)) == [Printed(line)]


def test_unknown_event_and_strange_facts_are_read_all_the_same():
    [told] = read_line('{"time": "whenever", "event": "reborn", "attempt": "two", "id": null, "deep": {"a": [1]}}')
    assert (told.event, told.time, told.id, told.number("attempt")) == ("reborn", None, "", None)
    assert not told.is_outcome


def test_outcome_of_no_message_is_none():
    [told] = read_line('{"time": "2026-05-01T12:00:00Z", "event": "done"}')
    assert not told.is_outcome


@pytest.mark.parametrize(("before", "after"), [("hand", ""), ("", "ler"), ("hand", "ler"), ('{"time": "odd', "}")])
def test_line_of_the_log_is_found_inside_of_a_handlers(before, after):
    parts = list(read_line(f"{before}{DONE}{after}"))
    assert [part.text for part in parts if isinstance(part, Printed)] == [text for text in (before, after) if text]
    assert [part.raw for part in parts if isinstance(part, Told)] == [DONE]


def test_two_lines_of_the_log_in_one_are_both_found():
    assert [part.raw for part in read_line(DONE + DONE)] == [DONE, DONE]


@given(st.text(), st.sampled_from([DONE, ""]), st.text())
def test_nothing_of_a_line_is_lost(before, inside, after):
    line = before + inside + after
    parts = read_line(line)
    assert "".join(part.text if isinstance(part, Printed) else part.raw for part in parts) == line


@given(st.dictionaries(st.text(), st.one_of(st.none(), st.text(), st.floats(), st.integers(), st.lists(st.text()))))
def test_no_line_of_json_can_stop_us(facts):
    [told] = read_line(json.dumps({"time": "2026-05-01T12:00:00Z", "event": "any", **facts}))
    assert isinstance(told, Printed | Told)


@given(st.lists(st.binary()), st.data())
def test_lines_are_the_same_however_they_come_in_pieces(texts, data):
    whole = b"\n".join(texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    lines = Lines()
    seen = [line for piece in pieces for line in lines.feed(piece)] + list(lines.end())
    assert "\n".join(seen) == whole.decode(errors="replace").removesuffix("\n")


def test_line_without_an_end_is_shown_in_parts():
    lines = Lines()
    assert [len(part) for part in lines.feed(b"x" * (Lines.LONGEST + 1))] == [Lines.LONGEST + 1]
    assert list(lines.feed(b"y\n")) == ["y"]
