"""What becomes of a message after a run, row by row."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from inspect import Parameter, signature

import pytest

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
    TimedOut,
    Unreadable,
    type_names,
)
from redrive.policy import Action, Backoff, Immediate, Jitter, RetryPolicy, Rule, Strategy
from redrive.retry import decide


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


EXPONENTIAL = Backoff(Strategy.EXPONENTIAL, seconds(2), Decimal(2), seconds(512), Jitter.NONE, 0, ())
POLICY = RetryPolicy(10, EXPONENTIAL, seconds(512), Immediate(1, seconds(60)), 3, ())


def rule(action: Action = Action.DEAD_LETTER, backoff: Backoff | None = None, **matcher: tuple) -> Rule:
    every = {"error_types": (), "exit_codes": (), "http_status": ()} | matcher
    return Rule(**every, action=action, backoff=backoff)


def after(result: Result, attempt: int = 1, *, policy: RetryPolicy = POLICY, crashes: int = 0) -> Outcome:
    return decide(policy, attempt, result, random=lambda: 0.5, crashes=crashes)


class ShopError(Exception):
    pass


class CardDeclined(ShopError, ValueError):
    pass


FAILED = Failed("boom", error_types=type_names(CardDeclined))
NAME = f"{__name__}.CardDeclined"


def test_success_is_done():
    assert after(Succeeded()) == Done()


def test_a_failure_is_retried_on_the_next_attempt_with_its_cause():
    outcome = after(Failed("boom", error_types=("shop.Late", "Exception"), trace="at line 3"), 3)
    assert isinstance(outcome, RetryLater)
    assert (outcome.delay, outcome.attempt, outcome.suspect) == (seconds(8), 4, False)
    assert outcome.cause is not None
    assert (outcome.cause.error_type, outcome.cause.error, outcome.cause.trace) == ("shop.Late", "boom", "at line 3")


def test_message_is_dead_lettered_after_its_last_attempt():
    outcome = after(FAILED, 10)
    assert isinstance(outcome, DeadLetter)
    assert (outcome.reason, outcome.cause.error) == (DeadReason.EXHAUSTED, "boom")


@pytest.mark.parametrize("attempt", [11, 10**9, 10**400])
def test_an_attempt_past_the_last_is_dead_lettered_too(attempt):
    assert isinstance(after(FAILED, attempt), DeadLetter)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Rejected("no such shop"), DeadReason.REJECTED),
        (Unreadable("not JSON"), DeadReason.UNREADABLE),
        (Expired(), DeadReason.EXPIRED),
    ],
)
def test_what_no_retry_can_mend_is_dead_lettered_at_once(result, reason):
    outcome = after(result)
    assert isinstance(outcome, DeadLetter)
    assert outcome.reason is reason


@pytest.mark.parametrize("name", ["redrive.TimedOut", "TimeoutError", "OSError", "Exception"])
def test_a_timeout_is_a_failure_that_rules_know_by_its_names(name):
    outcome = after(TimedOut("took longer than 300s"), policy=replace(POLICY, rules=(rule(error_types=(name,)),)))
    assert isinstance(outcome, DeadLetter)
    assert outcome.cause.error_type == "redrive.TimedOut"
    assert isinstance(after(TimedOut("took longer than 300s")), RetryLater)


@pytest.mark.parametrize(
    "result", [Rejected("no such shop"), Unreadable("not JSON"), Expired(), Failed("", http_status=404)]
)
def test_crashes_are_told_also_of_what_died_of_something_else(result):
    outcome = after(result, crashes=2)
    assert isinstance(outcome, DeadLetter)
    assert outcome.crashes == 2


def test_crashes_are_told_of_a_message_whose_attempts_are_used_up():
    outcome = after(FAILED, 10, crashes=2)
    assert isinstance(outcome, DeadLetter)
    assert outcome.crashes == 2


@pytest.mark.parametrize(
    ("result", "cause"),
    [
        (Rejected("no such shop", "at line 3"), Cause("redrive.Reject", "no such shop", "at line 3")),
        (Unreadable("not JSON", "at line 3"), Cause("redrive.Unreadable", "not JSON", "at line 3")),
        (Expired(), Cause("redrive.Expired", "past its publisher's expiration")),
        (
            Failed("boom", error_types=("shop.A",), trace="at line 3", http_status=404),
            Cause("shop.A", "boom", "at line 3"),
        ),
    ],
)
def test_a_dead_letter_tells_its_cause_with_the_trace(result, cause):
    outcome = after(result)
    assert isinstance(outcome, DeadLetter)
    assert outcome.cause == cause


def test_nobody_forgets_the_crashes_by_leaving_them_out():
    assert signature(decide).parameters["crashes"].default is Parameter.empty


@pytest.mark.parametrize(("asked", "slept"), [(7, 7), (0, 0), (-5, 0), (511.9, 511.9), (10**9, 512)])
def test_a_delay_that_is_asked_for_is_taken_unless_it_passes_the_longest(asked, slept):
    outcome = after(Failed("later", asked_delay=seconds(asked)))
    assert isinstance(outcome, RetryLater)
    assert outcome.delay == seconds(slept)


def test_a_delay_that_is_asked_for_may_pass_the_backoffs_own_cap():
    policy = replace(POLICY, backoff=replace(EXPONENTIAL, max=seconds(10)))
    outcome = after(Failed("later", asked_delay=seconds(60)), policy=policy)
    assert isinstance(outcome, RetryLater)
    assert outcome.delay == seconds(60)


def test_asking_for_a_delay_uses_an_attempt():
    assert isinstance(after(Failed("later", asked_delay=seconds(1)), 10), DeadLetter)


@pytest.mark.parametrize(("asked", "slept"), [(90, 90), (0.2, 0.2), (0, 1), (-3, 1), (None, 8), (10**9, 512)])
def test_a_snooze_uses_no_attempt_and_never_spins(asked, slept):
    outcome = after(Snoozed(None if asked is None else seconds(asked)), 3)
    assert outcome == RetryLater(seconds(slept), 3, snoozed=True)


def test_a_snooze_without_a_delay_waits_also_when_the_strategy_does_not():
    policy = replace(POLICY, backoff=replace(EXPONENTIAL, strategy=Strategy.NONE))
    assert after(Snoozed(), policy=policy) == RetryLater(seconds(1), 1, snoozed=True)


def test_a_snooze_on_the_last_attempt_is_still_a_snooze():
    assert isinstance(after(Snoozed(seconds(5)), 10), RetryLater)


def test_a_crash_in_company_makes_a_suspect_and_counts_nothing():
    outcome = after(Crashed("worker died", alone=False), 4, crashes=2)
    assert isinstance(outcome, RetryLater)
    assert (outcome.delay, outcome.attempt, outcome.crashes, outcome.suspect) == (seconds(0), 4, 2, True)


def test_crashes_alone_are_counted_apart_from_attempts_until_their_limit():
    first = after(Crashed("signal 9", alone=True), 4, crashes=0)
    second = after(Crashed("signal 9", alone=True), 4, crashes=1)
    third = after(Crashed("signal 9", alone=True), 4, crashes=2)
    assert isinstance(first, RetryLater)
    assert isinstance(second, RetryLater)
    assert (first.crashes, first.attempt, first.delay, first.suspect) == (1, 4, seconds(2), True)
    assert (second.crashes, second.attempt, second.delay, second.suspect) == (2, 4, seconds(4), True)
    assert isinstance(third, DeadLetter)
    assert (third.reason, third.crashes) == (DeadReason.CRASHED, 3)


@pytest.mark.parametrize(("crashes", "suspect"), [(0, False), (1, True)])
@pytest.mark.parametrize("result", [FAILED, Snoozed(seconds(1))])
def test_who_ran_alone_and_lived_is_no_suspect_unless_it_has_killed_before(result, crashes, suspect):
    outcome = after(result, crashes=crashes)
    assert isinstance(outcome, RetryLater)
    assert (outcome.suspect, outcome.crashes) == (suspect, crashes)


def test_names_of_an_exception_are_its_class_and_bases_with_builtins_plain():
    expected = (NAME, f"{__name__}.ShopError", "ValueError", "Exception", "BaseException")
    assert type_names(CardDeclined) == expected
    assert type_names(asyncio.TimeoutError)[0] == "TimeoutError"


@pytest.mark.parametrize(
    ("matcher", "failed", "dead"),
    [
        ({"error_types": (NAME,)}, FAILED, True),
        ({"error_types": (f"{__name__}.ShopError",)}, FAILED, True),
        ({"error_types": ("ValueError",)}, FAILED, True),
        ({"error_types": ("builtins.ValueError",)}, FAILED, True),
        ({"error_types": ("other.Error", NAME)}, FAILED, True),
        ({"error_types": ("CardDeclined",)}, FAILED, False),
        ({"error_types": (NAME.lower(),)}, FAILED, False),
        ({"error_types": (f"{NAME}s",)}, FAILED, False),
        ({"error_types": ("Exception",)}, Failed("later", error_types=("redrive.Retry",)), False),
        ({"exit_codes": (65, 66)}, Failed("", exit_code=66), True),
        ({"exit_codes": (65,)}, Failed("", exit_code=75), False),
        ({"exit_codes": (65,)}, FAILED, False),
        ({"http_status": ("429",)}, Failed("", http_status=429), True),
        ({"http_status": ("5xx",)}, Failed("", http_status=503), True),
        ({"http_status": ("5xx",)}, Failed("", http_status=429), False),
        ({"http_status": ("5xx",)}, FAILED, False),
        ({"http_status": ("500",)}, Failed("", exit_code=500), False),
    ],
)
def test_a_rule_matches_by_class_exit_code_or_status(matcher, failed, dead):
    outcome = after(failed, policy=replace(POLICY, rules=(rule(**matcher),)))
    assert isinstance(outcome, DeadLetter if dead else RetryLater)


def test_the_first_rule_that_matches_wins():
    first = rule(Action.RETRY, error_types=("ValueError",))
    second = rule(Action.DEAD_LETTER, error_types=("Exception",))
    assert isinstance(after(FAILED, policy=replace(POLICY, rules=(first, second))), RetryLater)
    assert isinstance(after(FAILED, policy=replace(POLICY, rules=(second, first))), DeadLetter)


def test_a_rule_that_dead_letters_says_rejected_also_on_the_last_attempt():
    outcome = after(FAILED, 10, policy=replace(POLICY, rules=(rule(error_types=(NAME,)),)))
    assert isinstance(outcome, DeadLetter)
    assert outcome.reason is DeadReason.REJECTED


def test_a_rules_backoff_replaces_the_policys_and_obeys_the_longest_delay():
    fixed = replace(EXPONENTIAL, strategy=Strategy.FIXED, base=seconds(60), max=seconds(9000))
    policy = replace(POLICY, rules=(rule(Action.RETRY, fixed, http_status=("429",)),))
    throttled = after(Failed("slow down", http_status=429), 5, policy=policy)
    capped = after(Failed("slow down", http_status=429), 5, policy=replace(policy, max_delay=seconds(30)))
    asked = after(Failed("slow down", http_status=429, asked_delay=seconds(7)), 5, policy=policy)
    other = after(Failed("oh", http_status=500), 5, policy=policy)
    delays = [outcome.delay for outcome in (throttled, capped, asked, other) if isinstance(outcome, RetryLater)]
    assert delays == [seconds(60), seconds(30), seconds(7), seconds(32)]


@pytest.mark.parametrize(
    ("status", "dead"),
    [(400, True), (404, True), (422, True), (408, False), (425, False), (429, False), (500, False), (301, False)],
)
def test_an_answer_in_the_400s_is_hopeless_unless_it_says_later_or_a_rule_says_otherwise(status, dead):
    failed = Failed("", http_status=status)
    assert isinstance(after(failed), DeadLetter if dead else RetryLater)
    forgiving = replace(POLICY, rules=(rule(Action.RETRY, http_status=("4xx",)),))
    assert isinstance(after(failed, policy=forgiving), RetryLater)


@pytest.mark.parametrize(
    ("failed", "name"),
    [
        (Failed("", error_types=("shop.A", "shop.B")), "shop.A"),
        (Failed("", http_status=503), "HTTP 503"),
        (Failed("", exit_code=75), "exit code 75"),
        (Failed(""), ""),
    ],
)
def test_a_cause_is_called_by_its_class_status_or_exit_code(failed, name):
    assert failed.cause.error_type == name
