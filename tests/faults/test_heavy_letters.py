"""A quarter of a gigabyte of dead letters: looked through and put back by a process that stays small, none harmed."""

import hashlib
import json
import subprocess
import sys
from datetime import timedelta

import pytest

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.topology import DEAD, Owner, Wanted, dead_queue_name
from redrive_testbed.places import REPOSITORY
from redrive_testbed.shell import wait_until

HOME = "orders"
ORDERS = Wanted("shop/orders", HOME, timedelta(seconds=1))
DEAD_QUEUE = dead_queue_name(HOME)
MEGABYTE = 2**20
FEW, MANY = 16, 256

# Windows of letters are bounded by their bytes; what is on its way to us comes on top.
MORE_MEGABYTES = 32

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def heavy(own_broker):
    """Give a way to bury letters of a megabyte each, and the URL of their vhost."""
    url = own_broker.add_vhost("heavy").amqp_url
    with Amqp([parse_amqp_url(url)]) as amqp:
        ensure(ORDERS, owner=Owner("tests"), amqp=amqp)
    return url


def test_looking_through_many_heavy_letters_takes_no_more_memory_than_through_few(heavy):
    bury(heavy, range(FEW))
    few = work(heavy, "scan", FEW)
    bury(heavy, range(FEW, MANY))
    many = work(heavy, "scan", MANY)
    assert (few["done"], many["done"]) == (FEW, MANY)
    assert many["peak"] - few["peak"] < MORE_MEGABYTES
    assert ready(heavy, DEAD_QUEUE, MANY)


def test_heavy_letters_go_back_whole_in_as_little_memory_as_few(heavy):
    bury(heavy, range(FEW))
    few = work(heavy, "requeue", FEW)
    assert bodies(heavy, FEW) == expected(range(FEW))
    bury(heavy, range(MANY))
    many = work(heavy, "requeue", MANY)
    assert many["done"] == MANY
    assert many["peak"] - few["peak"] < MORE_MEGABYTES
    assert ready(heavy, DEAD_QUEUE, 0)
    assert bodies(heavy, MANY) == expected(range(MANY))


def bury(url, numbers):
    headers = {"redrive-dead-reason": "Rejected", "redrive-dead-at": "2026-05-01T12:00:00.000Z", "redrive-attempt": 3}
    with Amqp([parse_amqp_url(url)]) as amqp:
        for number in numbers:
            properties = Properties(message_id=f"m{number}", delivery_mode=2, headers=headers)
            amqp.publish(DEAD, ORDERS.address, body(number), properties)


def body(number):
    return number.to_bytes(4) * (MEGABYTE // 4)


def expected(numbers):
    return {f"m{number}": hashlib.sha256(body(number)).hexdigest() for number in numbers}


def work(url, part, count):
    """Have the library do it in a process of its own; give what it had and the most memory that it needed.

    The figures are printed, so that they can be told: `pytest -s`.
    """
    command = [sys.executable, "-m", "bench.letters_task", "redrive", part, url, DEAD_QUEUE, HOME, str(count)]
    told = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=600)
    found = json.loads(told.stdout)
    needed = f"at most {found['peak']:.1f} MB of memory, {found['seconds']:.1f} s"
    print(f"\n{part}: {found['done']} letters of {MEGABYTE:,} bytes, {needed}", flush=True)
    return found


def bodies(url, count):
    """Take what came home."""
    found = {}
    with Amqp([parse_amqp_url(url)]) as amqp:
        for delivery in amqp.consume(HOME, prefetch=8, patience=10):
            if delivery is None:
                break
            found[delivery.properties.message_id] = hashlib.sha256(delivery.body).hexdigest()
            amqp.ack(delivery.tag)
            if len(found) == count:
                break
        amqp.cancel()
    return found


def ready(url, queue, count):
    with Amqp([parse_amqp_url(url)]) as amqp:
        wait_until(f"there are not {count} in {queue}", lambda: amqp.count_ready(queue) == count, within=30)
    return True
