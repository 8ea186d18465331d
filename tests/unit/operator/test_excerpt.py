"""What a desk keeps of a vhost answers whatever is asked about its own consumers, and has nothing else in it."""

from dataclasses import replace

import pytest
from cluster_objects import consumer_entry

from redrive.elements import Binding, Policy, freeze
from redrive.ladder import delivery_binding
from redrive.reading import FoundExchange, FoundQueue, Reading
from redrive.topology import Owner, Wanted, exactly, work_queue
from redrive_operator.claims import find_winner, refuse_foreign_queue
from redrive_operator.excerpt import keep_of
from redrive_operator.observation import BrokerSeen
from redrive_operator.vhost import VhostSeen

OURS = consumer_entry("orders", queue="q")
RIVAL = consumer_entry("bills", namespace="bills", queue="q", created="2026-01-01T00:00:00Z")
OWNED = Owner("a-cluster").exchange
LIMIT = Policy("limit", "^q", freeze({"delivery-limit": 9}), 1)
OTHERS = Policy("others", exactly("other"), freeze({"max-length": 9}), 1)
WORK = FoundQueue("q", "quorum", arguments=work_queue(Wanted.of(OURS.consumer)).arguments, ready=3, unacked=1)
DEAD_LETTERS = FoundQueue("redrive.dead.q", "quorum", ready=2, unacked=0)
BOUND = delivery_binding("bills/bills", "q")
FULL = Reading(
    "4.1.0",
    "rabbit",
    exchanges={name: FoundExchange(name, "fanout", arguments=OWNED.arguments) for name in (OWNED.name, "events")},
    queues={one.name: one for one in (WORK, DEAD_LETTERS, FoundQueue("other", "quorum"))},
    bindings=frozenset({BOUND, Binding("events", "other", "queue", "#")}),
    policies=frozenset({LIMIT, OTHERS}),
    operator_policies=frozenset({replace(LIMIT, name="cap"), OTHERS}),
)


def seen(reading):
    return VhostSeen(BrokerSeen("/", "Secret"), reading)


KEPT = keep_of(seen(FULL), [OURS])


def test_nothing_of_others_is_kept():
    assert KEPT.reading == replace(
        FULL,
        exchanges={OWNED.name: FULL.exchanges[OWNED.name]},
        queues={"q": WORK, "redrive.dead.q": DEAD_LETTERS},
        bindings=frozenset({BOUND}),
        policies=frozenset({LIMIT}),
        operator_policies=frozenset({replace(LIMIT, name="cap")}),
    )


@pytest.mark.parametrize(
    "ask",
    [
        lambda seen: seen.count(OURS.consumer),
        lambda seen: seen.parks(OURS.consumer),
        lambda seen: refuse_foreign_queue(OURS.consumer, seen.reading),
        lambda seen: find_winner(OURS, [RIVAL], brokers={}, reading=seen.reading),
    ],
    ids=["count", "parks", "foreign", "winner"],
)
def test_what_is_kept_answers_as_the_whole_does(ask):
    assert ask(KEPT) == ask(seen(FULL))


def test_vhost_that_nobody_could_read_is_kept_as_it_is():
    assert keep_of(seen(None), [OURS]) == seen(None)
