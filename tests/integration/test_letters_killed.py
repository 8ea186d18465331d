"""Whatever happens to who moves dead letters, none is lost: counted by their ids, on real brokers."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from letter_bed import DEAD_QUEUE, HOME, REQUEUE, bury, ids_in, names, prepare

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.errors import BrokerError
from redrive.letters import move, moving
from redrive.letters.codec import read_line
from redrive_testbed.shell import wait_until


@pytest.fixture
def ready(amqp, management):
    prepare(amqp, management)
    return amqp


def test_connection_that_breaks_in_the_middle_costs_no_letter(ready, doors, management, vhost):
    bury(ready, 400)
    door = doors()
    passing = move(door, DEAD_QUEUE, replace(REQUEUE, rate=200))
    next(passing)
    wait_until("the connection holds", lambda: is_cut_off(door, management, vhost), within=30)
    with pytest.raises(BrokerError):
        list(passing)
    with Amqp([parse_amqp_url(vhost.amqp_url)]) as again:
        wait_until(
            "some letters are missing",
            lambda: (again.count_ready(DEAD_QUEUE) or 0) + (again.count_ready(HOME) or 0) >= 400,
            within=20,
        )
        assert set(ids_in(again, DEAD_QUEUE)) | set(ids_in(again, HOME)) == set(names(400))


def is_cut_off(door, management, vhost):
    """Have the broker close all connections that it knows of: that of a moment ago is not yet among them."""
    management.close_connections(parse_amqp_url(vhost.amqp_url).user)
    try:
        door.wait(0.2)
    except BrokerError:
        return True
    return False


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
