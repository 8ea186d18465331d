"""How many workers there should be: more at once, fewer when fewer have sufficed, and never by one reading alone."""

import pickle
from datetime import timedelta

import pytest
from scaling_bed import Town, limits

from redrive_operator.scaling import Sample

# So many messages for each worker


@pytest.mark.parametrize(
    ("ready", "unacked", "replicas"),
    [
        (0, 0, 0),
        (1, 0, 1),
        (0, 1, 1),
        (100, 0, 1),
        (99, 1, 1),
        (100, 1, 2),
        (0, 101, 2),
        (480, 0, 5),
        (500, 0, 5),
        (501, 0, 6),
        (10**9, 0, 10),
    ],
)
def test_workers_are_as_many_as_ready_and_in_flight_messages_need_at_once(ready, unacked, replicas):
    assert Town(limits(each=100)).read(ready, unacked) == replicas


def test_more_are_asked_for_by_the_next_reading():
    town = Town(limits(each=10))
    assert [town.read(ready, after=1) for ready in (5, 15, 95)] == [1, 2, 10]


# Down


def test_fewer_are_asked_for_when_fewer_have_sufficed_for_the_delay():
    town = Town(limits(each=10))
    town.read(50)
    assert {town.read(20) for _ in range(20)} == {5}
    assert town.read(20, after=6) == 2


def test_window_keeps_the_most_that_it_saw_and_not_the_least():
    town = Town(limits(each=10, delay=60))
    answers = [town.read(ready) for ready in (50, 10, 30, 10, 10, 10, 10, 10, 10)]
    assert answers == [5, 5, 5, 5, 5, 3, 3, 1, 1]


@pytest.mark.parametrize("delay", [0, 3, 6])
def test_two_readings_that_lie_apart_must_agree_whatever_the_delay(delay):
    town = Town(limits(each=10, delay=delay))
    assert [town.read(ready) for ready in (50, 10, 10)] == [5, 5, 1]


def test_readings_that_follow_closely_do_not_count_as_two():
    town = Town(limits(each=10, delay=0))
    town.read(50)
    assert {town.read(10, after=1) for _ in range(6)} == {5}
    assert [town.read(10, after=1) for _ in range(6)][-1] == 1


def test_time_of_which_nothing_is_known_does_not_count_as_one_without_work():
    town = Town(limits(each=10))
    town.read(50)
    assert town.read(0, after=3600) == 5
    assert {town.read(0) for _ in range(20)} == {5}
    assert town.read(0) == 0


def test_new_operator_takes_nobody_away_before_the_delay_has_passed():
    town = Town(limits(each=10), replicas=7)
    assert {town.read() for _ in range(21)} == {7}
    assert town.read() == 0


def test_new_operator_asks_for_more_at_once():
    assert Town(limits(each=10), replicas=2).read(75) == 8


def test_delay_that_was_made_longer_counts_from_then():
    town = Town(limits(each=10, delay=60))
    town.read(50)
    assert {town.read(10) for _ in range(4)} == {5}
    town.edit(scale_down_delay=timedelta(seconds=120))
    assert {town.read(10) for _ in range(8)} == {5}
    assert [town.read(10), town.read(10)][-1] == 1


def test_delay_that_was_made_shorter_counts_at_once():
    town = Town(limits(each=10, delay=3600))
    town.read(50)
    assert {town.read(10) for _ in range(10)} == {5}
    town.edit(scale_down_delay=timedelta(seconds=60))
    assert town.read(10) == 1


# To none


def test_last_worker_goes_when_nothing_was_ready_or_in_flight_for_the_delay():
    town = Town(limits(each=10, delay=60))
    town.read(1)
    assert {town.read() for _ in range(4)} == {1}
    assert [town.read(), town.read()][-1] == 0


@pytest.mark.parametrize("message", [{"ready": 1}, {"unacked": 1}, {"acked": 1}])
def test_any_message_within_the_delay_keeps_the_last_worker(message):
    town = Town(limits(each=10, delay=60), replicas=1)
    for _ in range(4):
        assert {town.read() for _ in range(3)} == {1}
        assert town.read(**message) == 1


@pytest.mark.parametrize("target", [{"each": 1000}, {"drain": 3600}])
def test_message_in_flight_keeps_its_worker_for_hours(target):
    town = Town(limits(**target, delay=0), replicas=1)
    assert {town.read(0, 1) for _ in range(1000)} == {1}


# Bounds


@pytest.mark.parametrize(("ready", "replicas"), [(0, 2), (15, 2), (35, 4), (55, 5)])
def test_bounds_hold(ready, replicas):
    assert Town(limits(each=10, least=2, most=5)).read(ready) == replicas


