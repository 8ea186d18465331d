"""The count of time without a place: it follows the clock, whoever looks, and how often."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive_operator.causes import PlacementCause
from redrive_operator.observation import Unplaced
from redrive_operator.placement_meter import TRUST_SECONDS, PlacementMeter
from redrive_operator.subject import Key

ORDERS, BILLS = Key("shop", "orders"), Key("shop", "bills")
IMAGE, QUOTA = PlacementCause.IMAGE, PlacementCause.QUOTA

numbers = st.dictionaries(st.sampled_from(PlacementCause), st.integers(0, 50), max_size=3)
steps = st.lists(st.tuples(st.floats(0, 120), st.none() | numbers), min_size=1, max_size=20)


class Bed:
    """A meter, and the clock by which it counts."""

    def __init__(self):
        self.now = 5000.0
        self.meter = PlacementMeter(lambda: self.now)

    def see(self, consumer=ORDERS, **counts):
        causes = {cause.name: cause for cause in PlacementCause}
        self.meter.saw(consumer, [Unplaced(causes[name], number, "") for name, number in counts.items()])

    def wait(self, seconds):
        self.now += seconds

    def failed(self, cause=IMAGE, consumer=ORDERS):
        return next((one.failed for one in self.meter.read() if (one.consumer, one.cause) == (consumer, cause)), None)


@pytest.fixture
def bed():
    return Bed()


def test_count_is_shown_as_soon_as_it_begins(bed):
    bed.see(IMAGE=2)
    assert bed.failed() == 0


@pytest.mark.parametrize("interval", [1, 7, 15, 60])
def test_count_is_the_same_however_often_anybody_looks(bed, interval):
    bed.see(IMAGE=3)
    for _ in range(0, 420, interval):
        bed.wait(interval)
        bed.see(IMAGE=3)
    assert bed.failed() == pytest.approx(126)


@pytest.mark.parametrize("interval", [1, 7, 30])
def test_count_is_the_same_however_often_it_is_scraped(bed, interval):
    bed.see(IMAGE=1)
    for _ in range(0, 210, interval):
        bed.wait(interval)
        bed.meter.read()
    assert bed.failed() == pytest.approx(21)


def test_time_counts_for_what_was_seen_at_its_beginning(bed):
    bed.see(IMAGE=1)
    bed.wait(20)
    bed.see(QUOTA=4)
    bed.wait(10)
    bed.see()
    bed.wait(100)
    assert (bed.failed(IMAGE), bed.failed(QUOTA)) == (2, 4)


def test_count_goes_on_where_it_was_when_a_cause_comes_back(bed):
    bed.see(IMAGE=1)
    bed.wait(20)
    bed.see()
    bed.wait(20)
    bed.see(IMAGE=1)
    bed.wait(20)
    assert bed.failed() == 4


def test_what_nobody_looks_at_any_more_is_not_counted_for_ever(bed):
    bed.see(IMAGE=1)
    bed.wait(TRUST_SECONDS + 5000)
    assert bed.failed() == TRUST_SECONDS / 10
    bed.wait(100)
    bed.see(IMAGE=1)
    bed.wait(10)
    assert bed.failed() == TRUST_SECONDS / 10 + 1


def test_consumer_that_was_made_anew_begins_anew(bed):
    bed.see(IMAGE=1)
    bed.see(BILLS, IMAGE=1)
    bed.wait(50)
    bed.meter.forget(ORDERS)
    bed.see(IMAGE=1)
    assert (bed.failed(), bed.failed(consumer=BILLS)) == (0, 5)


def test_consumers_that_never_had_trouble_cost_nothing(bed):
    bed.see()
    bed.meter.forget(BILLS)
    assert bed.meter.read() == []


def test_causes_that_are_named_twice_are_added_up(bed):
    bed.meter.saw(ORDERS, [Unplaced(IMAGE, 1, "one"), Unplaced(IMAGE, 2, "another")])
    assert [(one.cause, one.unplaced) for one in bed.meter.read()] == [(IMAGE, 3)]


@given(steps)
def test_count_never_goes_down_and_adds_up_to_the_time_that_was_spent(taken):
    bed, current, spent, before = Bed(), {}, {}, {}
    for seconds, seen in taken:
        bed.wait(seconds)
        for cause, number in current.items():
            spent[cause] = spent.get(cause, 0.0) + number * seconds / 10
        if seen is not None:
            bed.see(**{cause.name: number for cause, number in seen.items()})
            current = seen
            spent.update({cause: spent.get(cause, 0.0) for cause in seen})
        after = {one.cause: one.failed for one in bed.meter.read()}
        assert after.keys() == spent.keys()
        assert all(after[cause] >= value for cause, value in before.items())
        before = after
        if seen is None:
            bed.see(**{cause.name: number for cause, number in current.items()})  # it is still so
    assert before == pytest.approx(spent)
