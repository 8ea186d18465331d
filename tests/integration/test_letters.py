"""Dead letters on real brokers: looking costs nothing, and whatever happens to who moves them, none is lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from letter_bed import DEAD_QUEUE, HOME, ORDERS, bury, ids_in, names, prepare, seen_in, settled

from redrive.amqp import Amqp
from redrive.elements import Queue, freeze
from redrive.endpoints import parse_amqp_url
from redrive.errors import BrokerError, Conflict, NotAccepted, NotFound
from redrive.letters import Order, find_again, look, move, moving, watch
from redrive.letters import looking as looking_module
from redrive.letters.codec import read_line, write_line
from redrive.letters.going_back import send_back
from redrive.letters.putting_in import as_letter, put_in
from redrive.outcome import DeadReason
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.spec.redrive import RedriveAction
from redrive.topology import DEAD, Owner, dead_queue_name
from redrive_testbed.shell import wait_until

MANY = 3000
REQUEUE = Order(RedriveAction.REQUEUE, lambda _letter: True, home=HOME)
DELETE = Order(RedriveAction.DELETE, lambda _letter: True)


@pytest.fixture
def ready(amqp, management):
    prepare(amqp, management)
    return amqp


@pytest.fixture
def doors(vhost):
    """Give a function that opens one more connection."""
    opened = []

    def open_door():
        opened.append(Amqp([parse_amqp_url(vhost.amqp_url)]))
        return opened[-1]

    yield open_door
    for door in opened:
        door.close()


def result_of(progress):
    *_, last = progress
    return last


def third(letter):
    return letter.reason is DeadReason.REJECTED


# Looking


def test_looking_at_thousands_neither_loses_nor_reorders_nor_ages_them(ready, release):
    bury(ready, MANY)
    for looks in range(3):
        found = seen_in(ready, DEAD_QUEUE)
        assert [delivery.properties.message_id for delivery in found] == names(MANY)
        counts = {delivery.properties.headers.get("x-delivery-count") for delivery in found}
        # 3.10 counts what is given back as delivered, and a million are allowed.
        assert counts == ({None} if release != "3.10" or looks == 0 else {looks})


def test_look_that_ends_early_gives_everything_back(ready):
    """What was given back once stands in front; of that, a second look puts what it saw behind the rest."""
    bury(ready, 200)
    for _ in range(2):
        with look(ready, DEAD_QUEUE) as looked:
            next(looked.windows())
        settled(ready, DEAD_QUEUE, 200)
        assert ids_in(ready, DEAD_QUEUE)[:16] in (names(16), names(32, start=16))
    assert sorted(ids_in(ready, DEAD_QUEUE)) == sorted(names(200))


def test_pass_that_is_given_up_in_the_middle_gives_everything_back(ready):
    bury(ready, 50)
    passing = move(ready, DEAD_QUEUE, replace(REQUEUE, limit=40, rate=20))
    moved = next(passing).moved
    passing.close()
    settled(ready, DEAD_QUEUE, 50 - moved)
    settled(ready, HOME, moved)


HOLD = """
import sys, time
from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.letters import look
amqp = Amqp([parse_amqp_url(sys.argv[1])])
with look(amqp, sys.argv[2]) as looked:
    for window in looked.windows():
        if looked.seen >= int(sys.argv[3]):
            print("holding", flush=True)
            time.sleep(60)
