"""Which failures are the same, shown with traces that Python really makes."""

import traceback
from types import FunctionType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.fingerprint import fingerprint, frames, normalise
from redrive.outcome import Cause, type_names

ORDERS = """
def charge(order):
    raise ValueError(f"card {order!r} declined after 3 tries")

def handle(order):
    charge(order)
"""


def fail(source: str, order: str, path: str = "/app/shop/orders.py") -> Cause:
    """Run `handle` of a module that is said to be at `path`, and report it as a runner does."""
    module: dict[str, FunctionType] = {}
    exec(compile(source, path, "exec"), module)  # noqa: S102
    try:
        module["handle"](order)
    except ValueError as error:
        return Cause(type_names(type(error))[0], str(error), "".join(traceback.format_exception(error)))
    raise AssertionError("it must fail")


FIRST = fingerprint(fail(ORDERS, "A-1"))


def test_a_fingerprint_is_sixteen_hexadecimal_digits():
    assert len(FIRST) == 16
    assert int(FIRST, 16)


def test_a_fingerprint_is_the_same_after_lines_have_moved():
    assert fingerprint(fail("\n" * 2000 + ORDERS, "A-1")) == FIRST


def test_a_fingerprint_is_the_same_for_another_message():
    assert fingerprint(fail(ORDERS, "B-77, 'quoted' and long " * 3)) == FIRST


def test_a_fingerprint_is_the_same_where_else_it_is_installed():
    installed = fail(ORDERS, "A-1", "/usr/lib/python3.11/site-packages/shop/orders.py")
    assert fingerprint(installed) == FIRST


@pytest.mark.parametrize(
    "source",
    [
        ORDERS.replace("charge", "refund"),
        ORDERS.replace("declined", "unknown"),
        ORDERS.replace("ValueError", "UnicodeError"),
        ORDERS.replace("    charge(order)", "    (lambda: charge(order))()"),
    ],
)
def test_another_way_another_text_or_another_type_is_another_failure(source):
    assert fingerprint(fail(source, "A-1")) != FIRST


def test_how_a_trace_was_cut_changes_nothing():
    down = (
        "\ndef down(n, order):\n    up(n - 1, order)\ndef up(n, order):\n    down(n, order) if n else charge(order)\n"
    )
    source = ORDERS.replace("    charge(order)", "    down(120, order)") + down
    assert len(fail(source, "A").trace) > 8192
    assert fingerprint(fail(source, "A")) == fingerprint(fail("\n" * 10_000 + source, "A"))


@pytest.mark.parametrize(
    ("error", "plain"),
    [
        ("order 17 not found", "order # not found"),
        ("order ORD-1a2b not found", "order ORD-# not found"),
        ("took 1.5s, limit -3", "took #, limit #"),
        ("took 12s, limit -30", "took #, limit #"),
        ("can't find 'abc' in \"x y\"", "can't find '' in ''"),
        ("<shop.Order object at 0x7f3a>", "<shop.Order object at #>"),
        ("id 9f1c2b3a-aaaa-bbbb-cccc-dddddddddddd", "id #"),
        ("id deadbeefcafe gone", "id # gone"),
        ("at 2026-05-01T12:00:00.250Z", "at #"),
        ("two\n  lines", "two lines"),
        ("no such card", "no such card"),
    ],
)
def test_what_changes_from_message_to_message_is_blanked(error, plain):
    assert normalise(error) == plain


def test_text_that_is_no_python_trace_has_no_frames():
    assert frames("panic: oh no\n\tmain.go:12 +0x1d") == ()


def test_a_module_of_python_itself_is_named_without_its_version():
    trace = (
        '  File "/usr/lib/python3.11/queue.py", line 5, in get\n  File "/usr/lib/python3.11/json/x.py", line 1, in f\n'
    )
    assert frames(trace) == ("queue.py:get", "json/x.py:f")


def test_members_of_an_exception_group_have_frames():
    assert frames('  |   File "/app/shop/a.py", line 5, in get\n') == ("shop/a.py:get",)


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_every_failure_has_a_fingerprint(error_type, error, trace):
    assert len(fingerprint(Cause(error_type, error, trace))) == 16


@pytest.mark.parametrize("hostile", ["a" * 10**6, "1" * 10**6, "'" * 10**6, "1." * 10**6, "-" * 10**6, " |" * 10**6])
def test_no_text_is_slow_to_fingerprint(hostile):
    for _ in range(20):
        fingerprint(Cause("E", hostile, hostile))