def test_bounds_that_were_edited_hold_without_another_reading():
    town = Town(limits(each=10))
    town.read(60)
    town.edit(max_replicas=3)
    assert town.ask() == 3
    town.edit(min_replicas=8, max_replicas=9)
    assert town.ask() == 8
    town.edit(min_replicas=0)
    assert town.ask() == 6


def test_lower_bound_that_was_lowered_lets_go_who_was_never_needed():
    town = Town(limits(each=10, least=5))
    for _ in range(25):
        town.read(15)
    town.edit(min_replicas=0)
    assert town.read(15) == 2


# Workers without a place


def test_nobody_is_asked_for_while_somebody_has_no_place_and_then_all_are():
    town = Town(limits(each=10), replicas=3)
    assert town.read(90, unplaced=1) == 3
    assert town.why == "held at 3: 1 worker has no place"
    assert town.ask() == 9


def test_fewer_are_asked_for_also_while_somebody_has_no_place():
    town = Town(limits(each=10, delay=0), replicas=9)
    assert [town.read(30, unplaced=6) for _ in range(3)][-1] == 3


def test_first_worker_is_asked_for_though_one_that_is_gone_had_no_place():
    assert Town(limits(each=10)).read(90, unplaced=1) == 1


def test_lower_bound_holds_though_somebody_has_no_place():
    assert Town(limits(each=10, least=5), replicas=3).read(90, unplaced=2) == 5


def test_what_was_not_granted_is_not_made_up_for_when_it_is_no_longer_needed():
    town = Town(limits(each=10), replicas=3)
    town.read(90, unplaced=2)
    assert town.read(35) == 4


# What the broker does not say


def test_workers_come_but_do_not_go_where_nobody_counts_what_is_in_flight():
    town = Town(limits(each=10, delay=0))
    assert town.read(35, None, acked=None) == 4
    assert {town.read(0, None, acked=None) for _ in range(10)} == {4}
    assert town.why == "held at 4: nobody counts the messages in flight"
    assert town.read(65, None, acked=None) == 7


@pytest.mark.parametrize(("replicas", "held"), [(0, 2), (3, 3), (9, 5)])
def test_workers_stay_as_many_as_the_bounds_allow_while_the_broker_says_nothing(replicas, held):
    town = Town(limits(each=10, least=2, most=5, delay=0), replicas=replicas)
    assert {town.read(None, None, acked=None) for _ in range(10)} == {held}


def test_silence_is_no_reading_that_agrees():
    town = Town(limits(each=10, delay=0), replicas=5)
    answers = [town.read(*counts) for counts in ((50, 0), (10, 0), (None, None), (None, None), (10, 0))]
    assert answers == [5, 5, 5, 5, 1]


def test_reading_that_was_seen_before_is_not_counted_again():
    town = Town(limits(each=10, delay=0))
    town.read(50)
    town.read(10)
    before = town.memory
    assert {town.ask() for _ in range(5)} == {5}
    assert town.memory == before


def test_older_reading_gives_the_same_answer_too():
    town = Town(limits(each=10))
    town.read(50)
    town.sample = Sample(town.now - 10, 95, 0, 0)
    assert town.ask() == 5


def test_memory_of_a_day_is_as_small_as_that_of_a_minute():
    sizes = []
    for delay in (60, 86_400):
        town = Town(limits(each=1, most=1000, delay=delay))
        for step in range(5000):
            town.read(100_000 - step, after=17)
        sizes.append(len(pickle.dumps(town.memory)))
    assert max(sizes) < 3000, sizes


# What is told


@pytest.mark.parametrize(
    ("fields", "counts", "why"),
    [
        ({"each": 100}, (470, 10), "480 messages are ready or in flight, 100 for a worker"),
        ({"each": 100}, (1, 0), "1 message is ready or in flight, 100 for a worker"),
        ({"each": 10}, (480, 0), "480 messages are ready or in flight, 10 for a worker; maxReplicas is 10"),
        ({"each": 10, "least": 2}, (5, 0), "5 messages are ready or in flight, 10 for a worker; minReplicas is 2"),
        ({"each": 10}, (0, 0), "nothing has been ready or in flight for 5m"),
        ({"each": 10, "delay": 0}, (0, 0), "nothing has been ready or in flight for 6s"),
        ({"each": 10}, (None, 0), "held at 0: the broker did not say how many messages there are"),
    ],
)
def test_reason_is_told_in_a_sentence(fields, counts, why):
    town = Town(limits(**fields))
    town.read(*counts)
    assert town.why == why


def test_reason_tells_why_one_stays_where_nothing_is_seen():
    town = Town(limits(each=10))
    town.read()
    town.read(acked=3)
    assert (town.replicas, town.why) == (1, "messages have come and gone since the last reading")


def test_reason_tells_that_more_were_needed_before():
    town = Town(limits(each=10))
    town.read(50)
    town.read(10)
    assert town.why == "as many were needed within the last 5m"