"""


@pytest.mark.parametrize("seen", [1, MANY // 2, MANY])
def test_letters_of_a_look_that_is_killed_are_all_there_again(ready, vhost, seen):
    bury(ready, MANY)
    command = [sys.executable, "-c", HOLD, vhost.amqp_url, DEAD_QUEUE, str(seen)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as looking:
        assert looking.stdout.readline() == "holding\n"
        looking.kill()
    settled(ready, DEAD_QUEUE, MANY)
    assert sorted(ids_in(ready, DEAD_QUEUE)) == sorted(names(MANY))


def test_letters_that_would_not_survive_a_look_are_not_looked_at(ready, broker, vhost, management):
    body = {"pattern": "^redrive", "definition": {"delivery-limit": 5}, "priority": 1, "apply-to": "queues"}
    broker.api.put("operator-policies", vhost.name, "low", body=body)
    with pytest.raises(Conflict, match="delivery limit of 5"):
        look(ready, DEAD_QUEUE, reading=management.read())
    with pytest.raises(Conflict, match="delivery limit of 5"):
        result_of(move(ready, DEAD_QUEUE, REQUEUE, reading=management.read()))


def test_queue_with_another_limit_is_not_looked_at_without_a_management_api_either(ready):
    ready.declare(Queue("redrive.dead.other", freeze({"x-queue-type": "quorum", "x-delivery-limit": 3})))
    with pytest.raises(Conflict, match="not as Redrive makes it"):
        look(ready, "redrive.dead.other")


def test_queue_that_is_not_there_is_said_to_be_missing(ready, management):
    for reading in (None, management.read()):
        with pytest.raises(NotFound, match="no queue"):
            look(ready, "redrive.dead.nobody", reading=reading)


def test_two_looks_at_once_see_each_letter_once_between_them(ready, doors):
    bury(ready, 600)
    with look(ready, DEAD_QUEUE) as one:
        first = next(one.windows())
        with look(doors(), DEAD_QUEUE) as other:
            second = [delivery for window in other.windows() for delivery in window]
            rest = [delivery for window in one.windows() for delivery in window]
    assert one.unseen == len(second)
    seen = [delivery.properties.message_id for delivery in (*first, *second, *rest)]
    assert sorted(seen) == sorted(names(600))
    settled(ready, DEAD_QUEUE, 600)


def test_large_letters_are_taken_few_at_a_time(ready, monkeypatch):
    monkeypatch.setattr(looking_module, "WINDOW_BYTES", 64)
    bury(ready, 60)
    with look(ready, DEAD_QUEUE) as looked:
        sizes = [len(window) for window in looked.windows()]
    assert sizes[0] == looking_module.FIRST_WINDOW
    assert set(sizes[1:-1]) == {4}


# Moving


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


def test_connection_that_breaks_in_the_middle_costs_no_letter(ready, doors, management, vhost):
    bury(ready, 400)
    passing = move(doors(), DEAD_QUEUE, replace(REQUEUE, rate=200))
    next(passing)
    user = parse_amqp_url(vhost.amqp_url).user
    wait_until("nobody is known to be connected", lambda: management.close_connections(user) > 0, within=20)
    with pytest.raises(BrokerError):
        list(passing)
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as again:
        wait_until(
            "some letters are missing",
            lambda: (again.count_ready(DEAD_QUEUE) or 0) + (again.count_ready(HOME) or 0) >= 400,
            within=20,
        )
        assert set(ids_in(again, DEAD_QUEUE)) | set(ids_in(again, HOME)) == set(names(400))


KILLED = 900


@pytest.mark.parametrize("points", [(1, 300, 800)])
def test_requeue_killed_at_many_points_loses_nothing(ready, vhost, points):
    bury(ready, KILLED)
    for point in points:
        kill_when(vhost, ["requeue", "--rate", "3000"], lambda least=point: (ready.count_ready(HOME) or 0) >= least)
        wait_until("some are with nobody", lambda: waiting(ready) >= KILLED, within=20)
    left = ids_in(ready, DEAD_QUEUE)
    home = Counter(ids_in(ready, HOME))
    assert set(left) | set(home) == set(names(KILLED))
    assert sum(home.values()) + len(left) < KILLED + len(points) * moving.PORTION


@pytest.mark.parametrize("points", [(1, 600)])
def test_delete_with_export_killed_at_many_points_loses_nothing(ready, vhost, tmp_path, points):
    bury(ready, KILLED)
    files = []
    for point in points:
        file = tmp_path / f"{point}.ndjson"
        files.append(file)
        kill_when(vhost, ["delete", "--all", "--yes", "--export", str(file)], partial(has_bytes, file, point * 100))
    written = [read_line(line, 1).properties.message_id for file in files if file.exists() for line in whole(file)]
    wait_until("the last one's are not back", lambda: waiting(ready) + len(set(written)) >= KILLED, within=20)
    assert set(ids_in(ready, DEAD_QUEUE)) | set(written) == set(names(KILLED))


def waiting(amqp):
    return (amqp.count_ready(DEAD_QUEUE) or 0) + (amqp.count_ready(HOME) or 0)


def has_bytes(file, least):
    return file.exists() and file.stat().st_size > least


def whole(file):
    return [line for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def kill_when(vhost, words, is_time):
    """Run a command on the letters, and kill it when it is time, or when it has ended by itself."""
    command = [sys.executable, "-m", "redrive_cli", "dead", *words, "--queue", HOME]
    env = {**os.environ, "REDRIVE_BROKER": vhost.amqp_url, "REDRIVE_MANAGEMENT": ""}
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        deadline = time.monotonic() + 30
        while running.poll() is None and not is_time():
            assert time.monotonic() < deadline, "it does nothing"
        running.send_signal(signal.SIGKILL)
        assert b"Traceback" not in running.stderr.read()


# Saved and put in again


def test_letters_are_the_same_when_they_were_saved_and_put_in_again(ready):
    headers = {"number": 5, "real": 1.5, "raw": b"\xff\x00", "flag": True, "table": {"a": [1, None, "x"]}}
    sent = Properties(message_id="typed", headers=headers, content_type="a/b", priority=3, timestamp=1_700_000_000)
    ready.publish(DEAD, "shop/orders", b"\x00\xff", sent)
    [before] = seen_in(ready, DEAD_QUEUE)
    line = write_line(before)
    assert result_of(move(ready, DEAD_QUEUE, DELETE)).moved == 1
    assert list(put_in(ready, DEAD_QUEUE, [read_line(line, 1)], as_letter)) == [1]
    settled(ready, DEAD_QUEUE, 1)
    [after] = seen_in(ready, DEAD_QUEUE)
    assert after.body == before.body
    kept = {name: value for name, value in after.properties.headers.items() if not name.startswith("x-")}
    assert {name: (type(value), value) for name, value in kept.items()} == {
        name: (type(value), value) for name, value in headers.items()
    }
    assert (after.properties.content_type, after.properties.priority, after.properties.timestamp) == (
        "a/b",
        3,
        1_700_000_000,
    )


def test_more_letters_than_a_window_are_put_in(ready):
    lines = [f'{{"text": "{number}", "messageId": "m{number}"}}' for number in range(1200)]
    stored = [read_line(line, number) for number, line in enumerate(lines, 1)]
    assert list(put_in(ready, DEAD_QUEUE, stored, as_letter)) == [500, 1000, 1200]
    assert ids_in(ready, DEAD_QUEUE) == names(1200)


# Canaries


def test_letters_that_died_again_are_found_by_their_ids(ready):
    bury(ready, 300)
    bury(ready, 1, start=5, **{"redrive-redrives": 1})
    assert find_again(ready, DEAD_QUEUE, ["m5", "m6"]) == {"m5"}
    settled(ready, DEAD_QUEUE, 301)


def test_watch_ends_as_soon_as_one_died_again_and_else_with_its_time(ready, doors):
    bury(ready, 10)
    begun = time.monotonic()
    assert watch(ready, DEAD_QUEUE, ["m3"], seconds=1) == frozenset()
    assert time.monotonic() - begun >= 1
    dying = doors()
    threading.Timer(0.7, lambda: bury(dying, 1, start=3, **{"redrive-redrives": 1})).start()
    assert watch(ready, DEAD_QUEUE, ["m3"], seconds=30) == {"m3"}


def test_dead_queue_of_another_consumer_is_not_touched(ready, management):
    ensure(
        replace(ORDERS, address="shop/other", queue="other"),
        owner=Owner("a-cluster"),
        amqp=ready,
        management=management,
    )
    bury(ready, 10)
    result_of(move(ready, DEAD_QUEUE, REQUEUE))
    assert ready.count_ready(dead_queue_name("other")) == 0
    assert ready.count_ready("other") == 0
