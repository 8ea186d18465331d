"""A Redrive on real brokers, whoever is killed in the middle: sent = put back + dead, by id, and the limit holds."""

import json
import math
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redrive_bed import dead_letter, redrive_body
from redriving_process import FileCluster, have_turns, make_desk

from redrive.amqp import Amqp
from redrive.delivery import Delivery
from redrive.endpoints import parse_amqp_url
from redrive.message import read_message
from redrive.outcome import Cause, DeadLetter, DeadReason
from redrive.provision import ensure
from redrive.republish import build_dead_letter
from redrive.topology import DEAD, Owner, Wanted
from redrive_operator.redriving import run
from redrive_operator.redriving.course import LIMIT_SHARE
from redrive_testbed.shell import wait_until

ORDERS = Wanted("shop/orders", "orders", timedelta(seconds=1))
QUEUE = "redrive.dead.orders"
SCRIPT = Path(__file__).parents[1] / "redriving_process.py"

# What each operator is killed at, one after the other: each takes up what the one before has left.
DEATHS = (
    "Amqp.give_back:1:before",
    "Cluster.patch_status:2:after",
    "Amqp.publish_several:1:after",
    "Amqp.ack_several:1:after",
    "Amqp.publish_several:3:after",
    "Cluster.patch_status:3:before",
    "Cluster.patch_status:3:after",
)


@pytest.fixture
def ready(amqp, management):
    ensure(ORDERS, owner=Owner("a-cluster"), amqp=amqp, management=management)
    return amqp


@pytest.fixture
def redrive(tmp_path, broker, vhost, ready):
    """Make a Redrive, and give what is needed to work on it."""

    def make(name="fix", **spec):
        made = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(redrive_body(name, created=made, spec=spec)))
        where = {"amqp": vhost.amqp_url, "management": broker.management_url, "vhost": vhost.name}
        return Redrive(path, where)

    broker.add_user(vhost.user, vhost.password, tags=("policymaker", "management"))
    return make


@pytest.fixture
def hasty(monkeypatch):
    """Believe the broker's counts at once, where nobody else looks at the letters."""
    monkeypatch.setattr(run, "LAG_SECONDS", 0.0)


class Redrive:
    def __init__(self, path, where):
        self.path, self.where = path, where
        self.cluster = FileCluster(path)
        self.kills = 0

    def die(self, at=None, *, after=None):
        """Have an operator that is killed, at a step or after a while; say whether it was."""
        command = [sys.executable, SCRIPT, json.dumps({"file": str(self.path), "broker": self.where, "die": at})]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            if after is not None:
                time.sleep(after)
                process.kill()
            _, said = process.communicate(timeout=60)
        assert process.returncode in (0, -9), said.decode()
        self.kills += process.returncode == -9
        return process.returncode == -9

    def work(self):
        return have_turns(self.cluster, *make_desk(self.cluster, **self.where))

    def condition(self):
        found = {one["type"]: one for one in self.cluster.get()["status"]["conditions"]}
        return found["Complete"]["status"], found["Complete"]["reason"]


def connections(broker):
    shown = broker.api.get("connections")
    ours = "redrive-operator"
    return [one["name"] for one in shown if one.get("client_properties", {}).get("connection_name") == ours]


def park(amqp, names, **how):
    for name in names:
        body, properties = dead_letter(name, **how)
        amqp.publish(DEAD, "shop/orders", body, properties)


@pytest.fixture
def ids(vhost):
    """Look at what is in a queue, and give it back: by a connection of its own, for others may have idled too long."""

    def look(queue):
        with Amqp([parse_amqp_url(vhost.amqp_url)]) as amqp:
            count = amqp.count_ready(queue)
            taken = amqp.take(queue, at_most=count, patience=2) if count else []
            amqp.give_back(queue, [[delivery.tag for delivery in taken]])
        return [delivery.properties.message_id for delivery in taken]

    return look


def test_kills_at_many_points_lose_nothing_and_the_limit_holds(ready, redrive, ids):
    sent, limit = [f"m{n}" for n in range(700)], 600
    park(ready, sent)
    one = redrive(limit=limit, rate=2000)
    assert [at for at in DEATHS if not one.die(at)] == []
    for seconds in (0.6, 0.9):
        one.die(after=seconds)
    status = one.work()
    back, dead = ids("orders"), ids(QUEUE)
    assert set(back) | set(dead) == set(sent)
    assert len(set(back)) <= limit
    assert len(set(back)) >= limit - one.kills * math.ceil(limit / LIMIT_SHARE)
    assert len(back) <= limit + one.kills * math.ceil(limit / LIMIT_SHARE)
    assert status["done"] <= len(back)
    assert one.condition() == ("True", "LimitReached")


def test_all_that_fit_go_back_over_kills_and_what_died_again_is_left(ready, redrive, vhost, ids):
    """A worker handles what comes back, but for some that die again: those are put back once, and left."""
    sent = [f"m{n}" for n in range(200)]
    fatal = set(sent[::10])
    park(ready, sent)
    one = redrive(rate=500)
    with Worker(vhost.amqp_url, fatal) as worker:
        assert one.die("Amqp.ack_several:2:before")
        assert one.die("Amqp.publish_several:2:after")
        one.work()
        wait_until("somebody has not run", lambda: set(worker.ran) == set(sent), within=20)
        wait_until("something waits still", lambda: ready.count_ready("orders") == 0, within=20)
    assert one.condition() == ("True", "Finished")
    assert set(ids(QUEUE)) == fatal
    assert set(worker.handled) == set(sent) - fatal
    assert max(worker.ran.count(name) for name in sent) <= 1 + one.kills


