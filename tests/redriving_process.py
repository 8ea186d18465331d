"""An operator with one Redrive, and a file for a cluster, that may kill itself: `python redriving_process.py JSON`.

Everything but the API server is real: the desk, its session, the broker. The file is written as the API server writes
an object, whole or not at all, and outlives whoever is killed.
"""

import json
import os
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

from redrive_bed import ORDERS
from redrive_cluster import merge

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url, parse_management_url
from redrive.management import Management
from redrive.spec import parse_consumer
from redrive_operator.credentials import Access
from redrive_operator.errors import KubeConflict
from redrive_operator.metrics import Metrics
from redrive_operator.redriving.book import Book, read_redrive_entry
from redrive_operator.redriving.judging import is_over
from redrive_operator.redriving.redrive_desk import RedriveDesk
from redrive_operator.redriving.way import Way

CONSUMER = {
    "apiVersion": "redrive.dev/v1alpha1",
    "kind": "RetryingConsumer",
    "metadata": {"name": "orders", "namespace": "shop"},
    "spec": {"broker": {"secretRef": {"name": "rabbitmq"}}, "queue": {"name": "orders"}},
}


class FileCluster:
    """One Redrive in a file."""

    def __init__(self, path):
        self._path = Path(path)

    def put(self, body):
        metadata = {**body["metadata"], "resourceVersion": str(int(body["metadata"]["resourceVersion"]) + 1)}
        body = {**body, "metadata": metadata}
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(body))
        fresh.replace(self._path)
        return body

    def get(self, _kind=None, _key=None):
        return json.loads(self._path.read_text())

    def patch_status(self, _kind, _key, status, *, version=None):
        body = self.get()
        if version not in (None, body["metadata"]["resourceVersion"]):
            raise KubeConflict("somebody else changed it")
        return self.put({**body, "status": merge(body.get("status", {}), status)})


class Ways:
    def __init__(self, access, vhost):
        management = Management(access.management, vhost=vhost)
        self._way = Way(parse_consumer(CONSUMER), access, management)

    def find(self, _redrive):
        return self._way


DOORS = {"Amqp": Amqp, "Cluster": FileCluster}


def die_at(where):
    """Kill this process at a call: by its name, which time it is made, and whether before or after it."""
    name, time_, moment = where.split(":")
    door, call = name.split(".")
    original = getattr(DOORS[door], call)
    made = []

    def wrapped(self, *args, **kwargs):
        made.append(None)
        if len(made) == int(time_) and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(self, *args, **kwargs)
        if len(made) == int(time_) and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(DOORS[door], call, wrapped)


def make_desk(cluster, *, amqp, management, vhost):
    book = Book()
    endpoint = parse_amqp_url(amqp)
    access = Access(endpoint, parse_management_url(management).as_user(endpoint.user, endpoint.password), None, "")
    tools = SimpleNamespace(
        kube=cluster,
        herald=SimpleNamespace(tell=lambda *_: None),
        metrics=Metrics(),
        now=lambda: datetime.now(UTC).replace(microsecond=0),
        clock=time.monotonic,
    )
    return RedriveDesk(ORDERS, tools, book, Ways(access, vhost), threading.Event()), book


def have_turns(cluster, desk, book, *, within=120.0):
    """Have turns until the Redrive is over."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        entry = read_redrive_entry(cluster.get())
        if is_over(entry.subject):
            return cluster.get()["status"]
        book.put(entry)
        turn = desk.turn()
        patience = turn.patience if turn is not None and turn.patience is not None else 1.0
        time.sleep(min(patience, 1.0))
    raise TimeoutError(f"it does not come to an end: {cluster.get()}")


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    if told.get("die"):
        die_at(told["die"])
    file_cluster = FileCluster(told["file"])
    have_turns(file_cluster, *make_desk(file_cluster, **told["broker"]))
