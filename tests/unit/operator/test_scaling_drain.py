"""How many workers empty a queue in time, by how fast they were seen to be."""

import pytest
from scaling_bed import Town, limits, saturated


@pytest.mark.parametrize(
    ("rate", "backlog", "drain", "replicas"),
    [
        (1.0, 600, 60, 10),
        (1.0, 300, 60, 5),
        (1.0, 301, 60, 5),
        (1.0, 329, 60, 5),  # within the tolerance
        (1.0, 331, 60, 6),
        (10.0, 600, 60, 1),
        (10.0, 3000, 60, 5),
        (0.2, 60, 60, 5),
        (1.0, 7200, 3600, 2),
        (1.0, 20, 1, 19),
    ],
)
def test_workers_are_as_many_as_empty_the_queue_in_time(rate, backlog, drain, replicas):
    town = saturated(rate=rate, drain=drain, backlog=backlog, most=1000)
    assert town.read(backlog - 1, 1, acked=None) == replicas


def test_arrivals_need_workers_of_their_own():
    town = saturated(workers=5, arriving=5, drain=60, backlog=300)
    assert town.read(295, 5, acked=75) == 10


@pytest.mark.parametrize(("backlog", "replicas"), [(500, 10), (600, 10), (655, 10), (665, 11)])
def test_number_that_is_nearly_right_is_left_alone(backlog, replicas):
    town = saturated(workers=10, drain=60, backlog=backlog, most=50, delay=0)
    assert {town.read(backlog - 10, 10, acked=None) for _ in range(5)} == {replicas}


def test_as_many_stay_as_were_needed_until_nothing_waits():
    town = saturated(drain=600, delay=0, most=50)
    assert [town.read(ready, 5, acked=None) for ready in (3000, 2000, 1000, 200, 20)] == [5] * 5
    assert [town.read(0, 5, acked=None) for _ in range(2)] == [5, 1]


# While the rate is not known


@pytest.mark.parametrize("replicas", [0, 1, 4])
def test_workers_stay_while_nobody_knows_how_fast_they_are(replicas):
    town = Town(limits(drain=60), replicas=replicas)
    assert town.read(10_000, 0, available=0) == max(1, replicas)
    begun = f"held at {replicas}" if replicas else "one to begin with"
    assert town.why == f"{begun}: how fast a worker is has not been measured yet"


@pytest.mark.parametrize(
    "readings",
    [
        pytest.param([(9, 1, 15)] * 9, id="the queue may have run empty"),
        pytest.param([(0, 1, 15), (900, 1, 15)] * 5, id="nothing was ready at one end"),
        pytest.param([(900, 0, 15), (900, 1, 15)] * 5, id="nobody held a message at one end"),
        pytest.param([(900, 1, None), (900, 1, 15)] * 5, id="the acks were not counted"),
        pytest.param([(900, None, 15), (900, 1, 15)] * 5, id="what is in flight was not counted"),
        pytest.param([(900, 1, -15)] * 9, id="the broker began to count anew"),
        pytest.param([(900, 1, 0)] * 9, id="nobody acked"),
    ],
)
def test_rate_is_not_measured_by_readings_that_do_not_tell_it(readings):
    town = Town(limits(drain=60), replicas=1)
    assert {town.read(ready, unacked, acked=acked) for ready, unacked, acked in readings} == {1}


def test_rate_is_not_measured_while_the_number_of_workers_changes():
    town = Town(limits(drain=60), replicas=1)
    assert {town.read(900, 1, acked=15, available=1 + step % 2) for step in range(9)} == {1}


def test_rate_is_not_measured_by_the_acks_of_workers_that_are_not_available():
    town = Town(limits(drain=60), replicas=1)
    assert {town.read(900, 1, acked=15, available=0) for _ in range(9)} == {1}


def test_rate_is_not_measured_by_what_was_counted_before_the_number_of_workers_changed():
    town = Town(limits(drain=60), replicas=1)
    assert [town.read(900, 1, acked=15) for _ in range(2)] == [1, 1]
    assert town.read(900, 1, acked=15) == 10


def test_rate_is_not_measured_over_a_gap():
    town = Town(limits(drain=60), replicas=1)
    assert {town.read(900, 1, acked=15, after=121) for _ in range(9)} == {1}


def test_idle_workers_go_though_nobody_knows_how_fast_they_are():
    town = Town(limits(drain=60, delay=60), replicas=10)
    assert {town.read(0, 1, acked=40) for _ in range(5)} == {10}
    assert town.read(0, 1, acked=40) == 3
    assert town.why == "nothing waits, and 1.0 messages are in flight"
    assert {town.read(0, 1, acked=40) for _ in range(50)} == {3}


# What changes the rate, and what does not


