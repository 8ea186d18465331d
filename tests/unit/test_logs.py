"""What a worker writes: real pipes, full ones, broken ones, and every line read back as JSON."""

import json
import logging
import os
import select
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import CAUSE, DEAD, NOW, RETRY, deliver

from redrive import logs as logs_module
from redrive.fingerprint import fingerprint
from redrive.logs import LEVELS, MOST_TROUBLES, Log, quote, route_logging
from redrive.outcome import Cause, DeadLetter, DeadReason, Done
from redrive.properties import Properties
from redrive.settle import GiveBack, Suspect
from redrive.stdout import GATHERED, MOST_KEPT, Stdout
from redrive.story import read_time

DEADLINE = 20.0


class Pipe:
    """A pipe, its reader, and a log that writes to it at a time of the test's own."""

    def __init__(self):
        self.reading, self.writing = os.pipe()
        self.at = 1_777_000_000.0
        self._read = b""

    def log(self, level="info"):
        return Log(Stdout(self.writing), level=level, clock=lambda: self.at, now=lambda: self.at)

    def read(self):
        """Read what is there, without waiting; what is not a whole line yet is left for the next time."""
        os.set_blocking(self.reading, False)
        with suppress(BlockingIOError):
            while chunk := os.read(self.reading, 65_536):
                self._read += chunk
        whole, newline, self._read = self._read.rpartition(b"\n")
        return (whole + newline).decode()

    def lines(self, event=None):
        lines = [json.loads(line) for line in self.read().splitlines()]
        return [line for line in lines if event in (None, line["event"])]

    def fill(self):
        """Leave no room in it, as a reader that has stopped does."""
        os.set_blocking(self.writing, False)
        with suppress(BlockingIOError):
            while os.write(self.writing, b" " * 4095 + b"\n"):
                pass
        os.set_blocking(self.writing, True)

    def close(self):
        for fd in (self.reading, self.writing):
            with suppress(OSError):
                os.close(fd)


@pytest.fixture
def pipe():
    pipe = Pipe()
    yield pipe
    pipe.close()


@pytest.fixture
def log(pipe):
    return pipe.log()


def named(name):
    return deliver(Properties(message_id=name))


def flushed(pipe, log):
    log.flush()
    return pipe.lines()


def test_success_is_one_line_with_id_attempt_and_run_time(pipe, log):
    log.done(named("order-1"), 0.0421)
    [line] = flushed(pipe, log)
    assert line.pop("time") == "2026-04-24T03:06:40.000Z"
    assert line == {"level": "info", "event": "done", "id": "order-1", "attempt": 1, "seconds": 0.0421}


def test_done_is_the_same_line_whichever_way_it_is_told(pipe, log):
    log.done(named("order-1"), 0.5)
    log.settled(named("order-1"), Done(), seconds=0.5)
    one, other = flushed(pipe, log)
    assert one == other


def test_retry_says_when_it_comes_back_and_why(pipe, log):
    log.settled(named("order-1"), RETRY, seconds=1.5, due_at=NOW + timedelta(seconds=2))
    [line] = flushed(pipe, log)
    assert (line["event"], line["level"], line["id"], line["attempt"]) == ("retry", "info", "order-1", 1)
    assert (line["delaySeconds"], line["dueAt"], line["seconds"]) == (2.0, "2026-05-01T12:00:02.250Z", 1.5)
    assert (line["errorType"], line["error"]) == ("shop.errors.Late", "no answer from 10.0.0.7")


def test_snooze_is_told_from_a_retry_and_has_no_error(pipe, log):
    log.settled(named("order-1"), replace(RETRY, snoozed=True, cause=None), seconds=0.1, due_at=NOW)
    [line] = flushed(pipe, log)
    assert line["event"] == "snooze"
    assert "error" not in line
    assert "errorType" not in line


def test_dead_letter_says_its_reason_its_error_and_its_fingerprint(pipe, log):
    log.settled(named("order-1"), DEAD, seconds=2.0)
    [line] = flushed(pipe, log)
    assert (line["event"], line["level"], line["reason"]) == ("dead", "warning", "Exhausted")
    assert (line["errorType"], line["error"]) == (CAUSE.error_type, CAUSE.error)
    assert line["fingerprint"] == fingerprint(CAUSE)
    assert line["seconds"] == 2.0


def test_letter_that_was_never_run_has_no_run_time(pipe, log):
    log.settled(named("order-1"), DeadLetter(DeadReason.EXPIRED, Cause("redrive.Expired", "")))
    [line] = flushed(pipe, log)
    assert "seconds" not in line
    assert "error" not in line


@pytest.mark.parametrize(("disposal", "event"), [(Suspect(), "suspect"), (GiveBack(), "given-back")])
def test_what_goes_back_to_the_queue_is_told(pipe, log, disposal, event):
    log.settled(named("order-1"), disposal)
    [line] = flushed(pipe, log)
    assert (line["event"], line["id"], line["attempt"]) == (event, "order-1", 1)


