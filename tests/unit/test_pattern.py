"""Policies' patterns: matched as RabbitMQ does, within bounds, and what cannot be told is said to be unknown."""

import re
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from redrive.pattern import LONGEST, matches

NAMES = ["orders", "orders.eu", "amq.gen-1", "redrive.delay.0.1", "redrive.orphans", "a b", "", "ORDERS", "x\n", "a-1"]
ORDINARY = [
    r"^redrive\.(delay|orphans)",
    ".*",
    "",
    "^orders",
    "orders$",
    r"^(?!amq\.).*",
    r"^(?!amq\.|redrive\.)",
    r"^((?!amq\.).)*$",
    r"^orders\.(?!us)",
    r"(?<=orders)\.eu",
    r"(?<!orders)\.",
    r"^([a-z]+\.)*\w+$",
    "^(?:orders|bills)(?:\\.eu)?$",
    "^(?P<kind>orders)",
    "(?i)^orders$",
    "(?s)^x.$",
    "^x.$",
    "^x$",
    r"\bgen\b",
    r"\Bders",
    r"^[a-z]{1,6}$",
    r"^[^.]{6}",
    r"^[\w.-]+$",
    r"[]a]",
    r"[a\-z]-",
    r"[-a]1",
    r"\x61\x2d",
    r"\d{1}",
    r"a{,x",
    r"^\S+$",
    r"^.*?\.0",
    "o|",
    r"\.",
    r"^a\ b$",
]


@pytest.mark.parametrize("pattern", ORDINARY)
def test_ordinary_pattern_matches_what_its_regular_expression_does(pattern):
    assert {name: matches(pattern, name) for name in NAMES} == {
        name: re.search(pattern, name) is not None for name in NAMES
    }


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        (r"x\Z", "x\n", True),
        (r"x\z", "x\n", False),
        (r"\Aord", "orders", True),
        ("^[[:alpha:]]+$", "orders", True),
        ("^[[:digit:]]+$", "orders", False),
        ("^[^[:space:]]+$", "a b", False),
        ("(?#why)^orders", "orders", True),
        ("(?<kind>orders)", "orders", True),
        ("^.{3}$", "日", True),
        ("^日$", "日", True),
    ],
)
def test_pattern_is_read_as_erlang_reads_it(pattern, name, found):
    assert matches(pattern, name) is found


@pytest.mark.parametrize(
    "pattern",
    [
        r"(.)\1",
        "a++",
        "(?>a)",
        "(?(1)a|b)",
        "(?R)",
        r"\Qa\E",
        r"\p{L}",
        r"\Ka",
        r"\07",
        "a(?i)b",
        "(*UTF8)a",
        "a{,3}",
        "a{ 1}",
        "a**",
        "(",
        ")",
        "[a",
        "[b-a]",
        "[[:nothing:]]",
        "a{3,2}",
        "*",
        "\\",
        "(?#",
        "(" * 100 + ")" * 100,
        "a" * (LONGEST + 1),
    ],
)
def test_pattern_that_is_not_understood_is_neither_a_match_nor_none(pattern):
    assert matches(pattern, "orders") is None


@pytest.mark.parametrize(("pattern", "name"), [(r"^\W", "日"), (r"\b", "é"), ("[[:alpha:]]", "é")])
def test_pattern_that_depends_on_what_a_release_takes_for_letters_is_neither_a_match_nor_none(pattern, name):
    assert matches(pattern, name) is None


PIECES = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "$", "^", r"\b", r"\.", r"\n"])
PATTERNS = st.recursive(
    PIECES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: f"({'|'.join(options)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map("(?={})".format),
        inner.map("(?!{})".format),
    ),
    max_leaves=8,
)


@given(PATTERNS, st.text("ab.\n", max_size=6))
@example("(?:(?:a|ab)(?:b|))*$", "abab")
def test_any_pattern_matches_what_its_regular_expression_does(pattern, name):
    assert matches(pattern, name) == (re.search(pattern, name) is not None)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("^(a+)+$", "a" * 240 + "!"),
        ("(a|aa)+$", "a" * 240 + "!"),
        ("(a|a)*b", "a" * 255),
        ("(.*.*.*.*.*.*.*)*x", "a" * 255),
        ("^((((a*b?)*c?)*d?)*e?)*$", "abcd" * 60 + "!"),
        ("((a{0,99}){0,99}){0,99}b", "a" * 255),
        ("(((a{65535}){65535}){65535}){65535}", "a" * 255),
        ("^(((((.?){9}){9}){9}){9}){9}!", "a" * 255),
    ],
)
def test_no_pattern_keeps_other_threads_from_working(pattern, name):
    """In a process of its own: an engine that holds the interpreter for ever could not be ended otherwise."""
    code = f"from redrive.pattern import matches; print(matches({pattern!r}, {name!r}))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True).stdout
    assert said.strip() in ("False", "None")


def test_pattern_that_takes_too_many_steps_is_neither_a_match_nor_none():
    assert matches(f"^(?:{'|'.join(['a'] * 500)})*!", "a" * 255) is None
