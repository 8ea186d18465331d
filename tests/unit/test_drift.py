"""Drift, from readings made up: each kind of difference is one value with one sentence."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.adoption import Accepted, Fine, NeedsPolicy, Refused, judge_queue
from redrive.drift import Different, Missing, Unwanted, compare, find_unwanted, sort_bindings, stale
from redrive.effective import consumer_timeout, delivery_limit, effective_policies, warn_of_patterns, winning_policy
from redrive.elements import Binding, Exchange, Policy, Queue, freeze
from redrive.ladder import DELIVERY, Rung, delivery_binding
from redrive.reading import FoundExchange, FoundQueue, Reading
from redrive.topology import DEAD, Owner, Wanted, exactly, mark, plan, work_queue

ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=1))
PLAN = plan(ORDERS, Owner("a-cluster"))
QUORUM = freeze({"x-queue-type": "quorum"})


def policy(name="theirs", pattern="^orders$", priority=5, apply_to="queues", **definition):
    return Policy(name, pattern, freeze({k.replace("_", "-"): v for k, v in definition.items()}), priority, apply_to)


def found_as_planned():
    """A reading in which everything is as planned."""
    exchanges = (e for e in PLAN if isinstance(e, Exchange))
    queues = (e for e in PLAN if isinstance(e, Queue))
    return Reading(
        version="4.3.6",
        cluster_name="rabbit@here",
        exchanges={e.name: FoundExchange(e.name, e.type, arguments=e.arguments) for e in exchanges},
        queues={q.name: FoundQueue(q.name, "quorum", arguments=q.arguments) for q in queues},
        bindings=frozenset(e for e in PLAN if isinstance(e, Binding)),
        policies=frozenset(e for e in PLAN if isinstance(e, Policy)),
    )


READING = found_as_planned()


def with_queue(queue, reading=READING):
    return replace(reading, queues={**reading.queues, queue.name: queue})


def with_policies(*policies, reading=READING):
    return replace(reading, policies=reading.policies | set(policies))


def test_what_is_as_planned_has_no_drift():
    assert compare(PLAN, READING) == ()


def test_nothing_at_all_lacks_everything_in_order():
    assert compare(PLAN, Reading("4.3.6", "")) == tuple(map(Missing, PLAN))


SENTENCES = [
    (Missing(Queue("orders")), "queue 'orders' is missing"),
    (Missing(Exchange(DEAD)), "exchange 'redrive.dead' is missing"),
    (Missing(policy()), "policy 'theirs' is missing"),
    (
        Unwanted(Binding("events", "orders", "queue", "a.*")),
        "binding of queue 'orders' to exchange 'events' with key 'a.*' is no longer wanted",
    ),
    (
        Different(Rung(0, 1).queue, "argument x-message-ttl", 125, 9),
        "queue 'redrive.delay.0.1' has argument x-message-ttl 9 instead of 125",
    ),
]


@pytest.mark.parametrize(("drift", "sentence"), SENTENCES)
def test_drift_reads_as_a_sentence(drift, sentence):
    assert str(drift) == sentence


@pytest.mark.parametrize(
    ("change", "field", "wanted", "found"),
    [
        ({"type": "direct"}, "type", "topic", "direct"),
        ({"durable": False}, "durable", True, False),
        ({"internal": True}, "internal", False, True),
        ({"auto_delete": True}, "auto-delete", False, True),
        ({"arguments": freeze({"alternate-exchange": "x"})}, "alternate-exchange", None, "x"),
    ],
)
def test_different_exchange_is_named_by_its_field(change, field, wanted, found):
    exchanges = {**READING.exchanges, DEAD: replace(READING.exchanges[DEAD], **change)}
    assert compare(PLAN, replace(READING, exchanges=exchanges)) == (Different(Exchange(DEAD), field, wanted, found),)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"durable": False}, "durable"), ({"auto_delete": True}, "auto-delete"), ({"exclusive": True}, "exclusive")],
)
def test_different_rung_is_named_by_its_field(change, field):
    rung = READING.queues["redrive.delay.0.1"]
    [drift] = compare(PLAN, with_queue(replace(rung, **change)))
    assert (drift.element.name, drift.field) == ("redrive.delay.0.1", field)


def test_work_queue_that_differs_is_not_drift_but_for_adoption_to_judge():
    assert compare(PLAN, with_queue(FoundQueue("orders", "classic"))) == ()


def test_outranking_policy_is_blamed_for_each_harmful_key():
    reading = with_policies(policy(pattern=".*", priority=2_000_000, message_ttl=5, max_length=7, alternate="x"))
    fields = {drift.field for drift in compare([Rung(0, 1).queue], reading)}
    assert fields == {"message-ttl by policy 'theirs'", "max-length by policy 'theirs'"}


def test_outranked_policy_is_nobodys_business():
    assert compare(PLAN, with_policies(policy(pattern=".*", message_ttl=5))) == ()


def test_marked_binding_that_is_not_wanted_is_unwanted():
    old = mark(Binding("events", "orders", "queue", "old"), "shop/orders")
    other = mark(Binding("events", "other", "queue", "old"), "shop/other")
    by_hand = Binding("events", "orders", "queue", "by hand")
    reading = replace(READING, bindings=READING.bindings | {old, other, by_hand})
    assert find_unwanted(ORDERS, reading) == (Unwanted(old),)


def test_bindings_are_sorted_by_whom_they_were_made_for():
    marked = mark(Binding("events", "orders", "queue", "old"), "shop/orders")
    by_hand = Binding("events", "orders", "queue", "by hand")
    astray = Binding(DELIVERY, "orders", "queue", "#")
    bindings = {marked, by_hand, astray, delivery_binding("shop/other", "other"), Binding(DEAD, "d", "queue", "a/b")}
    assert sort_bindings(Reading("", "", bindings=frozenset(bindings))) == {
        "shop/orders": {marked},
        "shop/other": {delivery_binding("shop/other", "other")},
        "a/b": {Binding(DEAD, "d", "queue", "a/b")},
    }


def test_wanted_binding_is_not_stale():
    wanted = replace(ORDERS, bindings=(Binding("events", "orders", "queue", "a"),))
    made = [mark(wanted.bindings[0], "shop/orders"), delivery_binding("shop/orders", "orders")]
    assert stale(made, wanted) == ()
    assert stale(made, ORDERS) == (mark(wanted.bindings[0], "shop/orders"),)


def test_recorded_binding_that_is_gone_already_is_not_unwanted():
    assert find_unwanted(ORDERS, READING, [Binding("events", "orders", "queue", "gone")]) == ()


def test_policy_of_highest_priority_wins_alone():
    low, high = policy("low", max_length=1), policy("high", priority=6, message_ttl=2)
    queue = FoundQueue("orders", "quorum")
    assert winning_policy(queue, [low, high]) == high
    assert effective_policies(queue, Reading("", "", policies=frozenset({low, high}))) == ({"message-ttl": 2},)


def test_operator_policy_is_laid_over_and_the_smaller_number_counts():
    reading = Reading(
        "",
        "",
        policies=frozenset({policy(max_length=5, delivery_limit=9)}),
        operator_policies=frozenset({policy("op", max_length=7, expires=3)}),
    )
    assert effective_policies(FoundQueue("orders", "quorum"), reading) == (
        {"max-length": 5, "delivery-limit": 9, "expires": 3},
    )


@pytest.mark.parametrize(
    ("unfit", "kind"),
    [
        (policy(ha_mode="all", max_length=1), "quorum"),
        (policy(delivery_limit=1, max_length=1), "classic"),
        (policy(apply_to="exchanges", max_length=1), "quorum"),
        (policy(apply_to="classic_queues", max_length=1), "quorum"),
        (policy(pattern="^order$", max_length=1), "quorum"),
    ],
)
def test_policy_that_does_not_fit_does_not_apply(unfit, kind):
    assert winning_policy(FoundQueue("orders", kind), [unfit]) is None


NAMES = st.text(st.sampled_from("ab.*+-/ \\^$[(日'"), min_size=1, max_size=4)


@given(st.lists(NAMES, max_size=4), NAMES)
def test_policy_for_one_queue_alone_is_found_by_its_name_whatever_characters_it_has(names, name):
    policies = [policy(one, exactly(one), priority=index) for index, one in enumerate(dict.fromkeys(names))]
    found = winning_policy(FoundQueue(name, "quorum"), policies)
    assert (found and found.name) == (name if name in names else None)


PATTERNS = [
    "^a$",
    "^a.$",
    r"^a\.$",
    r"^a\d$",
    "^a",
    "a$",
    "a",
    "^(a|b)$",
    "^a*$",
    r"^\w$",
    "^a b$",
    r"^a\$",
    "^$",
    "^[ab]$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", ["a", "b", "ab", "a.", "a1", "a b", "aa", "a$"])
def test_pattern_matches_what_its_regular_expression_does(pattern, name):
    found = winning_policy(FoundQueue(name, "quorum"), [policy(pattern=pattern)])
    assert (found is not None) == (re.search(pattern, name) is not None)


UNKNOWN = r"^(.)\1"  # a back-reference


def test_policy_whose_pattern_cannot_be_evaluated_is_taken_to_match():
    unknown = policy(pattern=UNKNOWN)
    assert winning_policy(FoundQueue("orders", "quorum"), [unknown, policy("low", priority=1)]) == unknown


@pytest.mark.parametrize("kind", ["policies", "operator_policies"])
def test_limit_below_a_policy_whose_pattern_cannot_be_evaluated_is_found(kind):
    unknown, below = policy("high", UNKNOWN, 9, message_ttl=3), policy("low", max_length=5)
    verdict = judge_queue(ORDERS, replace(READING, **{kind: frozenset({unknown, below})}))
    assert isinstance(verdict, Refused)
    assert [sentence.split(" says")[0].partition("policy ")[2] for sentence in verdict.reasons] == [
        "'low'",
        "'high', whose pattern cannot be evaluated,",
    ]


def test_least_of_what_may_apply_counts_where_a_pattern_cannot_be_evaluated():
    unknown, below = policy("high", UNKNOWN, 9, delivery_limit=7), policy("low", delivery_limit=5)
    assert delivery_limit(FoundQueue("orders", "quorum"), with_policies(unknown, below)) == 5


def test_queue_gets_our_policy_also_where_one_that_cannot_be_evaluated_may_outrank_it():
    reading = with_queue(FoundQueue("orders", "quorum", arguments=QUORUM))
    unknown = policy(pattern=UNKNOWN, priority=2_000_000, delivery_limit=5)
    assert isinstance(judge_queue(ORDERS, with_policies(unknown, reading=reading)), NeedsPolicy)


def test_rung_under_a_limit_whose_pattern_cannot_be_evaluated_is_different():
    unknown = policy(pattern=UNKNOWN, priority=2_000_000, max_length=5)
    fields = {drift.field for drift in compare(PLAN, with_policies(unknown))}
    assert fields == {"max-length by policy 'theirs', whose pattern cannot be evaluated,"}


def test_owner_is_told_of_a_pattern_that_cannot_be_evaluated():
    queue = FoundQueue("orders", "quorum")
    [warning] = warn_of_patterns(queue, with_policies(policy(pattern=UNKNOWN)))
    assert repr(UNKNOWN) in warning
    assert "'theirs'" in warning


def test_owner_is_not_told_of_a_pattern_that_matters_to_nobody():
    outranked = with_policies(policy("unknown", UNKNOWN, 1), policy("high", priority=9))
    assert warn_of_patterns(FoundQueue("orders", "quorum"), outranked) == ()
    assert warn_of_patterns(FoundQueue("orders", "quorum"), READING) == ()


def test_delivery_limit_is_the_lower_of_policy_and_argument():
    queue = FoundQueue("orders", "quorum", arguments=freeze({"x-delivery-limit": 9}))
    assert delivery_limit(queue, READING) == 9
    assert delivery_limit(queue, with_policies(policy(delivery_limit=5))) == 5
    assert delivery_limit(FoundQueue("orders", "quorum"), READING) is None


def test_consumer_timeout_is_the_shorter_of_policy_and_argument():
    queue = FoundQueue("orders", "quorum", arguments=freeze({"x-consumer-timeout": 9000}))
    assert consumer_timeout(queue, READING) == timedelta(seconds=9)
    assert consumer_timeout(queue, with_policies(policy(consumer_timeout=5000))) == timedelta(seconds=5)
    assert consumer_timeout(FoundQueue("orders", "quorum"), READING) is None


def test_queue_as_planned_is_fine():
    assert judge_queue(ORDERS, READING) == Fine()


def test_queue_that_is_not_there_is_judged_by_the_policies_that_wait_for_it():
    assert judge_queue(ORDERS, Reading("", "")) == Fine()
    assert isinstance(judge_queue(ORDERS, Reading("", "", policies=frozenset({policy(max_length=1)}))), Refused)


def test_plain_quorum_queue_needs_a_policy_with_all_that_it_lacks():
    verdict = judge_queue(ORDERS, with_queue(FoundQueue("orders", "quorum", arguments=QUORUM)))
    assert isinstance(verdict, NeedsPolicy)
    wanted = {name.removeprefix("x-"): value for name, value in work_queue(ORDERS).arguments if name != "x-queue-type"}
    assert dict(verdict.policy.definition) == wanted
    assert verdict.policy.pattern == "^orders$"


def test_policy_carries_over_what_the_one_below_says():
    queue = FoundQueue("orders", "quorum", arguments=QUORUM)
    verdict = judge_queue(ORDERS, with_policies(policy(consumer_timeout=5000), reading=with_queue(queue)))
    assert dict(verdict.policy.definition)["consumer-timeout"] == 5000


def test_completed_queue_is_fine_and_needs_no_second_policy():
    reading = with_queue(FoundQueue("orders", "quorum", arguments=QUORUM))
    done = with_policies(judge_queue(ORDERS, reading).policy, reading=reading)
    assert judge_queue(ORDERS, done) == Fine()


def test_queue_under_a_policy_that_outranks_ours_is_accepted_and_that_is_said():
    reading = with_queue(FoundQueue("orders", "quorum", arguments=QUORUM))
    verdict = judge_queue(ORDERS, with_policies(policy(priority=2_000_000, delivery_limit=5), reading=reading))
    assert isinstance(verdict, Accepted)
    assert "'theirs' outranks" in verdict.missing[0]


def test_limit_that_only_the_statistics_report_is_a_limit():
    queue = replace(READING.queues["orders"], reported=freeze({"max-length": 3}))
    verdict = judge_queue(ORDERS, with_queue(queue))
    assert isinstance(verdict, Refused)
    assert verdict.endangers_others


def test_queue_that_drains_by_itself_is_refused_but_endangers_nobody():
    verdict = judge_queue(ORDERS, with_policies(policy(message_ttl=3)))
    assert verdict == Refused(
        ("the policy 'theirs' says of the queue 'orders' that its messages expire after 3 ms: remove it",)
    )
