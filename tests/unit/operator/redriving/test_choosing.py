"""Which letters a Redrive takes, what they become, and what is in its way."""

from datetime import timedelta

import pytest
from cluster_objects import consumer_body
from redrive_bed import FRAME, MADE, dead_letter, redrive_body

from redrive.delivery import Delivery
from redrive.errors import AccessRefused, Conflict, NotAccepted, NotFound, Unreachable
from redrive.letters.going_back import TOO_LARGE
from redrive.letters.letter import read_letter
from redrive.properties import Properties
from redrive.spec import parse_redrive
from redrive_operator.redriving.choosing import MARK, Choosing, Counting, Fate
from redrive_operator.redriving.hindrance import explain_error, find_hindrance
from redrive_operator.registry import read_entry


def choosing(**spec):
    return Choosing.of(parse_redrive(redrive_body(spec=spec)), uid="mine", made=MADE)


def letter(name="m", **how):
    body, properties = dead_letter(name, **how)
    return read_letter(Delivery(1, "redrive.dead", "shop/orders", False, body, properties), now=MADE)


def unknown(**headers):
    """A letter that somebody put there: nobody knows when it died, or of what."""
    return read_letter(Delivery(1, "", "redrive.dead.orders", False, b"", Properties(headers=headers)), now=MADE)


CASES = {
    "any": (letter(), {}, Fate.CHOSEN),
    "of another error": (letter(), {"select": {"errorType": "shop.Other"}}, Fate.OTHER),
    "ours": (letter(headers={MARK: "mine"}), {}, Fate.OURS),
    "ours, and not of this error": (letter(headers={MARK: "mine"}), {"select": {"errorType": "x"}}, Fate.OURS),
    "ours, to be deleted": (
        letter(headers={MARK: "mine"}),
        {"action": "Delete", "select": {"olderThan": "0s"}},
        Fate.OURS,
    ),
    "put back by another": (letter(headers={MARK: "another"}), {}, Fate.CHOSEN),
    "with a mark that makes no sense": (letter(headers={MARK: 5}), {}, Fate.CHOSEN),
    "tired": (letter(headers={"redrive-redrives": 3}), {}, Fate.TIRED),
    "nearly tired": (letter(headers={"redrive-redrives": 2}), {}, Fate.CHOSEN),
    "tired and named": (letter(headers={"redrive-redrives": 9}), {"select": {"messageIds": ["m"]}}, Fate.CHOSEN),
    "tired, to be deleted": (
        letter(headers={"redrive-redrives": 9}),
        {"action": "Delete", "select": {"olderThan": "0s"}},
        Fate.CHOSEN,
    ),
    "just before it was made": (letter(dead_at=MADE + timedelta(seconds=5)), {}, Fate.CHOSEN),
    "after it was made": (letter(dead_at=MADE + timedelta(seconds=5.1)), {}, Fate.OTHER),
    "of no known time": (unknown(), {}, Fate.CHOSEN),
}


@pytest.mark.parametrize(("found", "spec", "fate"), CASES.values(), ids=CASES)
def test_fate_of_a_letter(found, spec, fate):
    assert choosing(**spec).judge(found) is fate


def test_letter_that_goes_back_bears_the_mark_and_begins_anew():
    found = letter(headers={MARK: "another", "redrive-redrives": 1, "colour": "red"})
    exchange, key, body, properties = choosing().send(found, "orders", frame_max=FRAME)
    assert (exchange, key, body, properties.message_id) == ("", "orders", b"m", "m")
    assert properties.headers[MARK] == "mine"
    assert (properties.headers["redrive-redrives"], properties.headers["colour"]) == (2, "red")
    assert "redrive-dead-reason" not in properties.headers


def test_letter_that_the_mark_makes_too_large_is_left():
    found = unknown(large="x" * 900)
    _, _, _, unmarked = choosing().send(found, "orders", frame_max=FRAME)
    assert choosing().send(found, "orders", frame_max=1000) is TOO_LARGE
    assert unmarked.headers["large"] == "x" * 900


def test_census_counts_each_letter_once():
    counting = Counting(choosing(select={"reason": "Exhausted"}).judge)
    tired, ours, other = {"redrive-redrives": 3}, {MARK: "mine"}, {}
    for found in (letter("a"), letter("b"), letter(headers=tired), letter(headers=ours), unknown(**other)):
        counting.add(found)
    census = counting.census()
    assert (census.scanned, census.matched, census.skipped, census.died_again) == (5, 2, 1, 1)
    assert [(group.count, group.example, group.reason) for group in census.groups] == [(2, "a", "Exhausted")]


def test_letter_without_a_fingerprint_is_in_a_group_too():
    counting = Counting(choosing().judge)
    counting.add(unknown())
    assert [(group.fingerprint, group.count) for group in counting.census().groups] == [("none", 1)]


# What is in the way


def consumer(*conditions, generation=1, **more):
    """A consumer of whose first generation this was found."""
    told = [
        {
            "type": type_,
            "status": status,
            "reason": "Some",
            "message": message,
            "lastTransitionTime": "2026-05-01T12:00:00Z",
            "observedGeneration": 1,
        }
        for type_, status, message in conditions
    ]
    return read_entry({**consumer_body(generation=generation, **more), "status": {"conditions": told}})


READY = ("TopologyReady", "True", "")
HINDRANCES = {
    "no such consumer": (None, "ConsumerNotFound", "no RetryingConsumer orders"),
    "going": (consumer(READY, deletionTimestamp="2026-05-01T12:00:00Z"), "ConsumerDeleting", "being deleted"),
    "unreadable": (consumer(READY, spec={"broker": {}}), "ConsumerNotReady", "cannot be used"),
    "changed since": (consumer(READY, generation=2), "ConsumerNotReady", "has been changed"),
    "not looked at": (consumer(), "ConsumerNotReady", "nobody has looked yet"),
    "another's queue": (consumer(("TopologyReady", "False", "older has it")), "ConsumerNotReady", "older has it"),
    "broker away": (
        consumer(("TopologyReady", "Unknown", ""), ("BrokerReachable", "False", "no answer")),
        "BrokerUnreachable",
        "no answer",
    ),
}


@pytest.mark.parametrize(("entry", "reason", "words"), HINDRANCES.values(), ids=HINDRANCES)
def test_hindrance_is_named_with_what_to_change(entry, reason, words):
    stance = find_hindrance("orders", entry)
    assert (stance.reason, words in stance.message) == (reason, True)


def test_consumer_whose_queues_are_ready_is_in_nobodys_way():
    assert find_hindrance("orders", consumer(READY)) is None


def test_consumer_that_waits_until_it_is_empty_can_be_emptied():
    going = {"deletionTimestamp": "2026-05-01T12:00:00Z", "spec": {"deletionPolicy": "DeleteIfEmpty"}}
    assert find_hindrance("orders", consumer(READY, **going)) is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unreachable("gone"), "BrokerUnreachable"),
        (AccessRefused("no"), "BrokerUnreachable"),
        (NotAccepted("full"), "NotAccepted"),
        (Conflict("a policy"), "ConsumerNotReady"),
        (NotFound("no queue"), "ConsumerNotReady"),
    ],
)
def test_error_in_the_middle_is_told_as_what_it_is(error, reason):
    assert explain_error(error).reason == reason