def test_broker_that_begins_to_count_anew_changes_no_rate():
    town = saturated(drain=60, most=50)
    assert town.read(299, 1) == 5
    assert town.read(299, 1, acked=-town.acked, available=1) == 5
    assert town.read(599, 1, acked=None, available=1) == 10


def test_workers_that_became_slower_become_more():
    town = saturated(rate=2.0, drain=60, backlog=2000, most=1000)
    before = town.read(1999, 1, acked=None)
    for _ in range(12):
        town.replicas = 1
        after = town.read(1999, 1, acked=15)
    assert before == 16
    assert 29 <= after <= 31  # twice as many, within the tolerance


def test_one_ack_in_ten_minutes_is_a_rate_which_at_most_doubles_the_workers_at_a_time():
    town = Town(limits(drain=3600, most=50), replicas=1)
    answers = [town.read(60, 1, acked=int(step == 40)) for step in range(41)]
    assert answers == [1] * 40 + [2]
    assert [town.read(60, 1, available=1) for _ in range(4)] == [4, 8, 10, 10]


def test_acks_of_slow_workers_count_however_old_they_are():
    town = saturated(rate=0.1, drain=600, most=50, readings=14)
    town.read(179, 1)
    town.replicas = 1
    assert town.read(179, 1, after=119) == 6


def test_new_workers_who_have_not_come_to_their_first_ack_do_not_slow_the_rate():
    town = saturated(rate=1 / 600, drain=3600, most=100, readings=800)
    assert town.read(119, 1, acked=None) == 19
    assert {town.read(119 - 19, 19) for _ in range(39)} == {19}


def test_one_worker_for_each_message_is_all_that_helps_where_one_takes_too_long():
    town = saturated(rate=1 / 600, workers=5, drain=60, most=100, readings=400)
    assert town.read(0, 5) == 5
    assert town.read(7, 5, acked=None) == 11  # for twelve, within the tolerance


def test_heap_that_came_at_once_is_not_taken_for_a_stream():
    town = saturated(drain=60, backlog=100)
    town.read(0, 0, acked=100)
    for _ in range(20):
        town.read(0, 0)
    assert town.read(600, 0) == 10


def test_messages_that_a_worker_holds_but_has_not_begun_wait_too():
    town = Town(limits(drain=60, most=50), replicas=5)
    for _ in range(8):
        answer = town.read(100, 200, acked=75, available=5)
    assert answer == 10  # five for what arrives, and five for what waits


def test_stream_that_outruns_the_workers_is_seen_before_it_has_piled_up():
    town = saturated(drain=600, most=50)
    answers = [town.read(100 + 300 * reading, 50, acked=15, available=1) for reading in range(8)]
    assert answers[-1] == 7  # what waits by then would need four


def test_stream_that_dwindles_is_not_provided_for_as_long_as_a_long_drain_time():
    town = saturated(workers=10, arriving=10, drain=8 * 3600, most=50)
    for _ in range(40):
        town.read(0, 200, acked=150)
    for _ in range(90):
        town.read(0, 20, acked=15)
    assert town.replicas <= 2


def test_heap_is_not_taken_for_a_stream_because_of_two_readings_at_almost_the_same_time():
    town = saturated(drain=60, most=50)
    town.read(0, 0)
    town.read(2, 0, after=0.001)
    assert town.read(600, 0) == 10


def test_queue_that_somebody_emptied_does_not_hide_what_arrives_afterwards():
    town = saturated(workers=10, arriving=10, drain=60, backlog=1_000_000, most=50)
    for _ in range(20):
        answer = town.read(0, 10, acked=150, available=10)
        town.replicas = 1
    assert answer == 10


def test_rate_is_remembered_while_there_are_no_workers():
    town = saturated(drain=60, delay=0)
    for _ in range(100):
        town.read()
    assert town.replicas == 0
    assert town.read(240) == 4


# What is told


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"rate": 3.2, "backlog": 480}, "480 messages at 3.2 a second for a worker, to be gone within 1m30s"),
        (
            {"rate": 3.2, "backlog": 480, "arriving": 1.6},
            "480 messages and 1.6 more a second at 3.2 a second for a worker, to be gone within 1m30s",
        ),
        ({"rate": 32, "backlog": 9000}, "9000 messages at 32 a second for a worker, to be gone within 1m30s"),
        (
            {"rate": 1 / 300, "workers": 20, "backlog": 30, "readings": 100},
            "30 messages at 12 an hour for a worker, to be gone within 1m30s",
        ),
    ],
)
def test_reason_tells_the_rate_and_the_time(fields, why):
    town = saturated(**fields, drain=90, most=1000)
    town.read(fields["backlog"] - town.replicas, town.replicas, acked=None)
    assert town.why == why
