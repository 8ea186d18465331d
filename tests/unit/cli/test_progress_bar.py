"""A bar is for a person, and never among what the command writes."""

import io
import os
import sys

import pytest

from redrive_cli.progress_bar import progress_bar


class Screen(io.StringIO):
    def isatty(self):
        return True


def shown_beside(monkeypatch, output, *, among_output):
    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", output)
    with progress_bar("looking", among_output=among_output) as advance:
        advance(1, 2)
    return screen.getvalue()


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as end:
        yield end


def test_bar_is_not_drawn_among_rows_that_go_through_a_pipe(monkeypatch, pipe):
    assert not shown_beside(monkeypatch, pipe, among_output=True)


def test_bar_is_drawn_while_rows_go_to_a_file(monkeypatch, tmp_path):
    with (tmp_path / "rows").open("w") as rows:
        assert "looking" in shown_beside(monkeypatch, rows, among_output=True)


def test_bar_of_what_writes_no_rows_is_drawn_beside_a_pipe(monkeypatch, pipe):
    assert "looking" in shown_beside(monkeypatch, pipe, among_output=False)
