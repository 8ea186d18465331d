"""Which letters are meant: by what a selection holds, and by what a person may ask besides."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from letter_samples import delivered, letter
from samples import NOW

from redrive.delivery import Delivery
from redrive.letters import EVERYTHING, chooser, died_until, every, fits, read_letter
from redrive.letters.filters import attempts_between, body_holds, body_searched
from redrive.letters.json_path import BadCondition, parse_condition
from redrive.outcome import DeadReason
from redrive.properties import Properties
from redrive.spec.redrive import HeaderMatch

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def test_letter_tells_how_it_ended():
    found = letter(redrives=2, trace="Traceback")
    assert (found.id, found.reason, found.attempts, found.redrives) == ("m-1", DeadReason.EXHAUSTED, 10, 2)
    assert (found.error_type, found.error, found.trace) == ("shop.errors.Late", "no answer", "Traceback")
    assert (found.fingerprint, found.pod, found.dead_at) == ("00ff00ff00ff00ff", "orders-7c9-x", NOW - 2 * HOUR)


def test_letter_that_the_broker_parked_is_read_from_its_death():
    death = {"reason": "delivery_limit", "time": datetime(2026, 5, 1, tzinfo=UTC), "exchange": "shop.events"}
    found = read_letter(
        Delivery(1, "redrive.dead", "shop/orders", False, b"", Properties(headers={"x-death": [death]})), now=NOW
    )
    assert (found.id, found.reason, found.dead_at) == ("", DeadReason.CRASHED, datetime(2026, 5, 1, tzinfo=UTC))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from([*delivered().properties.headers, "redrive-redrives", "redrive-trace", "x-death"])


@given(st.dictionaries(NAMES, VALUES), st.binary(max_size=20))
def test_no_header_and_no_body_can_crash_who_chooses(headers, body):
    found = read_letter(Delivery(1, b"\xff", b"\xff", False, body, Properties(headers=headers)), now=NOW)
    asked = replace(EVERYTHING, older_than=HOUR, newer_than=HOUR, header=HeaderMatch("x-death", "1"), error_type="x")
    assert fits(asked, found, seen_from=NOW) in (True, False)
    assert body_holds("$.a.b=1")(found) in (True, False)
    assert body_searched("a|b")(found) in (True, False)


def test_nothing_asked_for_is_everything():
    assert fits(EVERYTHING, letter(dead_reason=None, age=None), seen_from=NOW)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"reason": DeadReason.EXHAUSTED}, True),
        ({"reason": DeadReason.CRASHED}, False),
        ({"error_type": "shop.errors.Late"}, True),
        ({"error_type": "shop.errors"}, False),
        ({"fingerprint": "00ff00ff00ff00ff"}, True),
        ({"fingerprint": "00ff"}, False),
        ({"message_ids": ("m-0", "m-1")}, True),
        ({"message_ids": ("m-0",)}, False),
        ({"older_than": 2 * HOUR}, True),
        ({"older_than": 3 * HOUR}, False),
        ({"newer_than": 2 * HOUR}, True),
        ({"newer_than": HOUR}, False),
        ({"header": HeaderMatch("tenant", None)}, True),
        ({"header": HeaderMatch("tenant", "a")}, True),
        ({"header": HeaderMatch("tenant", "b")}, False),
        ({"header": HeaderMatch("other", None)}, False),
        ({"reason": DeadReason.EXHAUSTED, "message_ids": ("m-0",)}, False),
    ],
)
def test_letter_fits_all_that_is_asked(asked, expected):
    found = letter(user={"tenant": "a"})
    assert fits(replace(EVERYTHING, **asked), found, seen_from=NOW) is expected


@pytest.mark.parametrize(
    ("value", "typed"), [(5, "5"), (True, "true"), (b"raw", "raw"), (1.5, "1.5"), (None, "null"), ("5", "5")]
)
def test_header_of_any_type_is_compared_as_it_is_written(value, typed):
    found = read_letter(Delivery(1, "", "", False, b"", Properties(headers={"h": value})), now=NOW)
    assert fits(replace(EVERYTHING, header=HeaderMatch("h", typed)), found, seen_from=NOW)


def test_letter_of_unknown_age_is_older_than_nothing_and_newer_than_nothing():
    found = letter(dead_reason=None, age=None)
    assert chooser(replace(EVERYTHING, older_than=timedelta(0)), seen_from=NOW)(found)
    assert not chooser(replace(EVERYTHING, older_than=HOUR), seen_from=NOW)(found)
    assert not chooser(replace(EVERYTHING, newer_than=HOUR), seen_from=NOW)(found)


def test_letter_that_died_after_the_moment_it_is_seen_from_is_not_old():
    assert not fits(replace(EVERYTHING, older_than=timedelta(0)), letter(age=-MINUTE), seen_from=NOW)
    assert died_until(NOW)(letter(age=timedelta(0)))
    assert not died_until(NOW)(letter(age=-MINUTE))


@pytest.mark.parametrize("ahead", [HOUR, timedelta(days=20_000)])
def test_letter_that_says_it_will_die_is_no_newer_than_now_and_kept_from_nobody(ahead):
    found = letter(age=-ahead)
    assert found.dead_at == NOW
    assert died_until(NOW - HOUR)(found)
    assert "redrive-dead-at" in found.death.clamped


@given(st.dictionaries(NAMES, VALUES))
def test_one_thing_that_a_letter_is_asked_for_is_what_its_whole_story_tells(headers):
    def read():
        return read_letter(Delivery(1, "", "", False, b"", Properties(headers=headers)), now=NOW)

    whole = read()
    told = whole.death.reason, whole.death.fingerprint, whole.story.error_type
    assert (read().reason, read().fingerprint, read().error_type) == told
    assert (whole.reason, whole.fingerprint, whole.error_type) == told


def test_every_choice_must_choose_it():
    assert every([])(letter())
    assert not every([attempts_between(1, 20), attempts_between(11, None)])(letter())


@pytest.mark.parametrize(
    ("least", "most", "expected"), [(10, 10, True), (None, 9, False), (11, None, False), (None, None, True)]
)
def test_attempts_are_between(least, most, expected):
    assert attempts_between(least, most)(letter()) is expected


BODY = b'{"order": {"id": 5, "country": "at", "paid": true, "items": [{"sku": "x1"}, {"sku": "y2"}], "a.b": null}}'


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("$.order.id=5", True),
        ("order.id = 5", True),
        ('$.order.id="5"', False),
        ("$.order.id!=5", False),
        ("$.order.id>4", True),
        ("$.order.id<=4", False),
        ("$.order.country=at", True),
        ('$.order.country="at"', True),
        ("$.order.country>as", True),
        ("$.order.country~^a", True),
        ("$.order.country~^b", False),
        ("$.order.paid=true", True),
        ("$.order.paid=1", False),
        ("$.order.items[0].sku=x1", True),
        ("$.order.items[-1].sku=x1", False),
        ("$.order.items[*].sku=y2", True),
        ("$.order.items[9]", False),
        ("$.order['a.b']=null", True),
        ("$.order.nothing", False),
        ("$.order.nothing!=1", False),
        ("$.order.items", True),
        ("$", True),
    ],
)
def test_json_body_is_asked_by_a_path(condition, expected):
    assert body_holds(condition)(letter(body=BODY)) is expected


@pytest.mark.parametrize("condition", ["", "=5", "$.a[", "$.a ? 5", "$.a~(", "$.a b"])
def test_condition_that_makes_no_sense_is_refused_with_a_sentence(condition):
    with pytest.raises(BadCondition):
        parse_condition(condition)


@given(st.text(max_size=30))
def test_no_condition_can_crash_the_reader(text):
    with suppress(BadCondition):
        parse_condition(text).holds({"a": [1, {"b": None}]})


@pytest.mark.parametrize(
    ("pattern", "body", "expected"),
    [("gr.ß", "größe grüß".encode(), True), ("^\\d+$", b"12a", False), ("ab", b"\xff\xfeab", True)],
)
def test_body_is_searched_as_text_and_else_as_bytes(pattern, body, expected):
    assert body_searched(pattern)(letter(body=body)) is expected


def test_pattern_that_does_not_compile_is_refused_with_a_sentence():
    with pytest.raises(BadCondition, match="no regular expression"):
        body_searched("(")


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 20_000])
def test_expression_that_python_chokes_on_is_none(pattern):
    for ask in (body_searched, lambda text: body_holds(f"$.a~{text}")):
        with pytest.raises(BadCondition, match="no regular expression"):
            ask(pattern)


def test_expression_that_is_one_for_texts_alone_is_found_in_texts():
    assert body_searched(r"\u20ac")(letter(body="5 €".encode()))
    assert not body_searched(r"\u20ac")(letter(body=b"\xff"))


def test_bytes_that_are_no_text_may_be_typed():
    assert body_searched("\udcff")(letter(body=b"a\xff"))
    assert not body_searched("\udcff")(letter(body=b"a"))


def test_body_that_is_no_json_fits_no_path():
    assert not body_holds("$")(letter(body=b"{"))
    assert not body_holds("$")(letter(body=b"[" * 100_000))
