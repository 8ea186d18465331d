"""What holds for every retry policy and every draw of its jitter."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from redrive import ladder
from redrive.outcome import (
    Crashed,
    DeadLetter,
    DeadReason,
    Failed,
    RetryLater,
)
from redrive.policy import Backoff, Immediate, Jitter, RetryPolicy, Strategy
from redrive.retry import decide, delay_after, try_again
from redrive.schedule import schedule

FAILED = Failed("boom")


durations = st.timedeltas(timedelta(0), timedelta(hours=36))
backoffs = st.builds(
    Backoff,
    strategy=st.sampled_from(Strategy),
    base=durations,
    multiplier=st.decimals("1", "1000", places=2),
    max=durations,
    jitter=st.sampled_from(Jitter),
    jitter_percent=st.integers(0, 100),
    delays=st.lists(durations, min_size=1, max_size=6).map(tuple),
)
policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 60),
    backoff=backoffs,
    max_delay=durations,
    immediate=st.builds(Immediate, tries=st.integers(1, 10), within=st.timedeltas(timedelta(0), timedelta(minutes=5))),
    max_crashes=st.integers(1, 10),
    rules=st.just(()),
)
draws = st.floats(0, 1, exclude_max=True)


@given(policies, st.integers(1, 10**12), draws, st.none() | st.timedeltas())
def test_a_delay_is_never_past_the_cap_never_early_and_within_the_ladders_reach(policy, attempt, draw, asked):
    policy = replace(policy, max_attempts=10**13)
    outcome = decide(policy, attempt, Failed("", asked_delay=asked), random=lambda: draw, crashes=0)
    assert isinstance(outcome, RetryLater)
    assert timedelta(0) <= outcome.delay <= policy.max_delay
    if asked is None:
        assert outcome.delay <= policy.backoff.max
    slept = ladder.round_up(outcome.delay)
    assert (
        outcome.delay <= slept <= ladder.round_up(policy.max_delay) <= ladder.reach(ladder.places_for(policy.max_delay))
    )
    assert slept - outcome.delay < ladder.UNIT


@given(backoffs, st.integers(1, 10**6), st.integers(1, 10**6))
def test_delays_never_shrink_without_jitter(backoff, a, b):
    backoff = replace(backoff, delays=tuple(sorted(backoff.delays)))
    earlier, later = sorted((a, b))
    assert delay_after(backoff, earlier) <= delay_after(backoff, later)


@given(policies, draws)
@settings(deadline=None)
def test_a_message_that_always_fails_runs_exactly_its_attempts(policy, draw):
    runs, outcome = 0, None
    while not isinstance(outcome, DeadLetter):
        attempt = outcome.attempt if isinstance(outcome, RetryLater) else 1
        outcome = decide(policy, attempt, FAILED, random=lambda: draw, crashes=0)
        runs += 1
    assert runs == policy.max_attempts == len(schedule(policy).rows)
    assert outcome.reason is DeadReason.EXHAUSTED


@given(policies, draws)
def test_a_message_that_always_kills_runs_exactly_its_crashes(policy, draw):
    deaths, outcome = 0, None
    while not isinstance(outcome, DeadLetter):
        crashes = outcome.crashes if isinstance(outcome, RetryLater) else 0
        outcome = decide(policy, 1, Crashed("killed", alone=True), random=lambda: draw, crashes=crashes)
        deaths += 1
    assert deaths == policy.max_crashes


@given(policies, draws)
@settings(deadline=None)
def test_the_schedule_bounds_what_is_slept(policy, draw):
    slept = timedelta(0)
    for row in schedule(policy).rows[:-1]:
        outcome = decide(policy, row.attempt, FAILED, random=lambda: draw, crashes=0)
        assert isinstance(outcome, RetryLater)
        assert row.earliest is not None
        assert row.latest is not None
        assert row.earliest <= outcome.delay <= row.latest
        slept += ladder.round_up(outcome.delay)
    assert slept <= schedule(policy).worst_case


@given(policies, st.lists(st.timedeltas(timedelta(0), timedelta(minutes=1)), max_size=12))
def test_tries_in_place_never_begin_after_their_window_nor_exceed_their_number(policy, lengths):
    tries, elapsed = 0, timedelta(0)
    for length in lengths:
        tries, elapsed = tries + 1, elapsed + length
        pause = try_again(policy, FAILED, tries=tries, elapsed=elapsed)
        if pause is None:
            break
        elapsed += pause
        assert elapsed <= policy.immediate.within
    assert tries <= max(1, policy.immediate.tries)