def test_error_is_clipped_to_one_line_of_200_characters(pipe, log):
    cause = Cause("ValueError", "first\nsecond\r\n\t third " + "x" * 100_000)
    log.settled(named("order-1"), replace(RETRY, cause=cause), seconds=0.1)
    [line] = flushed(pipe, log)
    assert line["error"].startswith("first second third xxx")
    assert len(line["error"]) == 200


def test_neither_body_nor_header_nor_trace_is_ever_told(pipe):
    log = pipe.log("debug")
    message = deliver(Properties(message_id="m", headers={"token": "secret-1"}), body=b"secret-2")
    cause = Cause("ValueError", "bad", "Traceback\n  card = 'secret-3'\nValueError: bad")
    for disposal in (Done(), replace(RETRY, cause=cause), replace(DEAD, cause=cause), Suspect(), GiveBack()):
        log.settled(message, disposal, seconds=0.1, due_at=NOW)
    log.flush()
    assert "secret" not in pipe.read()


def test_time_is_that_of_the_line_to_the_millisecond(pipe, log):
    for at in (1_777_000_000.0, 1_777_000_000.0004, 1_777_000_000.25, 1_777_000_001.999, 1_777_000_002.0):
        pipe.at = at
        log.done(named("m"), 0.1)
    log.flush()
    told = [read_time(line["time"]) for line in pipe.lines()]
    millis = [0, 0, 250, 1999, 2000]
    assert told == [datetime.fromtimestamp(1_777_000_000, UTC) + timedelta(milliseconds=ms) for ms in millis]


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("debug", ["looking", "done", "retry", "dead", "broker", "failed"]),
        ("info", ["done", "retry", "dead", "broker", "failed"]),
        ("warning", ["dead", "broker", "failed"]),
        ("error", ["failed"]),
    ],
)
def test_level_decides_what_is_told(pipe, level, told):
    log = pipe.log(level)
    log.debug("looking")
    log.done(named("m"), 0.1)
    log.settled(named("m"), RETRY, seconds=0.1, due_at=NOW)
    log.settled(named("m"), DEAD, seconds=0.1)
    log.warning("broker", error="it closed the connection")
    log.error("failed", error="a handler does not end")
    assert [line["event"] for line in flushed(pipe, log)] == told


def test_facts_keep_their_types_and_unknown_ones_are_left_out(pipe, log):
    log.info("consuming", queue="orders", prefetch=10, pauseSeconds=0.5, first=True, error=None)
    [line] = flushed(pipe, log)
    del line["time"], line["level"]
    assert line == {"event": "consuming", "queue": "orders", "prefetch": 10, "pauseSeconds": 0.5, "first": True}


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_number_that_json_does_not_know_is_told_as_text(pipe, log, odd):
    log.info("odd", value=odd)
    assert flushed(pipe, log)[0]["value"] == str(odd)


ANY_TEXT = st.text(st.characters(exclude_categories=()))  # surrogates too


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_makes_one_valid_line_that_says_it(name, error):
    pipe = Pipe()
    try:
        log = pipe.log()
        message = replace(deliver(), id=name)
        log.done(message, 0.1)
        log.settled(message, replace(RETRY, cause=Cause(error, error)), seconds=0.1, due_at=NOW)
        log.settled(message, replace(DEAD, cause=Cause(error, error)), seconds=0.1)
        log.info("odd", value=error)
        log.flush()
        lines = pipe.lines()
    finally:
        pipe.close()
    assert [line["event"] for line in lines] == ["done", "retry", "dead", "odd"]
    assert {line["id"] for line in lines[:3]} == {name}
    assert lines[3]["value"] == error


@pytest.mark.parametrize("text", ["für", "注文", "😀"])
def test_other_scripts_stay_readable(text):
    assert quote(text) == f'"{text}"'


@pytest.mark.parametrize("text", ["\x1b[2J", "\x9b2J", "\x85", "\u2028", "\n", "\udc80"])
def test_what_a_terminal_or_a_reader_of_lines_would_obey_is_escaped(text):
    assert quote(text).isascii()
    assert quote(text).isprintable()
    assert json.loads(quote(text)) == text


def test_trouble_that_repeats_is_told_once_a_second_with_how_often(pipe, log):
    for number in range(500):
        log.warning("unsettled", "returned", id=f"m-{number}", attempt=1, error="no queue took it")
    [first] = pipe.lines()
    assert (first["id"], first["reason"], first["level"]) == ("m-0", "returned", "warning")
    assert "repeated" not in first
    pipe.at += 1.0
    log.warning("unsettled", "returned", id="m-500")
    [second] = pipe.lines()
    assert (second["id"], second["repeated"]) == ("m-500", 499)


