"""Five published retry designs, said in `spec.retry` as a user would say them: every row of every table."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from redrive.outcome import DeadLetter, DeadReason, Failed, RetryLater
from redrive.policy import RetryPolicy
from redrive.retry import decide, try_again
from redrive.schedule import schedule
from redrive.spec.policy import parse_policy

EXAMPLES = Path(__file__).parents[2] / "examples"

FAILED = Failed("boom")
draws = st.floats(0, 1, exclude_max=True)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def policy(max_attempts: int, backoff: dict[str, object], **more: object) -> RetryPolicy:
    return parse_policy({"maxAttempts": max_attempts, "backoff": backoff, **more}, "spec.retry")


def example(name: str) -> RetryPolicy:
    """Read what `examples/` shows to users, so that it cannot say anything else than is tested here."""
    body = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    return parse_policy(body["spec"]["retry"], "spec.retry")


WATCHBOT = example("watchbot")
FULL_JITTER = example("full-jitter")
CX = example("linear")
DAYCRY = example("daycry")
WEBHOOK = example("webhook")

BY_15_PERCENT = {"jitter": "Proportional", "jitterPercent": 15}
DAYCRY_NONE: dict[str, object] = {"strategy": "None"}
DAYCRY_FIXED = {"strategy": "Fixed", "base": "5s", **BY_15_PERCENT}
DAYCRY_EXPONENTIAL = {"strategy": "Exponential", "base": "5s", "multiplier": "2", "max": "300s", **BY_15_PERCENT}


def delay_of(retrying: RetryPolicy, attempt: int, draw: float = 0.5) -> timedelta:
    outcome = decide(retrying, attempt, FAILED, random=lambda: draw, crashes=0)
    assert isinstance(outcome, RetryLater)
    assert outcome.attempt == attempt + 1
    return outcome.delay


def dies_on(retrying: RetryPolicy, attempt: int) -> bool:
    outcome = decide(retrying, attempt, FAILED, random=lambda: 0.5, crashes=0)
    return isinstance(outcome, DeadLetter) and outcome.reason is DeadReason.EXHAUSTED


# A. watchbot


@pytest.mark.parametrize(
    ("attempt", "delay", "cumulative"),
    [
        (1, 2, 2),
        (2, 4, 6),
        (3, 8, 14),
        (4, 16, 30),
        (5, 32, 62),
        (6, 64, 126),
        (7, 128, 254),
        (8, 256, 510),
        (9, 512, 1022),
    ],
)
def test_watchbot_doubles_from_2_to_512_seconds(attempt, delay, cumulative):
    assert delay_of(WATCHBOT, attempt) == seconds(delay)
    row = schedule(WATCHBOT).rows[attempt - 1]
    assert (row.delay, row.earliest, row.latest) == (seconds(delay),) * 3
    assert (row.cumulative, row.worst) == (seconds(cumulative), seconds(cumulative))


def test_watchbots_schedule_is_told_to_programs_like_this():
    delays = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]
    sums = [2.0, 6.0, 14.0, 30.0, 62.0, 126.0, 254.0, 510.0, 1022.0]
    rows = [
        {"attempt": attempt, "delaySeconds": delay, "cumulativeSeconds": total}
        for attempt, (delay, total) in enumerate(zip(delays, sums, strict=True), 1)
    ]
    last = {"attempt": 10, "cumulativeSeconds": 1022.0}
    assert schedule(WATCHBOT).as_json() == {
        "attempts": [*rows, last],
        "maxAttempts": 10,
        "worstCaseSeconds": 1022.0,
    }


def test_watchbots_tenth_failure_goes_to_the_dead_letters_after_1022_seconds():
    assert dies_on(WATCHBOT, 10)
    assert schedule(WATCHBOT).rows[9].delay is None
    assert schedule(WATCHBOT).worst_case == seconds(1022)


# B. exponential with full jitter


@pytest.mark.parametrize(("attempt", "ceiling"), [(1, 1), (2, 2), (3, 4), (4, 8)])
@given(draw=draws)
def test_full_jitter_is_uniform_from_zero_to_the_doubling_ceiling(attempt, ceiling, draw):
    row = schedule(FULL_JITTER).rows[attempt - 1]
    assert (row.delay, row.earliest, row.latest) == (seconds(ceiling), seconds(0), seconds(ceiling))
    assert delay_of(FULL_JITTER, attempt, draw) == seconds(ceiling) * draw


@pytest.mark.parametrize(("attempt", "ceiling"), [(5, 16), (6, 32), (7, 60), (8, 60), (50, 60)])
def test_full_jitter_has_its_ceiling_at_a_minute(attempt, ceiling):
    longer = replace(FULL_JITTER, max_attempts=51)
    assert delay_of(longer, attempt, 0.25) == seconds(ceiling / 4)


def test_full_jitter_gives_up_after_five_attempts():
    assert dies_on(FULL_JITTER, 5)
    assert schedule(FULL_JITTER).worst_case == seconds(15)
    assert str(schedule(FULL_JITTER)) == "5 attempts, after up to 1s, 2s, 4s, 8s; at most 15s in all"


@pytest.mark.parametrize(("backoff", "delay"), [({"strategy": "None"}, 0), ({"strategy": "Fixed", "base": "1s"}, 1)])
def test_immediate_and_fixed_stand_beside_full_jitter(backoff, delay):
    assert [delay_of(policy(5, backoff), attempt) for attempt in range(1, 5)] == [seconds(delay)] * 4


# C. CX: redeliveries without backoff, each running the endpoint's own tries within a minute


@pytest.mark.parametrize("engine", range(3, 11))
@pytest.mark.parametrize("endpoint", range(1, 7))
def test_cx_runs_linear_times_endpoint_tries_in_all(engine, endpoint):
    cx = policy(engine, {"strategy": "None"}, immediate={"tries": endpoint, "within": "60s"})
    runs = 0
    for attempt in range(1, engine + 1):
        starts = starts_in_place(cx)
        runs += len(starts)
        assert starts == [seconds(60) * n**2 / endpoint**2 for n in range(endpoint)]
        assert starts[-1] < seconds(60)
        assert dies_on(cx, attempt) is (attempt == engine)
    assert runs == engine * endpoint


def test_the_example_of_cx_is_one_of_these():
    assert policy(5, {"strategy": "None"}, immediate={"tries": 3, "within": "60s"}) == CX


def starts_in_place(retrying: RetryPolicy) -> list[timedelta]:
    """When each try begins, if tries take no time."""
    starts = [seconds(0)]
    while (pause := try_again(retrying, FAILED, tries=len(starts), elapsed=starts[-1])) is not None:
        starts.append(starts[-1] + pause)
    return starts


@pytest.mark.parametrize(("backoff", "delay"), [({"strategy": "None"}, 0), ({"strategy": "Fixed", "base": "30s"}, 30)])
def test_cx_waits_the_same_between_all_redeliveries(backoff, delay):
    cx = policy(10, backoff, immediate={"tries": 3, "within": "60s"})
    assert [delay_of(cx, attempt) for attempt in range(1, 10)] == [seconds(delay)] * 9


# D. daycry/jobs: maxRetries there is one less than maxAttempts here


@pytest.mark.parametrize("retries", range(6))
@pytest.mark.parametrize("backoff", [DAYCRY_NONE, DAYCRY_FIXED, DAYCRY_EXPONENTIAL])
def test_daycry_runs_once_more_than_it_retries(backoff, retries):
    jobs = policy(retries + 1, backoff)
    assert [dies_on(jobs, attempt) for attempt in range(1, retries + 2)] == [*[False] * retries, True]


def test_the_example_of_daycry_is_one_of_these():
    assert policy(5, DAYCRY_EXPONENTIAL) == DAYCRY


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (DAYCRY_NONE, [0, 0, 0, 0, 0]),
        (DAYCRY_FIXED, [0, 5, 5, 5, 5]),
        (DAYCRY_EXPONENTIAL, [0, 5, 10, 20, 40]),
    ],
)
def test_daycry_waits_so_long_before_each_attempt(backoff, expected):
    before = [seconds(0), *(row.delay for row in schedule(policy(5, backoff)).rows[:-1])]
    assert before == [seconds(number) for number in expected]


@pytest.mark.parametrize(
    ("attempt", "planned", "earliest", "latest"),
    [
        (1, 5, 4.25, 5.75),
        (2, 10, 8.5, 11.5),
        (3, 20, 17, 23),
        (4, 40, 34, 46),
        (5, 80, 68, 92),
        (6, 160, 136, 184),
        (7, 300, 255, 300),
        (8, 300, 255, 300),
    ],
)
@given(draw=draws)
def test_daycry_scatters_by_15_percent_and_never_past_300_seconds(attempt, planned, earliest, latest, draw):
    jobs = policy(9, DAYCRY_EXPONENTIAL)
    row = schedule(jobs).rows[attempt - 1]
    assert (row.delay, row.earliest, row.latest) == (seconds(planned), seconds(earliest), seconds(latest))
    assert seconds(earliest) <= delay_of(jobs, attempt, draw) <= seconds(latest)


@given(draw=draws)
def test_daycry_scatters_a_fixed_delay_too(draw):
    assert seconds(4.25) <= delay_of(policy(9, DAYCRY_FIXED), 3, draw) <= seconds(5.75)


# E. the webhook receiver: min(5·2^attempts, 300), so that the base here is 10 s


@pytest.mark.parametrize(("attempt", "delay", "cumulative"), [(1, 10, 10), (2, 20, 30), (3, 40, 70), (4, 80, 150)])
def test_the_webhook_receiver_waits_min_of_5_times_2_to_the_attempts_and_300(attempt, delay, cumulative):
    assert delay == min(5 * 2**attempt, 300)
    assert delay_of(WEBHOOK, attempt) == seconds(delay)
    assert schedule(WEBHOOK).rows[attempt - 1].cumulative == seconds(cumulative)


def test_the_webhook_receiver_gives_up_after_five_attempts():
    assert dies_on(WEBHOOK, 5)
    assert schedule(WEBHOOK).worst_case == seconds(150)


@pytest.mark.parametrize("attempt", range(1, 21))
def test_the_webhook_receivers_formula_holds_for_more_attempts_too(attempt):
    assert delay_of(replace(WEBHOOK, max_attempts=21), attempt) == seconds(min(5 * 2**attempt, 300))
