"""Where it appears: lines for people, JSON for programs."""

import io
from datetime import UTC, datetime

import pytest

from redrive_cli.screen import JsonLines, LiveScreen
from redrive_cli.worker_lines import Printed, Told

TOLD = Told(datetime(2026, 5, 1, 12, tzinfo=UTC), "done", facts={"id": "m-1", "attempt": 1}, raw='{"event": "done"}')
LONG = "x" * 500


@pytest.fixture
def streams():
    return io.StringIO(), io.StringIO()


def test_text_that_goes_to_a_file_is_plain_and_whole(streams):
    out, err = streams
    screen = LiveScreen(out, err, max_attempts=3)
    screen.introduce("title", [("queue", LONG)])
    screen.show(Told(None, "retry", facts={"id": "[bold]m[/]", "attempt": 1, "error": f":smile: {LONG}"}), worker="")
    screen.note(LONG)
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().splitlines() == [
        "title",
        f"  queue     {LONG}",
        f"--:--:--  [bold]m[/]  1/3  ↻ retry  (:smile: {LONG})",
        LONG,
    ]
    assert err.getvalue() == ""


def test_terminal_gets_colours(streams, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out, err = streams
    LiveScreen(out, err, max_attempts=3).show(TOLD, worker="")
    assert "\x1b[32m  ✔ done\x1b[0m" in out.getvalue()


def test_what_a_handler_prints_is_shown_as_it_is(streams):
    out, err = streams
    screen = LiveScreen(out, err, max_attempts=3)
    screen.show(Printed("\x1b[1m[red]bold[/red]\x1b[0m\t:smile: "), worker="#1")
    screen.complain("a warning")
    assert out.getvalue() == "\x1b[1m[red]bold[/red]\x1b[0m\t:smile: \n"
    assert err.getvalue() == "a warning\n"


def test_ids_of_different_lengths_are_lined_up(streams):
    out, err = streams
    screen = LiveScreen(out, err, max_attempts=3)
    for identity in ("a-long-identity", "b", "c" * 40, "d"):
        screen.show(Told(None, "done", facts={"id": identity, "attempt": 1}), worker="")
    columns = [line.index("1/3") for line in out.getvalue().splitlines()]
    assert columns[0] == columns[1]
    assert columns[3] == len("--:--:--") + 2 + 36 + 2


def test_program_gets_the_workers_lines_and_nothing_else(streams):
    out, err = streams
    screen = JsonLines(out, err)
    screen.introduce("title", [("queue", "orders")])
    screen.show(TOLD, worker="#1")
    screen.show(Printed("hello"), worker="#1")
    screen.note("note")
    screen.warn("warning")
    screen.complain("complaint")
    assert out.getvalue() == f"{TOLD.raw}\n"
    assert err.getvalue() == "title\n  queue     orders\nhello\nnote\nwarning\ncomplaint\n"