def test_trouble_of_another_kind_is_told_at_once(pipe, log):
    log.warning("unsettled", "returned")
    log.warning("unsettled", "nacked")
    log.warning("broker")
    assert [(line["event"], line.get("reason")) for line in pipe.lines()] == [
        ("unsettled", "returned"),
        ("unsettled", "nacked"),
        ("broker", None),
    ]


def test_trouble_that_is_over_is_told_to_its_end(pipe, log):
    for number in range(3):
        log.warning("unsettled", "returned", id=f"m-{number}")
    pipe.lines()
    assert flushed(pipe, log) == []
    pipe.at += 1.0
    [last] = flushed(pipe, log)
    assert (last["id"], last["repeated"]) == ("m-2", 2)
    pipe.at += 1.0
    assert flushed(pipe, log) == []


def test_closing_tells_what_was_left_out(pipe, log):
    log.error("failed", "stuck")
    log.error("failed", "stuck")
    log.close()
    assert [line.get("repeated") for line in pipe.lines()] == [None, 1]


def test_trouble_with_ever_new_reasons_takes_no_more_and_more_memory(pipe, log):
    for number in range(MOST_TROUBLES * 20):
        log.warning("unsettled", str(number))
        assert len(log._troubles) <= MOST_TROUBLES
    assert len(pipe.lines()) > MOST_TROUBLES


def test_trouble_is_written_without_being_asked_to(pipe, log):
    log.done(named("m"), 0.1)
    log.warning("broker", error="gone")
    assert [line["event"] for line in pipe.lines()] == ["done", "broker"]


def test_many_lines_go_out_without_being_asked_to(pipe, log):
    for _ in range(GATHERED - 1):
        log.done(named("m"), 0.1)
    assert pipe.lines() == []
    log.done(named("m"), 0.1)
    assert len(pipe.lines()) == GATHERED


def test_full_pipe_holds_nothing_up_and_loses_nothing_within_the_limit(pipe, log):
    pipe.fill()
    for number in range(3000):
        log.done(named(f"m-{number}"), 0.1)
    log.warning("broker", error="gone")
    log.flush()
    told = []
    while len(told) < 3001:
        told += [json.loads(line) for line in pipe.read().splitlines() if line.strip()]
        log.flush()
    assert [line.get("id") for line in told] == [*(f"m-{number}" for number in range(3000)), None]


def test_reader_that_stays_away_costs_the_oldest_lines_and_not_the_memory(pipe, log):
    pipe.fill()
    count = 4 * MOST_KEPT // len('{"time": "2026-04-24T03:06:40.000Z", "level": "info", "event": "done"}')
    for number in range(count):
        log.done(named(f"m-{number}"), 0.1)
    log.flush()
    assert sum(map(len, log._out._lines)) <= MOST_KEPT
    told = []
    while not told or told[-1]["event"] != "dropped":
        told += [json.loads(line) for line in pipe.read().splitlines() if line.strip()]
        log.flush()
    *done, dropped = told
    assert dropped["lines"] + len(done) == count
    assert done[-1]["id"] == f"m-{count - 1}"


def test_pipe_that_somebody_made_non_blocking_is_written_to_as_it_empties(pipe, log):
    pipe.fill()
    os.set_blocking(pipe.writing, False)
    log.warning("broker", error="gone")
    pipe.read()
    [line] = flushed(pipe, log)
    assert line["error"] == "gone"


def test_line_longer_than_a_pipe_holds_goes_out_piece_by_piece(pipe, log):
    log.warning("broker", error="x" * 300_000)
    read = ""
    while not read:
        read = pipe.read()
        log.flush()
    assert len(json.loads(read)["error"]) == 300_000


def test_room_that_another_process_was_faster_to_take_is_waited_for(pipe, log, monkeypatch):
    def too_late(_fd, _data):
        raise BlockingIOError

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", too_late)
        log.warning("broker", error="gone")
    [line] = flushed(pipe, log)
    assert line["error"] == "gone"


def test_every_write_is_of_whole_lines_and_small_enough_to_go_out_in_one_piece():
    reading, writing = os.pipe2(os.O_DIRECT)  # reading it gives one write at a time
    try:
        log = Log(Stdout(writing))
        for number in range(GATHERED):
            log.done(named(f"order-{'x' * (number % 200)}"), 0.1)
        writes = [os.read(reading, 65_536)]
        while len(b"".join(writes).splitlines()) < GATHERED:
            writes.append(os.read(reading, 65_536))
    finally:
        os.close(reading)
        os.close(writing)
    assert 1 < len(writes) < GATHERED / 10
    assert all(write.endswith(b"\n") and len(write) <= select.PIPE_BUF for write in writes)