def test_canary_that_dies_stops_it_and_one_that_lives_does_not(ready, redrive, vhost, hasty):
    park(ready, ["bad", *(f"m{n}" for n in range(20))])
    one = redrive(canary={"count": 1, "timeout": "4s"})
    with Worker(vhost.amqp_url, {"bad"}):
        one.work()
        assert one.condition() == ("False", "CanaryDied")
        assert ready.count_ready(QUEUE) == 21
        second = redrive(
            "second", canary={"count": 2, "timeout": "4s"}, select={"messageIds": ["m1", "m2", "m3", "m4"]}
        )
        second.work()
        assert second.condition() == ("True", "Finished")
        wait_until("they are not gone", lambda: ready.count_ready(QUEUE) == 17, within=10)


def test_dry_run_counts_and_moves_nothing_and_delete_deletes(ready, redrive, hasty, ids):
    park(ready, [f"a{n}" for n in range(7)], error_type="shop.Broken")
    park(ready, [f"b{n}" for n in range(3)], error_type="shop.Worse")
    one = redrive(dryRun=True)
    status = one.work()
    assert (status["scanned"], status["matched"], status["done"]) == (10, 10, 0)
    assert [(group["errorType"], group["count"]) for group in status["groups"]] == [
        ("shop.Broken", 7),
        ("shop.Worse", 3),
    ]
    assert (ready.count_ready("orders"), len(ids(QUEUE))) == (0, 10)
    status = redrive("second", action="Delete", select={"errorType": "shop.Worse"}).work()
    assert (status["done"], sorted(ids(QUEUE))) == (3, [f"a{n}" for n in range(7)])
    assert ready.count_ready("orders") == 0


def test_letters_in_other_hands_are_waited_for(ready, redrive, vhost):
    park(ready, [f"m{n}" for n in range(50)])
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as viewer:
        held = viewer.take(QUEUE, at_most=20, patience=2)
        one = redrive()
        worker = threading.Thread(target=one.work)
        worker.start()
        wait_until("the others are not back", lambda: ready.count_ready("orders") == 30, within=20)
        time.sleep(4)
        assert one.condition()[0] == "False"
        viewer.give_back(QUEUE, [[delivery.tag for delivery in held]])
        worker.join(60)
    assert one.condition() == ("True", "Finished")
    assert ready.count_ready("orders") == 50


def test_connection_that_breaks_in_the_middle_is_told_and_taken_up_again(ready, redrive, broker, ids):
    sent = [f"m{n}" for n in range(80)]
    park(ready, sent)
    one = redrive(rate=12)
    told = []
    watching = threading.Event()

    def watch():
        while not watching.wait(0.02):
            told.append(one.condition() if "status" in one.cluster.get() else None)

    threading.Thread(target=watch, daemon=True).start()
    worker = threading.Thread(target=one.work)
    worker.start()
    wait_until("it has not begun", lambda: (ready.count_ready("orders") or 0) > 5, within=20)
    wait_until("no connection of the operator's is shown", lambda: connections(broker), within=10)
    for name in connections(broker):
        broker.api.delete("connections", name)
    worker.join(60)
    watching.set()
    assert ("False", "BrokerUnreachable") in told
    assert one.condition() == ("True", "Finished")
    assert set(ids("orders")) == set(sent)


def test_many_sessions_find_what_is_behind_others_and_leave_those_in_their_order(
    ready, redrive, hasty, monkeypatch, ids
):
    monkeypatch.setattr(run, "SESSION_SECONDS", 0.5)
    others, wanted = [f"o{n}" for n in range(300)], [f"m{n}" for n in range(60)]
    park(ready, others[:200], error_type="shop.Other")
    park(ready, wanted)
    park(ready, others[200:], error_type="shop.Other")
    one = redrive(select={"errorType": "shop.Broken"}, rate=20)
    began = time.monotonic()
    status = one.work()
    assert time.monotonic() - began >= 60 / 20 - 0.5
    assert (status["scanned"], status["matched"], status["done"]) == (360, 60, 60)
    assert ids("orders") == wanted
    assert ids(QUEUE) == others


class Worker:
    """Runs what comes to the work queue, in a thread; what is fatal dies at once, as a worker parks it."""

    def __init__(self, url, fatal):
        self._url, self._fatal = url, fatal
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.ran, self.handled = [], []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join(20)

    def _run(self):
        with Amqp([parse_amqp_url(self._url)]) as door:
            for delivery in door.consume("orders", prefetch=50, patience=0.2):
                if delivery is not None:
                    self._handle(door, delivery)
                if self._stopping.is_set():
                    return

    def _handle(self, door, delivery: Delivery):
        name = delivery.properties.message_id
        self.ran.append(name)
        if name in self._fatal:
            now = datetime.now(UTC)
            message = read_message(delivery, now=now, max_attempts=1, new_id=str)
            outcome = DeadLetter(DeadReason.EXHAUSTED, Cause("shop.Broken", "again"))
            door.publish(DEAD, "shop/orders", delivery.body, build_dead_letter(message, outcome, now=now, pod="w"))
        else:
            self.handled.append(name)
        door.ack(delivery.tag)
