"""The operator's log: one JSON object a line, whatever is told."""

import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive_operator.log_lines import LONGEST, JsonLines, configure

CHATTY = ["kopf.activities", "kopf.objects", "urllib3", "aiohttp", "pika"]


def record(message="all is well", *arguments, level=logging.INFO, exc_info=None):
    return logging.LogRecord("redrive_operator.x", level, __file__, 1, message, arguments, exc_info)


def write(*words, **more):
    return json.loads(JsonLines().format(record(*words, **more)))


def fail():
    raise ValueError("line one\nline two")


def failure():
    try:
        fail()
    except ValueError:
        return sys.exc_info()


@pytest.fixture
def logging_as_it_was():
    loggers = [logging.getLogger(name) for name in (None, *CHATTY)]
    before = [(logger, logger.level) for logger in loggers]
    handlers = logging.getLogger().handlers[:]
    logging.getLogger().handlers = []  # those of pytest would be closed
    yield
    logging.getLogger().handlers = handlers
    for logger, level in before:
        logger.setLevel(level)


def test_line_says_when_how_bad_who_and_what():
    line = write("%s has %d", "shop/orders", 3, level=logging.WARNING)
    assert (line["level"], line["logger"], line["message"]) == ("warning", "redrive_operator.x", "shop/orders has 3")
    assert line["time"].endswith("+00:00")


def test_line_of_an_error_has_its_trace():
    trace = write("failed", level=logging.ERROR, exc_info=failure())["trace"]
    assert trace.startswith("Traceback")
    assert trace.endswith("ValueError: line one\nline two\n")


def test_line_without_an_error_has_no_trace():
    assert "trace" not in write("failed", exc_info=(None, None, None))


def test_long_message_is_cut_at_its_end_and_a_long_trace_at_its_beginning(monkeypatch):
    monkeypatch.setattr("redrive_operator.log_lines.LONGEST", 20)
    line = write("x" * 30, exc_info=failure())
    assert line["message"] == "x" * 20
    assert line["trace"].endswith("line two\n")
    assert len(line["trace"]) == 20


@given(st.text())
def test_every_message_is_one_line_of_bytes_that_can_be_read_again(said):
    line = JsonLines().format(record("%s", said))
    assert len(line.splitlines()) == 1
    assert json.loads(line.encode())["message"] == said[:LONGEST]


def test_message_whose_arguments_do_not_fit_is_told_without_them():
    assert write("%d of %d", "three")["message"] == "%d of %d"


def test_lines_go_to_standard_output(logging_as_it_was, capsys):
    configure("info")
    logging.getLogger("redrive_operator").info("here")
    assert json.loads(capsys.readouterr().out)["message"] == "here"


def test_less_than_was_asked_for_is_not_told(logging_as_it_was, capsys):
    configure("warning")
    logging.getLogger("redrive_operator").info("here")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", CHATTY)
@pytest.mark.parametrize(("level", "told"), [("info", "info"), ("error", "warning")])
def test_others_do_not_tell_what_nobody_wants_to_know(logging_as_it_was, capsys, name, level, told):
    configure(level)
    logging.getLogger(name).log(getattr(logging, told.upper()), "by the way")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["kopf.objects", "urllib3"])
def test_others_tell_of_trouble(logging_as_it_was, capsys, name):
    configure("info")
    logging.getLogger(name).warning("look here")
    assert json.loads(capsys.readouterr().out)["logger"] == name
