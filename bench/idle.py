"""What ladders cost that nobody uses: CPU and memory of all nodes, and the time to declare one.

A quorum queue is a small state machine on each of its nodes, with timers of its own, so an empty one is not free. The
work is bounded by time and by this machine's memory, guessed from the ladders declared so far: what would not fit is
not begun, and said.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from bench.brokers import meter_of
from bench.declare import declare
from bench.errors import Abandoned
from bench.figures import Idle
from bench.usage import Accounts
from redrive.elements import Queue
from redrive.ladder import plan_ladder
from redrive_testbed.errors import TestbedError
from redrive_testbed.machine import available_memory
from redrive_testbed.rabbitmq import Broker, Vhost
from redrive_testbed.say import say

KEEP_FREE = 3000  # mebibytes of this machine
VHOST_TRIES = 3
GUESS_FROM = 3  # declared ladders: the first after a pause is often slow


@dataclass(frozen=True)
class Bounds:
    """How long to look, and when to give up."""

    settle: float  # seconds after the last declare
    window: float  # seconds; quorum queues and statistics tick every 5 s, so a multiple of that
    limit: float  # seconds for one kind of ladder on one kind of cluster


def measure_idle(nodes: tuple[Broker, ...], places: int, counts: Sequence[int], bounds: Bounds) -> Iterator[Idle]:
    """Declare more and more ladders, each in a vhost of its own, and look at the idle broker at each of `counts`."""
    field = _Field(nodes, places, bounds)
    yield field.look()
    for count in counts:
        try:
            field.grow(count)
        except (Abandoned, TestbedError):
            yield field.look()  # as far as it came
            raise
        yield field.look()


class _Field:
    """The ladders declared so far, and how long those took that no row tells of yet."""

    def __init__(self, nodes: tuple[Broker, ...], places: int, bounds: Bounds) -> None:
        self._nodes = nodes
        self._places = places
        self._bounds = bounds
        self._plan = plan_ladder(places)
        self._accounts = Accounts(meter_of(nodes))
        self._deadline = time.monotonic() + bounds.limit
        self._ladders = 0
        self._bare = 0.0
        self._declared: list[float] = []

    def look(self) -> Idle:
        time.sleep(self._bounds.settle)
        before = self._accounts.read()
        time.sleep(self._bounds.window)
        used = self._accounts.read() - before
        memory = self._accounts.broker.memory_mib()
        self._bare = self._bare or memory
        row = Idle(
            version=self._nodes[0].version,
            nodes=len(self._nodes),
            places=self._places,
            ladders=self._ladders,
            queues=self._ladders * sum(isinstance(element, Queue) for element in self._plan),
            cpu_percent=100 * used.broker / used.seconds,
            memory=memory,
            memory_per_ladder=(memory - self._bare) / max(1, self._ladders),
            declare_seconds=self._seconds_each(),
            others_busy=used.others_busy,
        )
        self._declared.clear()
        return row

    def grow(self, count: int) -> None:
        """Declare ladders up to `count`."""
        while self._ladders < count:
            self._require_time(count)
            self._require_memory(count)
            vhost = self._make_vhost(f"ladder-{self._ladders}")
            began = time.monotonic()
            declare(vhost.amqp_url, self._plan)
            self._declared.append(time.monotonic() - began)
            self._ladders += 1
            if self._ladders % 10 == 0:
                say(f"{self._ladders} of {count} ladders declared, {self._declared[-1]:.1f} s for the last")

    def _make_vhost(self, name: str) -> Vhost:
        """Try again: a busy cluster has answered that one of its nodes does not know the new vhost yet."""
        for _ in range(VHOST_TRIES - 1):
            try:
                return self._nodes[0].add_vhost(name)
            except TestbedError:
                time.sleep(2)
        return self._nodes[0].add_vhost(name)

    def _seconds_each(self) -> float:
        return fmean(self._declared or (0.0,))

    def _require_time(self, count: int) -> None:
        enough = len(self._declared) >= GUESS_FROM
        needed = (count - self._ladders) * self._seconds_each() if enough else 0.0
        remaining = self._deadline - time.monotonic() - self._bounds.settle - self._bounds.window
        if needed > remaining:
            raise Abandoned(
                f"{count} ladders given up at {self._ladders}: the others would take {needed:,.0f} s more, "
                f"and {max(0, remaining):,.0f} s were left of {self._bounds.limit:,.0f} s"
            )

    def _require_memory(self, count: int) -> None:
        if not self._ladders:
            return
        growth = (self._accounts.broker.memory_mib() - self._bare) / self._ladders
        needed = (count - self._ladders) * growth
        free = available_memory(Path("/proc/meminfo").read_text()) - KEEP_FREE
        if needed > free:
            raise Abandoned(
                f"{count} ladders given up at {self._ladders}: the others would need {needed:,.0f} MiB, "
                f"and {free:,.0f} MiB are free besides the {KEEP_FREE:,} MiB that stay so"
            )
