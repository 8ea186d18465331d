"""The book of unconfirmed publishes: one verdict for each, nothing lost, and nobody refused for another's sake."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from redrive.confirms import MOST_FRUITLESS, NOT_TAKEN, UNROUTABLE, Confirms, Outgoing
from redrive.properties import Properties
from redrive.runtime.ports import Refusal

BLAME = Refusal("the broker closed the channel: PRECONDITION_FAILED", hopeless=True)


def outgoing(name, **others):
    return Outgoing("retry", "key", name.encode(), Properties(message_id=name), lambda _refusal: None, **others)


def add(confirms, *names):
    added = [outgoing(name) for name in names]
    for one in added:
        confirms.add(one)
    return added


def pump(confirms):
    """Send what may be sent; give the names, in order."""
    sent = []
    while (one := confirms.take()) is not None:
        confirms.sent(one)
        sent.append(one.body.decode())
    return sent


def told(verdicts):
    return [(one.body.decode(), refusal) for one, refusal in verdicts]


@pytest.fixture
def confirms():
    return Confirms(most_unconfirmed=3)


def test_no_more_are_on_their_way_than_the_window_holds(confirms):
    add(confirms, *"abcde")
    assert pump(confirms) == ["a", "b", "c"]
    assert told(confirms.settle(1, multiple=False, taken=True)) == [("a", None)]
    assert pump(confirms) == ["d"]


def test_large_messages_fill_the_window_earlier_and_free_it_again():
    confirms = Confirms(most_bytes=10)
    for _ in range(7):
        confirms.add(Outgoing("", "q", b"12345678", Properties(), lambda _refusal: None))
    assert len(pump(confirms)) == 2
    confirms.settle(2, multiple=True, taken=True)
    assert len(pump(confirms)) == 2
    confirms.connection_lost(None)
    assert len(pump(confirms)) == 2


def test_message_larger_than_the_window_goes_alone():
    confirms = Confirms(most_bytes=3)
    add(confirms, "large", "other")
    assert pump(confirms) == ["large"]


def test_confirm_of_several_speaks_for_all_up_to_its_number(confirms):
    add(confirms, *"abc")
    pump(confirms)
    assert told(confirms.settle(2, multiple=True, taken=True)) == [("a", None), ("b", None)]
    assert told(confirms.settle(2, multiple=True, taken=True)) == []
    assert told(confirms.settle(3, multiple=False, taken=False)) == [("c", NOT_TAKEN)]


def test_number_that_nobody_has_settles_nothing(confirms):
    add(confirms, "a")
    pump(confirms)
    assert confirms.settle(7, multiple=False, taken=True) == []
    assert len(confirms) == 1


def test_returned_message_is_refused_when_its_number_is_confirmed(confirms):
    add(confirms, *"abc")
    pump(confirms)
    confirms.note_returned("retry", "key", "b", b"b")
    assert told(confirms.settle(3, multiple=True, taken=True)) == [("a", None), ("b", UNROUTABLE), ("c", None)]


def test_of_equal_messages_the_first_is_the_returned_one(confirms):
    add(confirms, "a", "a", "a")
    pump(confirms)
    confirms.note_returned("retry", "key", "a", b"a")
    confirms.note_returned("retry", "key", "a", b"a")
    assert [refusal for _, refusal in confirms.settle(3, multiple=True, taken=True)] == [UNROUTABLE, UNROUTABLE, None]


def test_messages_without_an_id_are_told_apart_by_their_bodies(confirms):
    for body in (b"1", b"2"):
        confirms.add(Outgoing("retry", "key", body, Properties(), lambda _refusal: None))
    pump(confirms)
    confirms.note_returned("retry", "key", None, b"2")
    assert [refusal for _, refusal in confirms.settle(2, multiple=True, taken=True)] == [None, UNROUTABLE]


def test_what_was_on_its_way_when_the_connection_broke_is_sent_again_first_and_in_order(confirms):
    add(confirms, *"abcd")
    pump(confirms)
    confirms.settle(1, multiple=False, taken=True)
    assert confirms.connection_lost(None) == []
    assert pump(confirms) == ["b", "c", "d"]


def test_numbers_begin_anew_with_each_channel(confirms):
    add(confirms, *"ab")
    pump(confirms)
    confirms.connection_lost(None)
    pump(confirms)
    assert told(confirms.settle(1, multiple=False, taken=True)) == [("a", None)]


def test_what_was_returned_before_the_connection_broke_has_its_verdict(confirms):
    add(confirms, *"ab")
    pump(confirms)
    confirms.note_returned("retry", "key", "a", b"a")
    assert told(confirms.connection_lost(None)) == [("a", UNROUTABLE)]
    assert pump(confirms) == ["b"]


def test_message_alone_on_its_way_is_blamed_for_the_closed_channel(confirms):
    add(confirms, "guilty")
    pump(confirms)
    assert told(confirms.channel_closed(BLAME)) == [("guilty", BLAME)]


def test_after_a_closed_channel_suspects_go_alone_until_the_guilty_one_is_found(confirms):
    add(confirms, *"abcd")
    assert pump(confirms) == ["a", "b", "c"]
    assert confirms.channel_closed(BLAME) == []
    assert pump(confirms) == ["a"]
    confirms.settle(1, multiple=False, taken=True)
    assert pump(confirms) == ["b"]
    assert told(confirms.channel_closed(BLAME)) == [("b", BLAME)]
    assert pump(confirms) == ["c"]
    confirms.settle(1, multiple=False, taken=True)
    add(confirms, *"ef")
    assert pump(confirms) == ["d", "e", "f"]


def test_connection_that_the_broker_closed_over_a_message_is_looked_into_the_same_way(confirms):
    add(confirms, *"ab")
    pump(confirms)
    assert confirms.connection_lost(BLAME) == []
    assert pump(confirms) == ["a"]
    assert told(confirms.connection_lost(BLAME)) == [("a", BLAME)]
    assert pump(confirms) == ["b"]


def test_suspect_whose_connection_breaks_for_no_reason_is_not_refused_and_holds_up_nobody(confirms):
    add(confirms, *"abc")
    pump(confirms)
    confirms.channel_closed(BLAME)
    assert pump(confirms) == ["a"]
    assert confirms.connection_lost(None) == []
    assert pump(confirms) == ["b"]


def test_message_that_breaks_every_connection_without_a_word_lets_the_others_through(confirms):
    add(confirms, "poison", "b", "c")
    for _ in range(MOST_FRUITLESS):
        assert pump(confirms) == ["poison", "b", "c"]
        confirms.connection_lost(None)
    delivered = []
    for _ in range(4):
        [name] = pump(confirms) or [None]
        if name == "poison":
            confirms.connection_lost(None)
        else:
            delivered += [one for one, _ in told(confirms.settle(1, multiple=False, taken=True))]
            confirms.connection_lost(None)
    assert delivered[:2] == ["b", "c"]
    assert len(confirms) == 1


def test_connections_that_break_between_confirms_make_nobody_a_suspect(confirms):
    for name in "abcdefgh":
        add(confirms, name, name)
        assert len(pump(confirms)) > 1
        confirms.settle(1, multiple=False, taken=True)
        confirms.connection_lost(None)


class Broker(RuleBasedStateMachine):
    """A broker that is sent all sorts, and may break the connection at any time. Names begin with what they are."""

    KINDS = ("good", "nacked", "unroutable", "closes-channel", "closes-connection")

    def __init__(self):
        super().__init__()
        self.confirms = Confirms(most_unconfirmed=4)
        self.added = 0
        self.on_its_way = []
        self.number = 0
        self.verdicts = {}

    @rule(kind=st.sampled_from(KINDS), count=st.integers(1, 4))
    def add(self, kind, count):
        for _ in range(count):
            self.confirms.add(outgoing(f"{kind}/{self.added}"))
            self.added += 1

    @rule()
    def pump(self):
        while (one := self.confirms.take()) is not None:
            self.confirms.sent(one)
            self.on_its_way.append(one)
        suspects = [one for one in self.on_its_way if one.is_suspect]
        assert not suspects or len(self.on_its_way) == 1
        assert len(self.on_its_way) <= 4

    @rule(several=st.integers(1, 4))
    def read(self, several):
        """Read some; those that are simply taken are confirmed together."""
        taken = 0
        while several and self.on_its_way and self.on_its_way[0].body.startswith(b"good"):
            self.on_its_way.pop(0)
            taken, several = taken + 1, several - 1
        if taken:
            self.number += taken
            self.note(self.confirms.settle(self.number, multiple=taken > 1, taken=True))
        elif self.on_its_way:
            self.read_odd(self.on_its_way.pop(0))

    def read_odd(self, one):
        kind = one.body.decode().split("/")[0]
        self.number += 1
        if kind == "nacked":
            self.note(self.confirms.settle(self.number, multiple=False, taken=False))
        elif kind == "unroutable":
            self.confirms.note_returned(one.exchange, one.routing_key, one.properties.message_id, one.body)
            self.note(self.confirms.settle(self.number, multiple=False, taken=True))
        elif kind == "closes-channel":
            self.begin_anew(self.confirms.channel_closed(BLAME))
        else:
            self.begin_anew(self.confirms.connection_lost(BLAME))

    @rule()
    def break_connection(self):
        self.begin_anew(self.confirms.connection_lost(None))

    def begin_anew(self, verdicts):
        self.on_its_way.clear()
        self.number = 0
        self.note(verdicts)

    def note(self, verdicts):
        for name, refusal in told(verdicts):
            assert name not in self.verdicts, "a second verdict"
            self.verdicts[name] = refusal

    @invariant()
    def nobody_is_refused_for_another(self):
        wanted = {"good": None, "nacked": NOT_TAKEN, "unroutable": UNROUTABLE}
        for name, refusal in self.verdicts.items():
            assert refusal == wanted.get(name.split("/")[0], BLAME), name

    def teardown(self):
        """Without further breaks everything has its verdict in the end."""
        for _ in range(20 * self.added + 20):
            self.pump()
            self.read(4)
        assert len(self.verdicts) == self.added
        assert len(self.confirms) == 0


TestAnyBroker = Broker.TestCase
TestAnyBroker.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
