"""A plain worker: one message at a time, in its own thread, until it is told to stop.

`redrive-worker --config PATH` runs it. Credentials are files of a folder, as Kubernetes mounts a Secret.
"""

import argparse
import json
import os
import random
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from redrive.amqp import Amqp, Delivery
from redrive.broker_secret import BrokerSecret, read_broker_secret
from redrive.config import WorkerConfig, read_config
from redrive.endpoints import tls_context
from redrive.errors import BrokerError, NotAccepted, RedriveError
from redrive.handler import Handler, load_handler, run_handler
from redrive.ladder import round_up
from redrive.message import Message, is_expired, read_message, welcome_back
from redrive.outcome import DeadLetter, Done, Expired, Outcome, Result, RetryLater
from redrive.retry import decide
from redrive.settle import settle
from redrive.spec import PythonRunner
from redrive.story import write_time

SECRET_FOLDER = Path("/etc/redrive/broker")
UNUSABLE = 2  # the exit code of a worker that was told something it cannot do
LONGEST_PAUSE = 30.0


def main() -> int:
    arguments = _parser().parse_args()
    try:
        config = read_config(arguments.config.read_text())
        handler = _handler_of(config)
        secret = read_broker_secret(_read_folder(arguments.broker), vhost=config.vhost)
    except (RedriveError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return UNUSABLE
    worker = Worker(config, handler, secret, pod=os.environ.get("HOSTNAME") or socket.gethostname())
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: worker.stop())
    worker.run()
    return 0


class Worker:
    """Takes, runs, decides and settles; connects again, with growing pauses, whenever the broker goes away."""

    def __init__(self, config: WorkerConfig, handler: Handler, secret: BrokerSecret, *, pod: str) -> None:
        self._config = config
        self._handler = handler
        self._secret = secret
        self._pod = pod
        self._stopping = False

    def stop(self) -> None:
        """Finish the message at hand, take no other, and end."""
        self._stopping = True

    def run(self) -> None:
        failures = 0
        while not self._stopping:
            try:
                self._consume()
                failures = 0
            except BrokerError as error:
                failures += 1
                pause = random.uniform(0.5, 1) * min(LONGEST_PAUSE, 2.0**failures)  # noqa: S311 - no secret
                _log("broker", error=str(error), pauseSeconds=round(pause, 1))
                _sleep(pause, lambda: self._stopping)

    def _consume(self) -> None:
        tls = tls_context(ca=self._secret.ca) if self._secret.amqp.secure else None
        with Amqp([self._secret.amqp], tls=tls, name=f"{self._config.address} {self._pod}") as amqp:
            _log("consuming", queue=self._config.queue)
            for delivery in amqp.consume(self._config.queue, prefetch=1, patience=0.5):
                if delivery is not None:
                    self._handle(amqp, delivery)
                if self._stopping:
                    amqp.cancel()
                    return

    def _handle(self, amqp: Amqp, delivery: Delivery) -> None:
        message = self._read(delivery)
        policy = self._config.policy
        outcome = decide(
            policy, message.attempt, self._run(message), random=random.random, crashes=message.story.crashes
        )
        while True:
            now = datetime.now(UTC)
            try:
                settle(amqp, self._config, message, outcome, tag=delivery.tag, now=now, pod=self._pod)
            except NotAccepted as error:
                _log("unconfirmed", id=message.id, error=str(error))
                amqp.wait(1)
            else:
                break
        _log_outcome(message, outcome, now)

    def _read(self, delivery: Delivery) -> Message:
        message = read_message(
            delivery.body,
            delivery.properties,
            exchange=delivery.exchange,
            routing_key=delivery.routing_key,
            redelivered=delivery.redelivered,
            now=datetime.now(UTC),
            max_attempts=self._config.policy.max_attempts,
            new_id=lambda: str(uuid.uuid4()),
        )
        return welcome_back(message)

    def _run(self, message: Message) -> Result:
        return Expired() if is_expired(message, datetime.now(UTC)) else run_handler(self._handler, message)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="redrive-worker", description="Run a handler for each message of a queue.")
    parser.add_argument("--config", type=Path, required=True, help="the file that the operator wrote")
    parser.add_argument("--broker", type=Path, default=SECRET_FOLDER, help="the folder with the broker's Secret")
    return parser


def _handler_of(config: WorkerConfig) -> Handler:
    if not isinstance(config.runner, PythonRunner):
        raise RedriveError("this worker runs Python handlers only: set spec.worker.python")
    return load_handler(config.runner.handler)


def _read_folder(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir() if file.is_file()}


def _log(event: str, **facts: object) -> None:
    line = {"time": write_time(datetime.now(UTC)), "event": event, **facts}
    print(json.dumps(line, ensure_ascii=False), flush=True)


def _log_outcome(message: Message, outcome: Outcome, now: datetime) -> None:
    match outcome:
        case Done():
            _log("done", id=message.id, attempt=message.attempt)
        case RetryLater(delay=delay):
            due = write_time(now + round_up(delay))
            _log("retry", id=message.id, attempt=message.attempt, delaySeconds=delay.total_seconds(), dueAt=due)
        case DeadLetter(reason=reason):
            _log("dead", id=message.id, attempt=message.attempt, reason=reason.value)


def _sleep(seconds: float, stopped: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not stopped():
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
