"""What a work queue that was there before lacks: whether it parks what is rejected, and whether it needs a policy."""

from dataclasses import replace
from datetime import timedelta

import pytest

from redrive.adoption import (
    Accepted,
    Fine,
    NeedsPolicy,
    Refused,
    WithoutQuorum,
    judge_queue,
    needs_policy,
    policy_name,
    queue_parks,
)
from redrive.drift import Unwanted, find_unwanted
from redrive.elements import Policy, freeze
from redrive.ladder import ORPHANS
from redrive.reading import FoundQueue, Reading
from redrive.topology import PRIORITY, Wanted, work_queue

WANTED = Wanted("shop/orders", "orders", timedelta(seconds=60))
OURS = FoundQueue("orders", "quorum", arguments=work_queue(WANTED).arguments)
BARE = FoundQueue("orders", "quorum")
COMPLETING = {key.removeprefix("x-"): value for key, value in OURS.arguments if key != "x-queue-type"}


def reading(*queues, policy_of="any", **policy):
    policies = frozenset({Policy(policy_of, "^orders$", freeze(policy), 1)}) if policy else frozenset()
    return Reading("4.3.6", "rabbit", queues={queue.name: queue for queue in queues}, policies=policies)


def changed(**arguments):
    named = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return replace(OURS, arguments=freeze({**dict(OURS.arguments), **named}))


def test_queue_of_our_own_parks():
    assert queue_parks(WANTED, reading(OURS))


def test_queue_that_a_policy_completes_parks():
    assert queue_parks(WANTED, reading(BARE, **COMPLETING))


@pytest.mark.parametrize(
    "found",
    [
        reading(BARE),
        reading(replace(OURS, name="other")),
        reading(changed(dead_letter_exchange="theirs")),
        reading(changed(dead_letter_routing_key="theirs")),
        reading(changed(dead_letter_strategy="at-most-once")),
        reading(changed(overflow="drop-head")),
        reading(BARE, **{**COMPLETING, "dead-letter-routing-key": "theirs"}),
        reading(changed(dead_letter_exchange="theirs"), **COMPLETING),
    ],
)
def test_queue_whose_dead_letters_do_not_surely_come_to_us_does_not_park(found):
    assert not queue_parks(WANTED, found)


def test_queue_that_a_policy_completes_does_not_surely_park_under_one_whose_pattern_cannot_be_evaluated():
    unknown = Policy("unknown", r"(.)\1", (), 9)
    completed = reading(BARE, **COMPLETING)
    assert not queue_parks(WANTED, replace(completed, policies=completed.policies | {unknown}))


@pytest.mark.parametrize(
    ("found", "needs"),
    [
        (reading(BARE), True),
        (reading(replace(BARE, type="classic")), True),
        (reading(OURS), False),
        (reading(), False),
        (reading(changed(dead_letter_exchange="theirs", overflow="drop-head")), False),
    ],
    ids=["bare", "classic", "ours", "not there", "all fixed otherwise"],
)
def test_policy_is_needed_where_arguments_leave_something_open(found, needs):
    assert needs_policy(WANTED, found) is needs


@pytest.mark.parametrize("found", [reading(OURS), reading()], ids=["made anew", "about to be made"])
def test_policy_that_completed_a_queue_is_unwanted_when_nothing_is_left_to_complete(found):
    ours = Policy(policy_name("orders"), "^orders$", freeze(COMPLETING), 1)
    assert find_unwanted(WANTED, replace(found, policies=frozenset({ours}))) == (Unwanted(ours),)


def test_policy_that_completes_a_queue_is_not_unwanted():
    assert find_unwanted(WANTED, reading(BARE, policy_of=policy_name("orders"), **COMPLETING)) == ()


def test_queue_that_fixes_everything_otherwise_gets_no_policy_that_only_repeats_another():
    theirs = changed(dead_letter_exchange="theirs")
    verdict = judge_queue(WANTED, reading(theirs, policy_of="theirs", **{"queue-leader-locator": "balanced"}))
    assert isinstance(verdict, Accepted)
    assert judge_queue(WANTED, reading(OURS)) == Fine()


LIMITS = {"max-length": 5, "max-length-bytes": 500, "message-ttl": 60000, "expires": 1000}
limit = pytest.mark.parametrize("limit", [{key: value} for key, value in LIMITS.items()], ids=LIMITS)


def under(*policies, queue=BARE, operator=()):
    return replace(reading(queue), policies=frozenset(policies), operator_policies=frozenset(operator))


def policy(name, priority, **definition):
    return Policy(name, "^orders$", freeze(definition), priority)


def own_policy(**limits):
    return policy(policy_name("orders"), PRIORITY, **COMPLETING, **limits)


@limit
def test_limit_that_our_policy_hides_is_neither_copied_into_it_nor_a_reason_to_refuse(limit):
    theirs = policy("theirs", 5, **{"queue-leader-locator": "balanced"}, **limit)
    verdict = judge_queue(WANTED, under(own_policy(), theirs))
    assert verdict == NeedsPolicy(own_policy(**{"queue-leader-locator": "balanced"}))


