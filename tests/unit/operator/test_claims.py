"""Of all objects that ask for one queue exactly one has it: the oldest. Where brokers differ, all have theirs."""

from dataclasses import replace

from cluster_objects import consumer_entry
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.elements import Binding
from redrive.ladder import delivery_binding
from redrive.reading import FoundQueue, Reading
from redrive.topology import Wanted, work_queue
from redrive_operator.claims import find_losers, find_winner, refuse_foreign_queue
from redrive_operator.registry import Registry

NOON, LATER = "2026-05-01T12:00:00Z", "2026-05-01T12:00:01Z"

OLD = consumer_entry("old", queue="q", created=NOON)
YOUNG = consumer_entry("young", queue="q", created=LATER)
ELSEWHERE = consumer_entry("old", namespace="bills", queue="q", created=NOON)


def reading(*bindings):
    return Reading("4.0.1", "rabbit@mq", bindings=frozenset(bindings))


def bound(entry, queue="q"):
    return delivery_binding(entry.consumer.address, queue)


def winner(entry, *rivals, brokers=None, seen=None):
    return find_winner(entry, rivals, brokers=brokers or {}, reading=seen)


def test_older_of_one_desk_wins():
    assert winner(YOUNG, OLD, YOUNG) is OLD
    assert winner(OLD, OLD, YOUNG) is None


def test_who_is_alone_wins():
    assert winner(YOUNG, YOUNG) is None


def test_first_by_name_wins_of_two_that_were_made_in_the_same_second():
    one, other = consumer_entry("a", queue="q"), consumer_entry("b", queue="q")
    assert winner(other, one, other) is one
    assert winner(one, one, other) is None


def test_same_names_on_unknown_brokers_are_two_queues():
    assert winner(YOUNG, ELSEWHERE) is None


def test_two_ways_to_one_broker_lead_to_one_queue():
    brokers = {YOUNG.desk: "rabbit@mq@mq.svc", ELSEWHERE.desk: "rabbit@mq@mq.svc"}
    assert winner(YOUNG, ELSEWHERE, brokers=brokers) is ELSEWHERE


def test_two_brokers_have_two_queues():
    brokers = {YOUNG.desk: "rabbit@mq@one.svc", ELSEWHERE.desk: "rabbit@mq@two.svc"}
    assert winner(YOUNG, ELSEWHERE, brokers=brokers, seen=reading(bound(YOUNG))) is None


def test_broker_whose_queue_brings_the_retries_of_both_home_is_one_whatever_it_is_called():
    brokers = {YOUNG.desk: "rabbit@mq@10.0.0.1", ELSEWHERE.desk: "rabbit@mq@mq.svc"}
    assert winner(YOUNG, ELSEWHERE, brokers=brokers, seen=reading(bound(ELSEWHERE))) is ELSEWHERE


def test_binding_that_a_consumer_left_behind_on_the_broker_that_it_moved_from_claims_nothing():
    brokers = {YOUNG.desk: "rabbit@mq@mq.svc", ELSEWHERE.desk: "rabbit@new@new.svc"}
    assert winner(YOUNG, ELSEWHERE, brokers=brokers, seen=reading(bound(ELSEWHERE))) is None


def test_consumer_whose_present_broker_is_unknown_claims_by_its_binding():
    for brokers in ({}, {YOUNG.desk: "rabbit@mq@mq.svc"}, {YOUNG.desk: "rabbit@mq@mq.svc", ELSEWHERE.desk: "@new.svc"}):
        assert winner(YOUNG, ELSEWHERE, brokers=brokers, seen=reading(bound(ELSEWHERE))) is ELSEWHERE


def test_who_has_the_queue_by_another_way_may_have_moved_and_that_is_said():
    registry = Registry()
    for entry in (ELSEWHERE, YOUNG):
        registry.put(entry)
    found = find_losers([YOUNG], registry, brokers={}, reading=reading(bound(ELSEWHERE)), admitted=lambda _entry: True)
    advice = "remove its bindings to the exchanges 'redrive.delivery' and 'redrive.dead' here"
    assert advice in found[YOUNG.key].message


def dead_letters_of(entry, queue="q"):
    return Binding("redrive.dead", f"redrive.dead.{queue}", "queue", entry.consumer.address)


def test_queue_that_is_out_of_the_ladder_stays_whose_it_is():
    seen = reading(dead_letters_of(ELSEWHERE))
    assert winner(YOUNG, ELSEWHERE, seen=seen) is ELSEWHERE
    assert winner(ELSEWHERE, YOUNG, seen=seen) is None


