"""What a consumer is about to do here, said before it does: pure, a title and some facts."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import assert_never

from redrive.schedule import schedule
from redrive.spec import CommandRunner, Consumer, HttpRunner, PythonRunner, Runner, Worker, format_duration
from redrive.topology import dead_queue_name
from redrive_cli.broker_flags import BrokerAddress
from redrive_cli.manifests import Manifest
from redrive_cli.preparing import Prepared

Fact = tuple[str, str]

HTTP_HOST = "127.0.0.1"


def say_title(consumer: Consumer, address: BrokerAddress, prepared: Prepared) -> str:
    return f"{consumer.address} on RabbitMQ {prepared.version} at {address.amqp}"


def say_facts(manifest: Manifest, address: BrokerAddress, prepared: Prepared, *, workers: int) -> Iterator[Fact]:
    consumer = manifest.consumer
    yield "vhost", f"{address.vhost} ({address.vhost_from})"
    yield "queue", consumer.queue.name
    yield "schedule", str(schedule(consumer.retry))
    kept = f", kept {say_retention(consumer.retention)}" if address.management else ""  # else it is said below
    yield "dead", f"{dead_queue_name(consumer.queue.name)}{kept}"
    if consumer.worker is not None:
        yield "runs", _say_work(consumer.worker, workers)
    for sentence in say_missing(prepared.missing):
        yield "but", sentence
    if manifest.ignored:
        yield "ignored", ", ".join(manifest.ignored)
    if consumer.paused:
        yield "ignored", "spec.paused, which is for the cluster"


def say_missing(missing: Sequence[str]) -> list[str]:
    """Make one line of sentences that begin alike, as those do that lack the management API."""
    reasons: dict[str, list[str]] = {}
    for sentence in missing:
        head, _, rest = sentence.partition(": ")
        reasons.setdefault(head, []).append(rest)
    return [f"{head}: {'; '.join(rest)}" if any(rest) else head for head, rest in reasons.items()]


def say_retention(retention: timedelta | None) -> str:
    if retention is None:
        return "for ever"
    days, rest = divmod(retention, timedelta(days=1))
    return f"for {days} days" if days > 1 and not rest else f"for {format_duration(retention)}"


def _say_work(worker: Worker, workers: int) -> str:
    several = "1 worker" if workers == 1 else f"{workers} workers"
    messages = "one message" if worker.concurrency == 1 else f"{worker.concurrency} messages"
    each = " in each" if workers > 1 else ""
    return f"{_say_runner(worker.runner)}; {several}, {messages} at a time{each}"


def _say_runner(runner: Runner) -> str:
    match runner:
        case PythonRunner(handler, mode):
            return f"{handler}, mode {mode}"
        case CommandRunner(args):
            return f"`{shlex.join(args)}` for each message"
        case HttpRunner(port, path):
            return f"posting to http://{HTTP_HOST}:{port}{path}, where your server must be running"
        case _:
            assert_never(runner)
