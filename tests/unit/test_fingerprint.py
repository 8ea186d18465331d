"""Which failures are the same, shown with traces that Python really makes."""

import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redrive.fingerprint
from redrive.fingerprint import LONGEST_READ, fingerprint, frames, normalise
from redrive.outcome import Cause, type_names

ORDERS = """
def charge(order):
    raise ValueError(f"card {order!r} declined after 3 tries")

def handle(order):
    charge(order)
"""


def fail(source: str, order: str, path: str = "/app/shop/orders.py") -> Cause:
    """Run `handle` of a module that is said to be at `path`, and report it as a runner does."""
    try:
        load(source, path)(order)
    except Exception as error:
        return report(error)
    raise AssertionError("it must fail")


def load(source: str, path: str = "/app/shop/orders.py") -> FunctionType:
    module: dict[str, FunctionType] = {}
    exec(compile(source, path, "exec"), module)  # noqa: S102
    return module["handle"]


def report(error: BaseException) -> Cause:
    return Cause(type_names(type(error))[0], str(error), "".join(traceback.format_exception(error)))


def said(error: str) -> str:
    """A failure of which all but the text is equal, also in its trace."""
    return fingerprint(fail("def handle(order):\n    raise ValueError(order)\n", error))


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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/srv/releases/20240501/orders.py", "/srv/releases/20240602/orders.py"),
        ("/srv/releases/20240501/orders.py", "/srv/releases/current/orders.py"),
        ("/opt/shop-1.4/shop/orders.py", "/opt/shop-1.5/shop/orders.py"),
        ("/builds/v20240501/shop/orders.py", "/builds/v20240602/shop/orders.py"),
        ("/builds/a1b2c3d/shop/orders.py", "/builds/f00ba47/shop/orders.py"),
        ("/app/shop/orders.py", "/home/ann/work-trees/shop/orders.py"),
        ("/venv/lib/python3.11/site-packages/shop/orders.py", "/usr/lib/python3/dist-packages/shop/orders.py"),
        ("/usr/lib/python3.11/queue.py", "/opt/python/lib/python3.13t/queue.py"),
    ],
)
def test_a_fingerprint_is_the_same_in_another_release(one, other):
    assert fingerprint(fail(ORDERS, "A", one)) == fingerprint(fail(ORDERS, "A", other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/app/billing/models/order.py", "/app/shipping/models/order.py"),
        ("/srv/releases/20240501/billing/models/order.py", "/srv/releases/20240501/shipping/models/order.py"),
        ("/app/shop/api/v1/orders.py", "/app/shop/api/v2/orders.py"),
        ("/app/shop/orders.py", "/app/shop/refunds.py"),
    ],
)
def test_files_of_one_name_in_two_packages_are_two(one, other):
    assert fingerprint(fail(ORDERS, "A", one)) != fingerprint(fail(ORDERS, "A", other))


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
        ("cannot parse b'alpha' or B\"beta\" or rb'x'", "cannot parse '' or '' or ''"),
        ("no 'it\\'s \"x\"' here", "no '' here"),
        ('no "it\'s" here', "no '' here"),
        ("no 'ends in \\\\' here", "no '' here"),
        ("no 'it's me' here", "no '' here"),
        ("no 'two\nlines' here", "no '' here"),
        ("no `x` and “y” here", "no '' and '' here"),
        ("the users' orders are late", "the users' orders are late"),
        ('a 5" disk is full', 'a #" disk is full'),
        ("starts 'and was cut", "starts ''"),
        ("starts \"and was cut, it's", "starts ''"),
        ("starts b'and was cut\\", "starts ''"),
        ("starts `and was cut", "starts ''"),
        ("starts “and was cut", "starts ''"),
    ],
)
def test_what_changes_from_message_to_message_is_blanked(error, plain):
    assert normalise(error) == plain


def test_text_that_is_no_python_trace_has_no_frames():
    assert frames("panic: oh no\n\tmain.go:12 +0x1d") == ()


@pytest.mark.parametrize("long", ["words " * 1000, "'quoted' and " * 1000, "17 " * 1000, "words " * 10_000])
def test_how_long_a_value_is_never_decides_how_much_of_the_words_counts(long):
    assert said(f"order 7: {long}") == said(f"order 1234567: {long}")


def test_a_quote_that_fills_the_text_is_blanked_however_long_it_is():
    assert said(f"cannot parse '{'alpha ' * 400}'") == said(f"cannot parse '{'gamma ' * 900}'")


def test_words_behind_a_long_value_still_count():
    assert said(f"'{'alpha ' * 400}' is too old") != said(f"'{'alpha ' * 400}' is too new")


class Order(pydantic.BaseModel):
    note: None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"b": [1, {"c": None}], "d": "it's"}),
        ("x", 'y"' * 300),
        ([], [["'"] * 50]),
        ("a, input_type=int]", "b"),
    ],
)
def test_what_pydantic_was_given_is_blanked_whatever_its_shape(one, other):
    assert refused(one) == refused(other)


def refused(note: object) -> str:
    with pytest.raises(pydantic.ValidationError) as caught:
        Order.model_validate({"note": note})
    return normalise(str(caught.value))


def test_a_module_of_python_itself_is_named_without_its_version():
    trace = (
        '  File "/usr/lib/python3.11/queue.py", line 5, in get\n  File "/usr/lib/python3.11/json/x.py", line 1, in f\n'
    )
    assert frames(trace) == ("queue.py:get", "json/x.py:f")


