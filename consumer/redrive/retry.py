"""How long to wait after a failure, and what becomes of a message: `decide`.

Attempts are counted from 1, and the delay after attempt n is the policy's n-th. A failure uses an attempt, so a message
that always fails runs exactly `max_attempts` times. A snooze uses none, nor does a crash, which is counted apart.
Randomness is an argument, a function like `random.random`; there is no clock here.

Delays are capped before jitter (full jitter is uniform in 0..min(max, d)) and again after it. The ladder then rounds
up, so that a message may sleep less than 125 ms longer than the cap, and is never early.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import assert_never

from redrive.outcome import (
    Cause,
    Crashed,
    DeadLetter,
    DeadReason,
    Done,
    Expired,
    Failed,
    Outcome,
    Rejected,
    Result,
    RetryLater,
    Snoozed,
    Succeeded,
    Unreadable,
)
from redrive.policy import Action, Backoff, Immediate, Jitter, RetryPolicy, Rule, Strategy
from redrive.quickly import quickly

Random = Callable[[], float]

# A snooze uses no attempt: one without a delay would turn the queue into a busy loop that nothing ever ends.
SHORTEST_SNOOZE = timedelta(seconds=1)

# What an HTTP status in the 400s means for the request alone, when it is sent again unchanged: nothing will change.
# These three say the opposite.
PASSING_CLIENT_ERRORS = frozenset({408, 425, 429})

# More attempts than any policy allows; a forged count must neither overflow a float nor cost time.
MANY_ATTEMPTS = 1_000_000

ZERO = timedelta(0)

_retry_later = quickly(RetryLater)


def decide(policy: RetryPolicy, attempt: int, result: Result, *, random: Random, crashes: int) -> Outcome:
    """Say what becomes of a message after its `attempt`-th run (the first is 1); `crashes` is what it had before."""
    match result:
        case Succeeded():
            return Done()
        case Failed():
            return _after_failure(policy, attempt, result, random=random, crashes=crashes)
        case Snoozed(asked):
            delay = _snooze(policy, attempt, asked, random)
            return RetryLater(delay, attempt, crashes, suspect=crashes > 0, snoozed=True)
        case Crashed():
            return _after_crash(policy, attempt, result, random=random, crashes=crashes)
        case Rejected(reason, trace):
            return DeadLetter(DeadReason.REJECTED, Cause("redrive.Reject", reason, trace), crashes)
        case Unreadable(error, trace):
            return DeadLetter(DeadReason.UNREADABLE, Cause("redrive.Unreadable", error, trace), crashes)
        case Expired():
            return DeadLetter(DeadReason.EXPIRED, Cause("redrive.Expired", "past its publisher's expiration"), crashes)
        case _:
            assert_never(result)


def try_again(policy: RetryPolicy, failed: Failed, *, tries: int, elapsed: timedelta) -> timedelta | None:
    """Say after what pause to try again in place, `tries` having failed in the `elapsed` time; None: leave it.

    Who asks for a delay wants it slept in the ladder, and what a rule dead-letters is not tried again.
    """
    if failed.asked_delay is not None or action_for(policy.rules, failed) is Action.DEAD_LETTER:
        return None
    immediate = policy.immediate
    if tries >= immediate.tries or elapsed > immediate.within:
        return None
    return max(ZERO, try_offset(immediate, tries) - elapsed)


def try_offset(immediate: Immediate, tries: int) -> timedelta:
    """Say when, after the first try began, the one after `tries` is due: soon at first, and all inside `within`."""
    return immediate.within * tries**2 / immediate.tries**2


def delay_after(backoff: Backoff, attempt: int) -> timedelta:
    """Say the delay after a failed attempt, before jitter and capped."""
    attempt = min(attempt, MANY_ATTEMPTS)
    match backoff.strategy:
        case Strategy.NONE:
            return ZERO
        case Strategy.FIXED:
            return min(backoff.base, backoff.max)
        case Strategy.LINEAR:
            return _grow(backoff, float(attempt))
        case Strategy.EXPONENTIAL:
            return _grow(backoff, _power(float(backoff.multiplier), attempt - 1))
        case Strategy.SCHEDULE:
            return min(backoff.delays[min(attempt, len(backoff.delays)) - 1], backoff.max)
        case _:
            assert_never(backoff.strategy)


def scatter(backoff: Backoff, delay: timedelta, unit: float) -> timedelta:
    """Apply the jitter that `unit`, drawn from 0..1, stands for; 0 and 1 give the earliest and the latest."""
    match backoff.jitter:
        case Jitter.NONE:
            scattered = delay
        case Jitter.FULL:
            scattered = delay * unit
        case Jitter.EQUAL:
            scattered = delay / 2 + delay / 2 * unit
        case Jitter.PROPORTIONAL:
            scattered = delay * (1 + backoff.jitter_percent / 100 * (2 * unit - 1))
        case _:
            assert_never(backoff.jitter)
    return _clamp(scattered, backoff.max)


def action_for(rules: tuple[Rule, ...], failed: Failed) -> Action:
    return _action_of(find_rule(rules, failed), failed)


def _action_of(rule: Rule | None, failed: Failed) -> Action:
    if rule is not None:
        return rule.action
    status = failed.http_status
    hopeless = status is not None and 400 <= status < 500 and status not in PASSING_CLIENT_ERRORS
    return Action.DEAD_LETTER if hopeless else Action.RETRY


def find_rule(rules: tuple[Rule, ...], failed: Failed) -> Rule | None:
    for rule in rules:
        if _matches(rule, failed):
            return rule
    return None


def _after_failure(policy: RetryPolicy, attempt: int, failed: Failed, *, random: Random, crashes: int) -> Outcome:
    rule = find_rule(policy.rules, failed)
    if _action_of(rule, failed) is Action.DEAD_LETTER:
        return DeadLetter(DeadReason.REJECTED, failed.cause, crashes)
    if attempt >= policy.max_attempts:
        return DeadLetter(DeadReason.EXHAUSTED, failed.cause, crashes)
    delay = _delay_after_failure(policy, rule, attempt, failed, random)
    # Having run and failed alone like any other clears a suspect that never killed anybody.
    return _retry_later(delay, attempt + 1, crashes, suspect=crashes > 0, cause=failed.cause)


def _delay_after_failure(
    policy: RetryPolicy, rule: Rule | None, attempt: int, failed: Failed, random: Random
) -> timedelta:
    if failed.asked_delay is not None:
        return _clamp(failed.asked_delay, policy.max_delay)
    return _choose_delay(policy, (rule and rule.backoff) or policy.backoff, attempt, random)


def _after_crash(policy: RetryPolicy, attempt: int, crashed: Crashed, *, random: Random, crashes: int) -> Outcome:
    cause = Cause("redrive.Crashed", crashed.error)
    if not crashed.alone:
        return RetryLater(ZERO, attempt, crashes, suspect=True, cause=cause)
    crashes += 1
    if crashes >= policy.max_crashes:
        return DeadLetter(DeadReason.CRASHED, cause, crashes)
    # Backing off by the number of crashes: what killed the worker (memory, a neighbour) may pass.
    delay = _choose_delay(policy, policy.backoff, crashes, random)
    return RetryLater(delay, attempt, crashes, suspect=True, cause=cause)


def _snooze(policy: RetryPolicy, attempt: int, asked: timedelta | None, random: Random) -> timedelta:
    delay = _choose_delay(policy, policy.backoff, attempt, random) if asked is None else asked
    return _clamp(delay if delay > ZERO else SHORTEST_SNOOZE, policy.max_delay)


def _choose_delay(policy: RetryPolicy, backoff: Backoff, attempt: int, random: Random) -> timedelta:
    return min(scatter(backoff, delay_after(backoff, attempt), random()), policy.max_delay)


def _clamp(delay: timedelta, longest: timedelta) -> timedelta:
    return max(ZERO, min(delay, longest))


def _grow(backoff: Backoff, factor: float) -> timedelta:
    """Multiply without overflowing: what is past the cap, be it infinite, is the cap itself."""
    seconds = backoff.base.total_seconds() * factor if backoff.base else 0.0
    return backoff.max if seconds >= backoff.max.total_seconds() else timedelta(seconds=seconds)


def _power(base: float, exponent: int) -> float:
    try:
        return base**exponent
    except OverflowError:
        return float("inf")


def _matches(rule: Rule, failed: Failed) -> bool:
    if rule.error_types:
        names = {_plain(name) for name in failed.error_types}
        return any(_plain(name) in names for name in rule.error_types)
    if rule.exit_codes:
        return failed.exit_code in rule.exit_codes
    return any(_matches_status(pattern, failed.http_status) for pattern in rule.http_status)


def _matches_status(pattern: str, status: int | None) -> bool:
    text = str(status)
    return pattern == text or (pattern.endswith("xx") and len(text) == 3 and pattern[0] == text[0])


def _plain(name: str) -> str:
    """People write `ValueError` and `builtins.ValueError`, and mean one thing."""
    return name.removeprefix("builtins.")
