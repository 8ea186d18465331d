"""Looking at dead letters on real brokers costs nothing, also when it is killed."""

import subprocess
import sys
from dataclasses import replace

import pytest
from letter_bed import DEAD_QUEUE, HOME, REQUEUE, bury, ids_in, names, prepare, result_of, seen_in, settled

from redrive.elements import Queue, freeze
from redrive.errors import Conflict, NotFound
from redrive.letters import look, move
from redrive.letters import looking as looking_module

MANY = 3000


@pytest.fixture
def ready(amqp, management):
    prepare(amqp, management)
    return amqp


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
