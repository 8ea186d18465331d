"""Dead letters put back and deleted on real brokers: those that were chosen, once, and in their order."""

import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
from letter_bed import (
    DEAD_QUEUE,
    DELETE,
    HOME,
    REQUEUE,
    bury,
    ids_in,
    names,
    prepare,
    result_of,
    seen_in,
    settled,
    third,
)

from redrive.errors import NotAccepted, NotFound
from redrive.letters import looking as looking_module
from redrive.letters import move, moving
from redrive.letters.going_back import send_back
from redrive.topology import DEAD


@pytest.fixture
def ready(amqp, management):
    prepare(amqp, management)
    return amqp


def test_chosen_letters_go_home_as_new_ones_and_the_others_stay_in_their_order(ready):
    bury(ready, 900, **{"redrive-redrives": 1, "tenant": "a", "redrive-crashes": 2})
    done = result_of(move(ready, DEAD_QUEUE, replace(REQUEUE, choose=third)))
    assert (done.total, done.seen, done.chosen, done.moved, done.unseen) == (900, 900, 300, 300, 0)
    home = seen_in(ready, HOME)
    assert [delivery.properties.message_id for delivery in home] == names(900, step=3)
    assert {tuple(sorted(delivery.properties.headers.items()))[:3] for delivery in home} == {
        (("redrive-attempt", 1), ("redrive-redrives", 2), ("tenant", "a"))
    }
    assert ids_in(ready, DEAD_QUEUE) == [name for name in names(900) if int(name[1:]) % 3]


def test_deleted_letters_are_gone_and_no_others(ready):
    bury(ready, 300)
    assert result_of(move(ready, DEAD_QUEUE, replace(DELETE, choose=third))).moved == 100
    assert len(ids_in(ready, DEAD_QUEUE)) == 200
    assert ready.count_ready(HOME) == 0


def test_dry_run_counts_and_moves_nothing(ready):
    bury(ready, 90)
    done = result_of(move(ready, DEAD_QUEUE, replace(REQUEUE, choose=third, dry_run=True)))
    assert (done.chosen, done.moved) == (30, 0)
    settled(ready, DEAD_QUEUE, 90)
    assert ready.count_ready(HOME) == 0


def test_no_more_are_moved_than_the_limit_and_the_oldest_go_first(ready):
    bury(ready, 100)
    assert result_of(move(ready, DEAD_QUEUE, replace(REQUEUE, limit=37))).moved == 37
    assert ids_in(ready, HOME) == names(37)
    assert ids_in(ready, DEAD_QUEUE) == names(100, start=37)


def test_rate_is_kept(ready):
    bury(ready, 60)
    begun = time.monotonic()
    assert result_of(move(ready, DEAD_QUEUE, replace(REQUEUE, rate=40))).moved == 60
    assert time.monotonic() - begun >= 60 / 40 - 0.3


def test_told_to_stop_it_stops_between_letters_and_holds_nothing(ready):
    bury(ready, 200)
    asked = iter([True] * 3)
    order = replace(REQUEUE, rate=100)
    done = result_of(move(ready, DEAD_QUEUE, order, keep_going=lambda: next(asked, False)))
    assert done.stopped
    assert 0 < done.moved < 200
    settled(ready, DEAD_QUEUE, 200 - done.moved)
    settled(ready, HOME, done.moved)


def test_letter_that_was_put_back_too_often_is_left_for_a_person(ready):
    bury(ready, 5, **{"redrive-redrives": 3})
    bury(ready, 5, start=5)
    done = result_of(move(ready, DEAD_QUEUE, REQUEUE))
    assert (done.chosen, done.moved, done.too_often) == (10, 5, 5)
    assert ids_in(ready, DEAD_QUEUE) == names(5)


