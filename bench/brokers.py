"""Real brokers for a bench, on loopback, in a folder of their own that goes with them.

A fresh broker for each measurement keeps the memory of one out of the figures of the next. Where time matters more
than that, one broker of each release serves all. All are leashed: they end with this process, however it ends.
"""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Meter
from redrive_testbed.places import Places
from redrive_testbed.rabbitmq import Broker, start_broker
from redrive_testbed.rabbitmq_cluster import start_cluster


class Brokers:
    """Lends brokers; `fresh` ones are removed when they are given back, others at the end."""

    def __init__(self, folder: Path, *, fresh: bool) -> None:
        self._folder = folder
        self._fresh = fresh
        self._kept: dict[str, Broker] = {}

    @contextmanager
    def lend(self, release: str) -> Iterator[Broker]:
        broker = self._kept.get(release) or start_broker(self._places(release), release, leashed=True)
        if not self._fresh:
            self._kept[release] = broker
        try:
            yield broker
        finally:
            if self._fresh:
                broker.remove()

    @contextmanager
    def lend_nodes(self, release: str, count: int) -> Iterator[tuple[Broker, ...]]:
        """Lend one node, or a cluster of several, which is always fresh."""
        if count == 1:
            with self.lend(release) as broker:
                yield (broker,)
            return
        cluster = start_cluster(self._places(release), release, nodes=count, leashed=True)
        try:
            yield cluster.nodes
        finally:
            cluster.remove()

    def close(self) -> None:
        for broker in self._kept.values():
            broker.remove()

    def _places(self, release: str) -> Places:
        folder = Path(tempfile.mkdtemp(prefix=f"{release}-", dir=self._folder))
        folder.chmod(0o755)  # the broker is another user
        return Places(state=folder, cache=Places.from_environment().cache)


@contextmanager
def open_brokers(*, fresh: bool) -> Iterator[Brokers]:
    folder = Path(tempfile.mkdtemp(prefix="redrive-bench-"))
    folder.chmod(0o755)
    brokers = Brokers(folder, fresh=fresh)
    try:
        yield brokers
    finally:
        brokers.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def own_vhost(broker: Broker) -> Iterator[str]:
    """Give the URL of a vhost that is gone afterwards."""
    vhost = broker.add_vhost(f"bench-{secrets.token_hex(4)}")
    try:
        yield vhost.amqp_url
    finally:
        broker.delete_vhost(vhost.name)


def meter_of(nodes: tuple[Broker, ...]) -> Meter:
    return Meter(tuple(pid for node in nodes for pid in node.pids()))