def test_output_that_nobody_reads_any_more_ends_nothing(pipe, log):
    os.close(pipe.reading)
    for _ in range(2 * GATHERED):
        log.done(named("m"), 0.1)
    log.warning("broker", error="gone")
    log.flush()
    log.close()


def test_lines_that_a_full_disk_swallowed_are_counted_once_there_is_room(pipe):
    room = os.dup(pipe.writing)
    full = os.open("/dev/full", os.O_WRONLY)
    out = os.dup(full)
    try:
        log = Log(Stdout(out))
        for _ in range(3):
            log.done(named("m"), 0.1)
            log.flush()
            log.flush()
        os.dup2(room, out)
        log.done(named("last"), 0.1)
        log.flush()
        log.flush()
    finally:
        for fd in (room, full, out):
            os.close(fd)
    assert [(line["event"], line.get("lines")) for line in pipe.lines()] == [("done", None), ("dropped", 3)]


@pytest.mark.parametrize("level", LEVELS)
def test_output_that_was_never_open_ends_nothing(level):
    log = Log(Stdout(1_000_000), level=level)
    log.done(named("m"), 0.1)
    log.error("failed")
    log.close()


def test_closing_waits_a_moment_for_a_slow_reader(pipe, log, monkeypatch):
    monkeypatch.setattr(logs_module, "EXIT_PATIENCE", DEADLINE)
    pipe.fill()
    for _ in range(10):
        log.done(named("last"), 0.1)
    reader = threading.Timer(0.05, lambda: os.read(pipe.reading, 65_536))
    reader.start()
    log.close()
    reader.join()
    assert [line["id"] for line in pipe.lines()] == ["last"] * 10


@contextmanager
def routed(log):
    undo = route_logging(log)
    try:
        yield logging.getLogger("shop.orders")
    finally:
        undo()


def test_warning_of_a_handler_becomes_a_line(pipe, log):
    with routed(log) as logger:
        logger.warning("stock of %s is low", "A-1")
        logger.info("not told")
    [line] = flushed(pipe, log)
    assert (line["event"], line["level"]) == ("log", "warning")
    assert (line["logger"], line["message"]) == ("shop.orders", "stock of A-1 is low")


def test_exception_that_a_handler_logs_has_its_trace(pipe, log):
    with routed(log) as logger:
        try:
            {}["price"]
        except KeyError:
            logger.exception("no price")
    [line] = flushed(pipe, log)
    assert (line["level"], line["message"], line["errorType"]) == ("error", "no price", "KeyError")
    assert line["trace"].endswith("KeyError: 'price'\n")


def test_logger_that_was_set_to_tell_more_tells_it(pipe, log):
    with routed(log) as logger:
        logger.setLevel(logging.INFO)
        try:
            logger.info("told")
        finally:
            logger.setLevel(logging.NOTSET)
    assert [line["message"] for line in flushed(pipe, log)] == ["told"]


class Mute:
    def __str__(self):
        raise RuntimeError("cannot say")


@pytest.mark.parametrize(
    ("text", "arguments", "said"), [("%d of %d", ("one",), "%d of %d"), ("%s", (Mute(),), "%s"), (Mute(), (), "a Mute")]
)
def test_record_that_cannot_be_put_into_words_raises_nothing(pipe, log, text, arguments, said):
    record = logging.LogRecord("shop.orders", logging.WARNING, __file__, 1, text, arguments, None)
    with routed(log):
        logging.getLogger().handlers[-1].handle(record)  # ours alone: pytest's own would raise
    [line] = flushed(pipe, log)
    assert line["message"] == said


def test_record_of_another_thread_comes_whole(pipe, log):
    def work(logger, name):
        for number in range(100):
            logger.warning("%s-%d", name, number)

    with routed(log) as logger:
        threads = [threading.Thread(target=work, args=(logger, name)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
    told = [line["message"] for line in flushed(pipe, log)]
    assert sorted(told) == sorted(f"{name}-{number}" for name in "abc" for number in range(100))


def test_what_pika_says_of_lost_connections_is_left_to_us(pipe, log):
    with routed(log):
        logging.getLogger("pika.adapters.base_connection").error("Transport indicated EOF.")
        logging.getLogger("pika").critical("anything")
    assert flushed(pipe, log) == []


def test_what_pika_says_is_told_to_who_debugs(pipe):
    log = pipe.log("debug")
    with routed(log):
        logging.getLogger("pika.channel").warning("Received remote Channel.Close")
        logging.getLogger("pika.channel").debug("every frame")
    [line] = flushed(pipe, log)
    assert (line["level"], line["logger"]) == ("debug", "pika.channel")


def test_routing_is_undone_without_a_trace(log):
    root, pika = logging.getLogger(), logging.getLogger("pika")
    before = (root.level, list(root.handlers), pika.level)
    with routed(log):
        assert root.handlers != before[1]
    assert (root.level, list(root.handlers), pika.level) == before