def test_letter_that_dies_again_meanwhile_is_not_put_back_twice(ready, doors):
    """Somebody takes each message from the work queue at once, and it dies again."""
    bury(ready, 120)
    stopping, failing = threading.Event(), doors()

    def fail():
        while not stopping.is_set():
            for delivery in failing.take(HOME, at_most=50, patience=0.1):
                headers = {**delivery.properties.headers, "redrive-dead-reason": "Exhausted"}
                failing.publish(DEAD, "shop/orders", delivery.body, replace(delivery.properties, headers=headers))
                failing.ack(delivery.tag)

    thread = threading.Thread(target=fail)
    thread.start()
    try:
        done = result_of(move(ready, DEAD_QUEUE, replace(REQUEUE, rate=100, most_redrives=100)))
    finally:
        stopping.set()
        thread.join()
    assert done.moved == 120
    redrives = Counter(delivery.properties.headers["redrive-redrives"] for delivery in seen_in(ready, DEAD_QUEUE))
    redrives += Counter(delivery.properties.headers["redrive-redrives"] for delivery in seen_in(ready, HOME))
    assert redrives == {1: 120}


def test_pass_that_takes_longer_than_letters_may_be_held_goes_on_in_rounds(ready, monkeypatch):
    bury(ready, 150)
    monkeypatch.setattr(moving, "longest_hold", lambda _queue, _reading: looking_module.timedelta(seconds=0.4))
    done = result_of(move(ready, DEAD_QUEUE, replace(REQUEUE, choose=third, rate=40)))
    assert (done.moved, done.seen, done.total) == (50, 150, 150)
    assert sorted(ids_in(ready, HOME)) == sorted(names(150, step=3))
    settled(ready, DEAD_QUEUE, 100)


def test_work_queue_that_is_not_there_costs_no_letter(ready):
    bury(ready, 5)
    with pytest.raises(NotFound, match="no work queue 'nowhere'"):
        result_of(move(ready, DEAD_QUEUE, replace(REQUEUE, home="nowhere")))
    settled(ready, DEAD_QUEUE, 5)


def test_work_queue_that_goes_away_meanwhile_costs_no_letter(ready, doors):
    bury(ready, 100)
    passing = move(ready, DEAD_QUEUE, replace(REQUEUE, rate=40))
    first = next(passing)
    doors().delete_queue(HOME)
    with pytest.raises(NotAccepted, match="no queue is bound"):
        list(passing)
    settled(ready, DEAD_QUEUE, 100 - first.moved)


def test_letter_that_the_broker_refuses_stays_alone(ready):
    bury(ready, 40)

    def send(letter, frame_max):
        exchange, key, body, properties = send_back(letter, HOME, frame_max=frame_max)
        forged = "somebody-else" if letter.id == "m17" else None
        return exchange, key, body, replace(properties, user_id=forged)

    done = result_of(move(ready, DEAD_QUEUE, replace(REQUEUE, send=send)))
    assert (done.moved, done.refused) == (39, 1)
    assert "user_id" in done.complaint
    assert ids_in(ready, DEAD_QUEUE) == ["m17"]
    assert set(ids_in(ready, HOME)) == set(names(40)) - {"m17"}


def test_what_leaves_is_shown_before_it_does(ready):
    bury(ready, 20)
    shown = []

    def keep(letters):
        shown.extend(letter.id for letter in letters)
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        result_of(move(ready, DEAD_QUEUE, replace(DELETE, before=keep)))
    settled(ready, DEAD_QUEUE, 20)
    assert shown == names(20)[: len(shown)]


def test_two_who_move_at_once_lose_nothing_and_move_nothing_twice(ready, doors):
    bury(ready, 1000)
    results = []

    def run(door):
        results.append(result_of(move(door, DEAD_QUEUE, REQUEUE)))

    threads = [threading.Thread(target=run, args=(doors(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(result.moved for result in results) + (ready.count_ready(DEAD_QUEUE) or 0) == 1000
    assert Counter([*ids_in(ready, HOME), *ids_in(ready, DEAD_QUEUE)]) == Counter(names(1000))
