"""Delays, jitter and tries in place, row by row, and the table that tells them to people."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from redrive.outcome import (
    Failed,
)
from redrive.policy import Backoff, Immediate, Jitter, RetryPolicy, Strategy
from redrive.retry import delay_after, scatter, try_again
from redrive.schedule import schedule


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


EXPONENTIAL = Backoff(Strategy.EXPONENTIAL, seconds(2), Decimal(2), seconds(512), Jitter.NONE, 0, ())
POLICY = RetryPolicy(10, EXPONENTIAL, seconds(512), Immediate(1, seconds(60)), 3, ())


FAILED = Failed("boom")


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Strategy.NONE, [0, 0, 0, 0, 0, 0]),
        (Strategy.FIXED, [3, 3, 3, 3, 3, 3]),
        (Strategy.LINEAR, [3, 6, 9, 12, 15, 18]),
        (Strategy.EXPONENTIAL, [3, 4.5, 6.75, 10.125, 15.1875, 20]),
        (Strategy.SCHEDULE, [1, 5, 20, 20, 20, 20]),
    ],
)
def test_a_strategy_says_the_delay_after_each_attempt(strategy, expected):
    delays = (seconds(1), seconds(5), seconds(60))
    backoff = Backoff(strategy, seconds(3), Decimal("1.5"), seconds(20), Jitter.NONE, 0, delays)
    assert [delay_after(backoff, attempt) for attempt in range(1, 7)] == [seconds(number) for number in expected]


@pytest.mark.parametrize(
    ("jitter", "percent", "earliest", "middle", "latest"),
    [
        (Jitter.NONE, 0, 100, 100, 100),
        (Jitter.FULL, 0, 0, 50, 100),
        (Jitter.EQUAL, 0, 50, 75, 100),
        (Jitter.PROPORTIONAL, 15, 85, 100, 110),
        (Jitter.PROPORTIONAL, 100, 0, 100, 110),
    ],
)
def test_jitter_scatters_and_the_cap_holds_after_it(jitter, percent, earliest, middle, latest):
    backoff = replace(EXPONENTIAL, max=seconds(110), jitter=jitter, jitter_percent=percent)
    drawn = [scatter(backoff, seconds(100), unit) for unit in (0.0, 0.5, 1.0)]
    assert drawn == [seconds(earliest), seconds(middle), seconds(latest)]


@pytest.mark.parametrize("attempt", [10**3, 10**6, 10**400])
@pytest.mark.parametrize("multiplier", ["1", "1.0001", "2", "1000000"])
@pytest.mark.parametrize("strategy", [Strategy.LINEAR, Strategy.EXPONENTIAL])
def test_no_attempt_is_too_high_to_compute(strategy, multiplier, attempt):
    backoff = replace(EXPONENTIAL, strategy=strategy, multiplier=Decimal(multiplier))
    flat = strategy is Strategy.EXPONENTIAL and multiplier == "1"
    slow = strategy is Strategy.EXPONENTIAL and multiplier == "1.0001" and attempt == 10**3
    assert (delay_after(backoff, attempt) == seconds(512)) is not (flat or slow)


def test_without_a_base_there_is_no_delay_however_high_the_attempt():
    assert delay_after(replace(EXPONENTIAL, base=seconds(0)), 10**6) == seconds(0)


@pytest.mark.parametrize(
    ("tries", "elapsed", "pause"),
    [(1, 0, 2.4), (2, 2.5, 7.1), (3, 12, 9.6), (4, 30, 8.4), (4, 45, 0), (4, 60.1, None), (5, 41, None), (9, 0, None)],
)
def test_tries_in_place_are_staggered_inside_their_window(tries, elapsed, pause):
    policy = replace(POLICY, immediate=Immediate(5, seconds(60)))
    assert try_again(policy, FAILED, tries=tries, elapsed=seconds(elapsed)) == (
        None if pause is None else seconds(pause)
    )


@pytest.mark.parametrize("failed", [Failed("", asked_delay=seconds(1)), Failed("", http_status=404)])
def test_who_asks_for_a_delay_or_is_hopeless_is_not_tried_in_place(failed):
    policy = replace(POLICY, immediate=Immediate(5, seconds(60)))
    assert try_again(policy, failed, tries=1, elapsed=seconds(0)) is None


def test_a_single_try_is_never_repeated_in_place():
    assert try_again(POLICY, FAILED, tries=1, elapsed=seconds(0)) is None


def test_a_schedule_in_json_has_no_delay_after_the_last_attempt():
    table = schedule(replace(POLICY, max_attempts=3)).as_json()
    assert json.loads(json.dumps(table)) == {
        "attempts": [
            {"attempt": 1, "delaySeconds": 2.0, "cumulativeSeconds": 2.0},
            {"attempt": 2, "delaySeconds": 4.0, "cumulativeSeconds": 6.0},
            {"attempt": 3, "cumulativeSeconds": 6.0},
        ],
        "maxAttempts": 3,
        "worstCaseSeconds": 6.0,
    }


def test_a_schedule_in_json_says_what_jitter_may_do():
    backoff = replace(EXPONENTIAL, jitter=Jitter.PROPORTIONAL, jitter_percent=50)
    table = schedule(replace(POLICY, max_attempts=2, backoff=backoff)).as_json()
    expected = {
        "attempt": 1,
        "delaySeconds": 2.0,
        "earliestSeconds": 1.0,
        "latestSeconds": 3.0,
        "cumulativeSeconds": 2.0,
    }
    assert table["attempts"][0] == expected
    assert table["worstCaseSeconds"] == 3.0


@pytest.mark.parametrize(
    ("base", "worst"), [(0.1, 0.125), (0.125, 0.125), (0.126, 0.25), (2, 2)], ids=lambda number: f"{number}s"
)
def test_the_worst_case_counts_each_delay_as_the_ladder_rounds_it(base, worst):
    fixed = replace(EXPONENTIAL, strategy=Strategy.FIXED, base=seconds(base))
    table = schedule(replace(POLICY, max_attempts=4, backoff=fixed))
    assert [row.worst for row in table.rows] == [seconds(worst * n) for n in (1, 2, 3, 3)]
    assert [row.cumulative for row in table.rows] == [seconds(base * n) for n in (1, 2, 3, 3)]
    assert table.as_json()["worstCaseSeconds"] == worst * 3


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (POLICY, "10 attempts, after 2s, 4s, 8s, 16s, 32s, 1m4s, 2m8s, 4m16s, 8m32s; at most 17m2s in all"),
        (replace(POLICY, max_attempts=1), "1 attempt, no retry"),
        (replace(POLICY, max_delay=seconds(0.5), max_attempts=4), "4 attempts, after 500ms ×3; at most 1s500ms in all"),
        (
            replace(POLICY, max_attempts=100, backoff=replace(EXPONENTIAL, strategy=Strategy.LINEAR)),
            "100 attempts, after 2s, 4s, 6s, 8s, 10s, 12s, …, 3m14s, 3m16s, 3m18s; at most 2h45m in all",
        ),
        (
            replace(POLICY, max_attempts=3, backoff=replace(EXPONENTIAL, strategy=Strategy.NONE)),
            "3 attempts, after 0s ×2; at most 0s in all",
        ),
        (
            replace(POLICY, max_attempts=4, backoff=replace(EXPONENTIAL, jitter=Jitter.FULL)),
            "4 attempts, after up to 2s, 4s, 8s; at most 14s in all",
        ),
        (
            replace(
                POLICY, max_attempts=3, backoff=replace(EXPONENTIAL, jitter=Jitter.PROPORTIONAL, jitter_percent=15)
            ),
            "3 attempts, after up to 2s300ms, 4s600ms; at most 7s in all",
        ),
        (
            replace(POLICY, max_attempts=3, backoff=replace(EXPONENTIAL, jitter=Jitter.PROPORTIONAL, jitter_percent=0)),
            "3 attempts, after 2s, 4s; at most 6s in all",
        ),
        (
            replace(POLICY, max_attempts=11, backoff=replace(EXPONENTIAL, strategy=Strategy.FIXED, base=seconds(0.1))),
            "11 attempts, after 100ms ×10; at most 1s250ms in all",
        ),
    ],
)
def test_a_schedule_reads_in_one_line(policy, text):
    assert str(schedule(policy)) == text
