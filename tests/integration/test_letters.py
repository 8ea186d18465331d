"""Dead letters on real brokers: saved and put in again, and watched after they were put back."""

import threading
import time
from dataclasses import replace

import pytest
from letter_bed import (
    DEAD_QUEUE,
    DELETE,
    ORDERS,
    REQUEUE,
    bury,
    ids_in,
    names,
    prepare,
    result_of,
    seen_in,
    settled,
)

from redrive.letters import find_again, move, watch
from redrive.letters.codec import read_line, write_line
from redrive.letters.putting_in import as_letter, put_in
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.topology import DEAD, Owner, dead_queue_name


@pytest.fixture
def ready(amqp, management):
    prepare(amqp, management)
    return amqp


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
