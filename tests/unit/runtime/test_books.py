"""Acknowledging many at a time speaks for those that are done, and for nobody else."""

from hypothesis import given
from hypothesis import strategies as st

from redrive.runtime.acks import Book


class Broker:
    """Understands acknowledgements as RabbitMQ does."""

    hold = None

    def __init__(self, count):
        self.unacked = set(range(1, count + 1))
        self.calls = 0

    def ack(self, tag, *, multiple):
        assert tag in self.unacked, "RabbitMQ closes the channel over a tag that it does not know"
        self.unacked -= {known for known in self.unacked if known <= tag} if multiple else {tag}
        self.calls += 1


@given(st.integers(1, 60).flatmap(lambda count: st.permutations(range(1, count + 1))), st.sets(st.integers(0, 59)))
def test_exactly_what_is_done_is_acknowledged(order, flushes):
    broker = Broker(len(order))
    book = Book(broker)
    book.held = dict.fromkeys(sorted(order))
    for index, tag in enumerate(order):
        del book.held[tag]
        book.done(tag, None)
        if index in flushes:
            book.acknowledge()
            assert broker.unacked == set(book.held)
    book.acknowledge()
    assert (broker.unacked, book.settled) == (set(), True)


@given(st.integers(1, 60).flatmap(lambda count: st.permutations(range(1, count + 1))), st.sets(st.integers(0, 59)))
def test_one_acknowledgement_speaks_only_for_what_is_done_before_the_oldest_in_our_hands(order, looks):
    broker = Broker(len(order))
    book = Book(broker)
    book.held = dict.fromkeys(sorted(order))
    for index, tag in enumerate(order):
        del book.held[tag]
        book.done(tag, None)
        if index in looks:
            book.acknowledge_together()
            oldest = next(iter(book.held), len(order) + 1)
            assert broker.unacked == set(range(oldest, len(order) + 1))
            assert book.pending == len(broker.unacked - set(book.held))
    assert broker.calls <= len(looks)


def test_what_ended_in_order_is_acknowledged_in_one_word():
    broker = Broker(50)
    book = Book(broker)
    for tag in range(1, 41):
        book.done(tag, None)
    book.held = dict.fromkeys(range(41, 51))
    book.acknowledge()
    assert broker.calls == 1


def test_what_the_session_holds_back_is_unheard_of_until_that_is_over():
    broker = Broker(3)
    book = Book(broker)
    book.held = {3: "held"}
    broker.hold = []
    for tag in (1, 2):
        book.done(tag, f"done {tag}")
        book.acknowledge()
    assert book.unheard == ["held", "done 1", "done 2"]
    broker.hold = None
    assert book.unheard == ["held"]
    broker.hold = []  # another time
    assert book.unheard == ["held"]
