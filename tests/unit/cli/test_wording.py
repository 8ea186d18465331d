"""What became of a message, in words."""

from datetime import UTC, datetime, timedelta

import pytest

from redrive_cli.wording import say_age, say_count, say_delay, say_line, say_near, say_tally
from redrive_cli.worker_lines import Told

NOON = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


def say(event, *, level="info", worker="", time=NOON, **facts):
    told = Told(time, event, level, {"id": "m-1", "attempt": 2, **facts})
    return "".join(text for text, _ in say_line(told, max_attempts=3, width=5, worker=worker)).partition("  ")[2]


@pytest.mark.parametrize(
    ("event", "facts", "words"),
    [
        ("done", {"seconds": 0.1}, "m-1    2/3  ✔ done"),
        ("retry", {"delaySeconds": 4.0}, "m-1    2/3  ↻ retry in 4 s"),
        ("retry", {}, "m-1    2/3  ↻ retry"),
        (
            "retry",
            {"delaySeconds": 4, "errorType": "shop.Late", "error": "no answer"},
            "m-1    2/3  ↻ retry in 4 s  (shop.Late: no answer)",
        ),
        ("snooze", {"delaySeconds": 90}, "m-1    2/3  z snooze for 1m30s"),
        ("dead", {"reason": "Exhausted", "error": "no"}, "m-1    2/3  ✖ dead: Exhausted  (no)"),
        ("suspect", {}, "m-1    2/3  suspect"),
        ("unsettled", {"error": "no route"}, "m-1    2/3  unsettled  error=no route"),
        ("reborn", {"id": None, "attempt": None, "queue": "orders"}, "reborn  queue=orders"),
    ],
)
def test_line_of_a_message_says_its_fate(event, facts, words):
    assert say(event, **facts) == words


def test_line_begins_with_the_time_here():
    [(text, _), *_] = say_line(Told(NOON, "done"), max_attempts=3, width=1)
    assert text == f"{NOON.astimezone():%H:%M:%S}"


def test_line_of_one_of_several_workers_says_which():
    assert say("done", worker="#2") == "#2  m-1    2/3  ✔ done"


def test_nothing_from_outside_can_steer_a_terminal():
    words = say("dead", id="\x1b[2Jm\n1", reason="\x9b31m", errorType="a\rb", error="\u202etxt\x07\x00")
    assert not set(words) & {"\x1b", "\x9b", "\r", "\n", "\x07", "\x00", "\u202e"}
    assert "[2Jm 1" in words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (0.125, "0.1 s"), (1.0, "1 s"), (2.25, "2.2 s"), (59.9, "59.9 s"), (60, "1m"), (512.4, "8m32s")],
)
def test_delay_is_said_as_people_do(seconds, words):
    assert say_delay(seconds) == words


def test_tally_counts_each_outcome_and_snoozes_only_if_any():
    assert say_tally({"done": 2, "retry": 3}) == "done 2, retried 3, dead 0"
    assert say_tally({"snooze": 1}) == "done 0, retried 0, snoozed 1, dead 0"


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0"), (7, "7"), (1234567, "1,234,567"), (2500.0, "2,500"), (0.25, "0.25"), (12.345, "12.3"), (99.99, "100")],
)
def test_a_number_has_its_thousands_apart_and_no_needless_fraction(number, said):
    assert say_count(number) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0s"),
        (59, "59s"),
        (60, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (7290, "2h1m"),
        (90_000, "1d1h"),
        (864_000, "10d"),
    ],
)
def test_an_age_is_said_as_kubectl_says_it(seconds, said):
    assert say_age(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["orders", "payments"], ": did you mean orders?"),
        (["payments"], ": there is payments"),
        (["a", "b"], ": there are a, b"),
        ([str(number) for number in range(10)], ": there are 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"),
        ([], ""),
        (["\x1b[31morders"], ": did you mean \ufffd[31morders?"),
    ],
)
def test_names_that_there_are_are_told_where_one_is_not(names, said):
    assert say_near("order", names) == said
