"""One contender's work on dead letters, in a process of its own: `python -m bench.letters_task CONTENDER PART URL …`.

Prints how long it took, what it used and how many letters it had, as JSON. The bare loops are what a person with an
hour would write: they do the same with the library alone, and neither can be stopped nor end in the middle.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pika

from redrive.amqp import Amqp
from redrive.endpoints import parse_amqp_url
from redrive.letters import EVERYTHING, Order, chooser, look, move, read_letter
from redrive.outcome import DeadReason
from redrive.spec.redrive import RedriveAction, Selection

WINDOW = 500
MOST_PREFETCH = 50_000
WANTED = "Rejected"


def scan_ours(url: str, dead: str, _home: str, _count: int) -> int:
    wanted = Selection(DeadReason(WANTED), None, None, None, None, (), None)
    choose, found = chooser(wanted, seen_from=datetime.now(UTC)), 0
    with Amqp([parse_amqp_url(url)]) as amqp, look(amqp, dead) as looked:
        for window in looked.windows():
            now = datetime.now(UTC)
            found += sum(choose(read_letter(delivery, now=now)) for delivery in window)
    return found


def scan_bare(url: str, dead: str, _home: str, count: int) -> int:
    """Take all, compare a header, give all back. One consumer is given no more than there is room for in a prefetch.

    Nothing is done to keep their order when they are given back, which costs the other time: this is the least that
    can be done.
    """
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    found = 0
    for start in range(0, count, MOST_PREFETCH):
        part = min(MOST_PREFETCH, count - start)
        channel.basic_qos(prefetch_count=part)
        for seen, (_, properties, _) in enumerate(channel.consume(dead), 1):
            found += properties.headers["redrive-dead-reason"] == WANTED
            if seen == part:
                break
        channel.cancel()
    channel.basic_nack(0, multiple=True, requeue=True)
    connection.close()
    return found


def requeue_ours(url: str, dead: str, home: str, _count: int) -> int:
    order = Order(RedriveAction.REQUEUE, chooser(EVERYTHING, seen_from=datetime.now(UTC)), home=home)
    with Amqp([parse_amqp_url(url)]) as amqp:
        moved = 0
        for progress in move(amqp, dead, order):  # and keep none of them: each has the ids of what went
            moved = progress.moved
    return moved


def requeue_bare(url: str, dead: str, home: str, count: int) -> int:
    """Publish, wait for the confirm, acknowledge: one by one, as the library's plain connection has it."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel, publishing = connection.channel(), connection.channel()
    publishing.confirm_delivery()
    channel.basic_qos(prefetch_count=WINDOW)
    moved = 0
    for method, properties, body in channel.consume(dead):
        publishing.basic_publish("", home, body, _as_new(properties), mandatory=True)
        channel.basic_ack(method.delivery_tag)
        moved += 1
        if moved == count:
            break
    connection.close()
    return moved


def requeue_pipelined(url: str, dead: str, home: str, count: int) -> int:
    """Publish as deliveries come and acknowledge as confirms come, in the library's event loop: as fast as it gets."""
    return _Pipelined(dead, home, count).run(url)


def _as_new(properties: Any) -> Any:  # noqa: ANN401 - the library's own type
    headers = {name: value for name, value in properties.headers.items() if not name.startswith(("redrive-", "x-"))}
    properties.headers = {**headers, "redrive-attempt": 1, "redrive-redrives": 1}
    return properties


class _Pipelined:
    def __init__(self, dead: str, home: str, count: int) -> None:
        self._dead, self._home, self._count = dead, home, count
        self._tags: list[int] = []
        self._confirmed = 0
        self._taking: Any = None
        self._publishing: Any = None

    def run(self, url: str) -> int:
        self._connection = pika.SelectConnection(pika.URLParameters(url), on_open_callback=self._opened)
        self._connection.ioloop.start()
        return self._confirmed

    def _opened(self, connection: Any) -> None:  # noqa: ANN401
        connection.channel(on_open_callback=self._publishing_opened)

    def _publishing_opened(self, channel: Any) -> None:  # noqa: ANN401
        self._publishing = channel
        channel.confirm_delivery(
            self._on_confirm, callback=lambda _: self._connection.channel(on_open_callback=self._go)
        )

    def _go(self, channel: Any) -> None:  # noqa: ANN401
        self._taking = channel
        channel.basic_qos(prefetch_count=WINDOW, callback=lambda _: channel.basic_consume(self._dead, self._on_message))

    def _on_message(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:  # noqa: ANN401
        self._tags.append(method.delivery_tag)
        self._publishing.basic_publish("", self._home, body, _as_new(properties), mandatory=True)

    def _on_confirm(self, frame: Any) -> None:  # noqa: ANN401
        until = frame.method.delivery_tag
        self._confirmed = max(self._confirmed, until)
        self._taking.basic_ack(self._tags[until - 1], multiple=frame.method.multiple)
        if self._confirmed == self._count:
            self._connection.ioloop.call_later(0.2, self._connection.ioloop.stop)


TASKS: dict[tuple[str, str], Callable[[str, str, str, int], int]] = {
    ("scan", "bare"): scan_bare,
    ("scan", "redrive"): scan_ours,
    ("requeue", "bare"): requeue_bare,
    ("requeue", "pipelined"): requeue_pipelined,
    ("requeue", "redrive"): requeue_ours,
}


def main() -> None:
    contender, part, url, dead, home, count = sys.argv[1:]
    begun = time.monotonic()
    done = TASKS[part, contender](url, dead, home, int(count))
    seconds = time.monotonic() - begun
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"done": done, "seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "peak": read_peak()}))


def read_peak() -> float:
    """Read how much memory this program had at most, in MiB; `getrusage` counts that of who started it, too."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