def test_binding_for_dead_letters_of_another_queue_or_of_a_younger_object_says_nothing():
    assert winner(YOUNG, ELSEWHERE, seen=reading(dead_letters_of(ELSEWHERE, "other"))) is None
    assert winner(ELSEWHERE, YOUNG, seen=reading(dead_letters_of(YOUNG))) is None
    by_hand = replace(dead_letters_of(ELSEWHERE), destination="q")
    assert winner(YOUNG, ELSEWHERE, seen=reading(by_hand)) is None


def test_binding_of_another_queue_says_nothing():
    assert winner(YOUNG, ELSEWHERE, seen=reading(bound(ELSEWHERE, "other"))) is None


def test_binding_from_another_exchange_says_nothing():
    by_hand = replace(bound(ELSEWHERE), source="shop.events")
    assert winner(YOUNG, ELSEWHERE, seen=reading(by_hand)) is None


def test_binding_of_an_object_that_is_gone_says_nothing():
    assert winner(YOUNG, YOUNG, seen=reading(bound(ELSEWHERE), bound(OLD))) is None


def test_younger_object_never_wins_by_its_binding():
    assert winner(OLD, YOUNG, seen=reading(bound(YOUNG))) is None


def test_binding_that_is_no_address_does_no_harm():
    strange = Binding("redrive.delivery", "q", "queue", "#")
    assert winner(YOUNG, ELSEWHERE, seen=reading(strange)) is None


brokers_of = st.integers(0, 2).map("broker-{}".format)
consumers = st.lists(
    st.tuples(st.sampled_from(["shop", "bills"]), st.sampled_from("abcd"), st.integers(0, 2), brokers_of),
    min_size=1,
    max_size=8,
    unique_by=lambda one: one[:2],
)


@settings(max_examples=40)
@given(consumers, st.randoms(use_true_random=False))
def test_every_real_queue_has_exactly_one_winner(asked, chance):
    """Each consumer has a way of its own to its broker; which broker that is, is known."""
    entries = [
        consumer_entry(
            name, namespace=namespace, secret=f"{name}-mq", queue="q", created=f"2026-05-01T12:00:0{second}Z"
        )
        for namespace, name, second, _ in asked
    ]
    brokers = {entry.desk: broker for entry, (*_, broker) in zip(entries, asked, strict=True)}
    rivals = entries[:]
    chance.shuffle(rivals)
    for broker in set(brokers.values()):
        here = [entry for entry in entries if brokers[entry.desk] == broker]
        found = {entry.key: find_winner(entry, rivals, brokers=brokers, reading=None) for entry in here}
        winners = [entry for entry in here if found[entry.key] is None]
        assert winners == [min(here, key=lambda entry: (entry.subject.created, entry.key))]
        assert all(found[entry.key] is winners[0] for entry in here if entry is not winners[0])


def test_name_that_a_secret_gives_its_broker_is_not_believed_where_the_broker_can_be_asked():
    brokers = {YOUNG.desk: "rabbit@mq@mq.svc", ELSEWHERE.desk: "rabbit@mq@mq.svc"}
    assert winner(YOUNG, ELSEWHERE, brokers=brokers, seen=reading(bound(YOUNG))) is None


def lose(*entries, admitted=lambda _: True):
    registry = Registry()
    for entry in entries:
        registry.put(entry)
    return set(find_losers(entries, registry, brokers={}, reading=None, admitted=admitted))


def test_younger_one_is_told_whose_its_queue_is():
    assert lose(OLD, YOUNG) == {YOUNG.key}


def test_who_may_not_use_the_broker_claims_nothing():
    assert lose(OLD, YOUNG, admitted=lambda rival: rival is not OLD) == set()


def test_who_is_going_without_us_claims_nothing():
    released = replace(OLD, subject=replace(OLD.subject, deleting=True, finalizers=()))
    assert lose(released, YOUNG) == set()


def test_queue_of_another_cannot_be_reached_through_a_broker_that_is_lent_out():
    consumer = OLD.consumer
    ours = FoundQueue("q", "quorum", arguments=work_queue(Wanted.of(consumer)).arguments)
    assert refuse_foreign_queue(consumer, Reading("4.0.1", "rabbit", queues={})) is None
    assert refuse_foreign_queue(consumer, Reading("4.0.1", "rabbit", queues={"q": ours})) is None
    assert refuse_foreign_queue(YOUNG.consumer, Reading("4.0.1", "rabbit", queues={"q": ours})) is not None
    assert (
        refuse_foreign_queue(consumer, Reading("4.0.1", "rabbit", queues={"q": FoundQueue("q", "quorum")})) is not None
    )