def test_members_of_an_exception_group_have_frames_and_their_texts_have_none():
    source = """
def member(text):
    raise ValueError(text)

def handle(order):
    found = []
    for text in ["a", order]:
        try:
            member(text)
        except ValueError as error:
            found.append(error)
    raise ExceptionGroup("both", found)
"""
    trace = fail(source, 'b\n  File "/forged.py", line 1, in f').trace
    there = ("shop/orders.py:handle", "shop/orders.py:member")
    assert frames(trace) == (frames(trace)[0], *there, *there)


@pytest.mark.parametrize(
    "forged",
    [
        'b\n  File "/forged.py", line {}, in f{}',
        '\nTraceback (most recent call last):\n  File "/forged.py", line {}, in f{}\nE: b',
    ],
)
def test_lines_of_the_text_that_look_like_frames_are_none(forged):
    cause = fail("def handle(order):\n    raise ValueError(order)\n", forged.format(1, "a"))
    assert cause.error in cause.trace
    other = Cause(cause.error_type, cause.error, cause.trace.replace(cause.error, "one line"))
    assert fingerprint(cause) == fingerprint(other)


def test_lines_in_the_text_of_an_earlier_error_are_no_frames_either():
    source = """
def handle(order):
    try:
        raise ValueError(order)
    except ValueError as error:
        raise KeyError("late") from error
"""
    assert fingerprint(fail(source, "a")) == fingerprint(fail(source, 'a\n  File "/forged.py", line 1, in f'))


def test_a_continuation_in_the_source_does_not_end_a_stack():
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/app/shop/a.py", line 5, in total\n    | tax(order)\n'
        '  File "/app/shop/a.py", line 9, in tax\n    + rate()\nValueError: no rate\n'
    )
    assert frames(trace) == ("shop/a.py:total", "shop/a.py:tax")


@pytest.mark.parametrize("text", ["x" * 8190, "x" * 10**6, "line\n" * 1640])
def test_a_long_text_leaves_the_frames_in(text):
    one = "def handle(order):\n    raise ValueError(order)\n"
    other = "def check(order):\n    raise ValueError(order)\ndef handle(order):\n    check(order)\n"
    assert fingerprint(fail(one, text)) != fingerprint(fail(other, text))


def test_how_deep_a_function_called_itself_changes_nothing():
    source = ORDERS.replace(
        "    charge(order)",
        "    return order and (handle(order[1:]) if order[0] == '(' else charge(order))",
    )
    assert fingerprint(fail(source, "(A")) == fingerprint(fail(source, "((((A"))


CALLERS = """
import asyncio

def run(handle):
    asyncio.run(finish(handle("A"))) if asyncio.iscoroutinefunction(handle) else handle("A")

async def finish(awaitable):
    await awaitable

handle = run
"""


def run(function) -> Cause:
    """Call a handler from where Redrive is, as a runner does."""
    try:
        load(CALLERS, str(Path(redrive.fingerprint.__file__).with_name("runner.py")))(function)
    except Exception as error:
        return report(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
    raise AssertionError("it must fail")


def test_who_calls_a_handler_is_not_hashed():
    plain = load(ORDERS)
    awaited = load(ORDERS.replace("def handle", "async def handle"))
    assert fingerprint(run(plain)) == fingerprint(run(awaited)) == fingerprint(report_of_thread(plain))
    assert frames(run(awaited).trace) == ("shop/orders.py:handle", "shop/orders.py:charge")


def report_of_thread(function) -> Cause:
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(function, "A").exception()
    assert error is not None
    assert any("concurrent/futures" in frame.filename for frame in traceback.extract_tb(error.__traceback__))
    return report(error)


@pytest.mark.parametrize(
    "caller",
    [
        "/usr/lib/python3.11/site-packages/redrive/runners/thread.py",
        str(Path(redrive.fingerprint.__file__).with_name("handler.py")),
        "/usr/lib/python3.13/asyncio/runners.py",
        "/usr/lib/python3.13/threading.py",
    ],
)
def test_callers_are_known_by_where_they_are_installed(caller):
    assert frames(f'  File "{caller}", line 1, in run\n  File "/app/shop/a.py", line 2, in f\n') == ("shop/a.py:f",)


def test_a_users_folder_that_is_called_redrive_is_the_users():
    assert frames('  File "/srv/redrive/orders.py", line 1, in handle\n') == ("redrive/orders.py:handle",)


def test_what_a_handler_calls_of_asyncio_is_hashed():
    source = """
import asyncio

async def handle(order):
    await asyncio.wait_for(asyncio.sleep(9), 0)
"""
    there = frames(run(load(source)).trace)
    assert there[0].startswith(("shop/orders.py", "asyncio/"))
    assert "shop/orders.py:handle" in there
    assert there[-1].startswith("asyncio/")


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_every_failure_has_a_fingerprint(error_type, error, trace):
    assert len(fingerprint(Cause(error_type, error, trace))) == 16


HOSTILE = [
    "a",
    "1",
    "'",
    "1.",
    "-",
    " |",
    "\n",
    "\\",
    "input_value=",
    "'a",
    "é",
    'Traceback\n  File "a", line 1, in b\n',
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_is_read_past_a_bound(hostile, monkeypatch):
    seen: list[int] = []

    def spy(name):
        real = getattr(redrive.fingerprint, name)
        monkeypatch.setattr(redrive.fingerprint, name, lambda text: seen.append(len(text)) or real(text))

    spy("frames")
    spy("normalise")
    fingerprint(Cause("E", hostile * 10**6, f"{hostile}~" * 10**6))  # a trace that does not hold the text
    assert len(seen) == 2
    assert max(seen) <= LONGEST_READ