@limit
def test_limit_in_our_own_policy_is_written_out_of_it(limit):
    reported = replace(BARE, reported=freeze({**COMPLETING, **limit}))
    assert judge_queue(WANTED, under(own_policy(**limit), queue=reported)) == NeedsPolicy(own_policy())


@limit
def test_limit_in_our_own_policy_goes_with_it_where_the_queue_needs_none(limit):
    found = under(own_policy(**limit), queue=OURS)
    assert judge_queue(WANTED, found) == Fine()
    assert find_unwanted(WANTED, found) == (Unwanted(own_policy(**limit)),)


@limit
@pytest.mark.parametrize("ours", [{}, LIMITS], ids=["ours without limits", "ours with limits"])
def test_limit_that_is_in_force_over_our_policy_is_refused(ours, limit):
    mightier = policy("theirs", PRIORITY + 1, **limit)
    for found in (
        under(own_policy(**ours), mightier),
        under(own_policy(**ours), operator=[policy("theirs", 0, **limit)]),
    ):
        verdict = judge_queue(WANTED, found)
        assert isinstance(verdict, Refused)
        assert "policy 'theirs' says" in " ".join(verdict.reasons)
        assert policy_name("orders") not in " ".join(verdict.reasons)


def test_limit_that_the_statistics_report_and_our_policy_does_not_explain_is_refused():
    reported = replace(BARE, reported=freeze({"max-length": 3}))
    assert isinstance(judge_queue(WANTED, under(own_policy(**LIMITS), queue=reported)), Refused)


WHOLE = FoundQueue(ORPHANS, "quorum", members=3, online=3)


@pytest.mark.parametrize(
    ("told", "has"),
    [
        ({}, True),
        ({"members": 3}, True),
        ({"online": 1}, True),
        ({"members": 0, "online": 0}, True),
        ({"members": 3, "online": 3}, True),
        ({"members": 3, "online": 2}, True),
        ({"members": 3, "online": 1}, False),
        ({"members": 3, "online": 0}, False),
        ({"members": 2, "online": 1}, False),
        ({"members": 4, "online": 2}, False),
        ({"members": 5, "online": 3}, True),
        ({"members": 1, "online": 1}, True),
        ({"members": 3, "online": 2, "leaderless": True}, False),
        ({"members": 3, "leaderless": True}, False),
        ({"leaderless": True}, True),
    ],
)
def test_queue_has_no_quorum_when_most_of_its_replicas_are_away_or_nobody_leads_it(told, has):
    assert replace(OURS, **told).has_quorum is has


def test_queue_of_another_type_needs_no_quorum():
    assert FoundQueue("orders", "classic", members=3, online=1, leaderless=True).has_quorum


@pytest.mark.parametrize("queue", [OURS, BARE], ids=["ours", "to be completed"])
def test_queue_without_quorum_is_not_refused_but_must_not_be_bound(queue):
    verdict = judge_queue(WANTED, reading(replace(queue, members=3, online=1), WHOLE))
    assert isinstance(verdict, WithoutQuorum)
    assert verdict.endangers_others
    assert "the queue 'orders' has 1 of its 3 replicas" in verdict.reason
    assert "waits among the orphans" in verdict.reason


def test_queue_that_nobody_leads_is_told_as_such():
    verdict = judge_queue(WANTED, reading(replace(OURS, members=3, online=2, leaderless=True), WHOLE))
    assert "the queue 'orders' is led by none of its 3 replicas" in verdict.reason


@pytest.mark.parametrize(
    "others",
    [(), (replace(WHOLE, online=1),), (replace(WHOLE, leaderless=True),)],
    ids=["no orphans", "most nodes are away", "the orphans have no leader"],
)
def test_queue_without_quorum_endangers_nobody_where_the_orphans_are_not_better_off(others):
    verdict = judge_queue(WANTED, reading(replace(OURS, members=3, online=1), *others))
    assert isinstance(verdict, WithoutQuorum)
    assert not verdict.endangers_others
    assert "orphans" not in verdict.reason


def test_queue_that_has_just_lost_its_quorum_endangers_nobody_yet():
    found = reading(replace(OURS, members=3, online=1), WHOLE)
    assert not judge_queue(WANTED, replace(found, unsettled=frozenset({"orders"}))).endangers_others


def test_queue_that_is_refused_endangers_others_also_without_quorum():
    circular = changed(dead_letter_exchange="redrive.retry")
    assert not judge_queue(WANTED, reading(circular, WHOLE)).endangers_others
    verdict = judge_queue(WANTED, reading(replace(circular, members=3, online=1), WHOLE))
    assert (type(verdict), verdict.endangers_others) == (Refused, True)


def test_orphans_of_which_nobody_tells_are_a_better_place():
    verdict = judge_queue(WANTED, reading(replace(OURS, members=3, online=1), FoundQueue(ORPHANS, "quorum")))
    assert verdict.endangers_others
