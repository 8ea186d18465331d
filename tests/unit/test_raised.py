"""Whatever a user's exception is, it can be told, and costs little."""

import traceback
import tracemalloc
from dataclasses import replace
from datetime import timedelta

import pytest
from runner_bed import KILLERS

from redrive import Reject, Retry, Snooze
from redrive.fingerprint import fingerprint, frames
from redrive.outcome import Failed, Rejected, Snoozed
from redrive.raised import LONGEST_TEXT, LONGEST_TRACE, result_of, trace_of


def caught(behave):
    try:
        behave()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def raising(error):
    def behave():
        raise error

    return behave


def fail_in(depth, text):
    if depth:
        fail_in(depth - 1, text)
    raise ValueError(text)


@pytest.mark.parametrize("killer", KILLERS, ids=bytes.decode)
def test_any_exception_can_be_told_within_bounds(killer):
    result = result_of(caught(KILLERS[killer]))
    assert isinstance(result, Failed)
    assert len(result.error.encode()) <= LONGEST_TEXT
    assert len(result.trace.encode()) <= LONGEST_TRACE


def test_text_of_megabytes_takes_no_memory_and_leaves_the_frames():
    error = caught(lambda: fail_in(3, "x" * 50_000_000))
    tracemalloc.start()
    result = result_of(error)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
    assert result.trace.count("in fail_in") == 4


def test_length_of_a_text_does_not_change_what_a_failure_is_grouped_by():
    causes = [
        result_of(caught(lambda size=size: fail_in(3, f"no such order '{'x' * size}'"))).cause for size in (3, 10**6)
    ]
    assert frames(causes[0].trace) == frames(causes[1].trace)
    assert fingerprint(causes[0]) == fingerprint(causes[1])


def test_long_text_that_looks_like_a_trace_has_no_frames():
    forged = 'Traceback (most recent call last):\n  File "/shop/forged.py", line 1, in forged\n'
    cause = result_of(caught(lambda: fail_in(0, f"no\n{forged}{'x' * 3000}"))).cause
    without = cause.trace[: cause.trace.index("ValueError: no")]
    assert fingerprint(cause) == fingerprint(replace(cause, trace=without))


def test_notes_of_megabytes_leave_the_frames():
    error = caught(lambda: fail_in(3, "no"))
    for _ in range(100):
        error.add_note("y" * 1_000_000)
    assert "in fail_in" in result_of(error).trace


def test_trace_names_the_cause_and_the_errors_of_a_group():
    def behave():
        try:
            fail_in(0, "the cause")
        except ValueError as error:
            raise ExceptionGroup("several", [KeyError("one"), KeyError("other")]) from error

    trace = result_of(caught(behave)).trace
    assert all(words in trace for words in ("the cause", "KeyError: 'one'", "KeyError: 'other'", "direct cause"))


def test_long_chain_is_told_by_its_end():
    def behave():
        error = None
        for number in range(1000):
            try:
                raise ValueError(number) from error  # noqa: TRY301
            except ValueError as raised:
                error = raised
        raise error

    assert result_of(caught(behave)).trace.rstrip().endswith("ValueError: 999")


@pytest.mark.parametrize("wish", [Retry, Snooze])
def test_delay_that_was_changed_into_nonsense_is_none(wish):
    error = wish(delay=timedelta(seconds=1))
    error.delay = "soon"
    result = result_of(caught(raising(error)))
    assert (result.asked_delay if wish is Retry else result.delay) is None


def test_wishes_are_told_as_what_they_ask_for():
    assert result_of(Snooze(delay=2)) == Snoozed(timedelta(seconds=2))
    assert result_of(Retry("busy", delay=3)).asked_delay == timedelta(seconds=3)
    assert isinstance(result_of(Reject("no")), Rejected)


def test_trace_of_an_error_that_was_raised_in_the_same_line_before_says_what_this_one_says():
    first, second = (caught(raising(ValueError(text))) for text in ("said first", "said then"))
    assert trace_of(first).replace("said first", "said then") == trace_of(second)


def test_class_that_has_no_hash_is_named():
    class Unhashable(type):
        __hash__ = None

    class Odd(Exception, metaclass=Unhashable):
        pass

    assert result_of(caught(raising(Odd("no")))).error_types[0].endswith("Odd")


def test_text_that_is_not_unicode_is_escaped():
    assert result_of(ValueError("file \ud800")).error == "file \\ud800"


def test_simple_trace_is_what_python_writes_but_for_the_marks():
    error = caught(raising(ValueError("no such order")))
    written = "".join(traceback.format_exception(error)).splitlines()
    unmarked = [line for line in written if not set(line.strip()) <= set("^~")]
    assert trace_of(error).splitlines() == unmarked
