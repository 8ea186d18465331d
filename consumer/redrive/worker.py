"""A plain worker: one message at a time, in its own thread, until it is told to stop.

`redrive-worker --config PATH` runs it. Credentials are files of a folder, as Kubernetes mounts a Secret.
"""

import argparse
import json
import os
import random
import signal
import socket
import ssl
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from redrive.amqp import Amqp
from redrive.broker_secret import KEYS, BrokerSecret, read_broker_secret
from redrive.config import WorkerConfig, read_config
from redrive.delivery import Delivery
from redrive.endpoints import tls_context
from redrive.errors import BrokerError, RedriveError, Unreachable
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
PAUSE_UNSETTLED = 1.0


def main() -> int:
    arguments = _parser().parse_args()
    try:
        config = read_config(arguments.config.read_text())
        handler = _handler_of(config)
        broker = Broker.from_folder(arguments.broker, vhost=config.vhost)
    except (RedriveError, OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return UNUSABLE
    worker = Worker(config, handler, broker, pod=os.environ.get("HOSTNAME") or socket.gethostname())
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: worker.stop())
    worker.run()
    return 0


@dataclass(frozen=True, slots=True)
class Broker:
    """Where to connect, and with which certificates; the certificate's files stay where Kubernetes mounted them."""

    secret: BrokerSecret
    tls: ssl.SSLContext | None

    @classmethod
    def from_folder(cls, folder: Path, *, vhost: str) -> "Broker":
        known = {key: folder / key for key in KEYS}
        secret = read_broker_secret(
            {key: file.read_text() for key, file in known.items() if file.exists()}, vhost=vhost
        )
        certificate, key = (str(known[name]) if known[name].exists() else None for name in ("tls.crt", "tls.key"))
        context = tls_context(ca=secret.ca, certificate_file=certificate, key_file=key) if secret.amqp.secure else None
        return cls(secret, context)

    def connect(self, name: str) -> Amqp:
        return Amqp([self.secret.amqp], tls=self.tls, name=name)


class Worker:
    """Takes, runs, decides and settles; connects again, with growing pauses, whenever the broker goes away."""

    def __init__(self, config: WorkerConfig, handler: Handler, broker: Broker, *, pod: str) -> None:
        self._config = config
        self._handler = handler
        self._broker = broker
        self._pod = pod
        self._stopping = False
        self._failures = 0

    def stop(self) -> None:
        """Finish the message at hand, take no other, and end."""
        self._stopping = True

    def run(self) -> None:
        while not self._stopping:
            try:
                self._consume()
            except BrokerError as error:
                self._failures += 1
                pause = random.uniform(0.5, 1) * min(LONGEST_PAUSE, 2.0**self._failures)  # noqa: S311 - no secret
                _log("broker", error=str(error), pauseSeconds=round(pause, 1))
                _sleep(pause, lambda: self._stopping)

    def _consume(self) -> None:
        with self._broker.connect(f"{self._config.address} {self._pod}") as amqp:
            _log("consuming", queue=self._config.queue)
            for delivery in amqp.consume(self._config.queue, prefetch=1, patience=0.5):
                self._failures = 0
                if delivery is not None:
                    self._handle(amqp, delivery)
                if self._stopping:
                    amqp.cancel()
                    return

    def _handle(self, amqp: Amqp, delivery: Delivery) -> None:
        message = self._read(delivery)
        result = self._run(message)
        crashes = message.story.crashes
        outcome = decide(self._config.policy, message.attempt, result, random=random.random, crashes=crashes)
        while not self._settled(amqp, message, outcome, tag=delivery.tag):
            if self._stopping:
                return  # unacknowledged: the broker gives it to another worker
            amqp.wait(PAUSE_UNSETTLED)

    def _settled(self, amqp: Amqp, message: Message, outcome: Outcome, *, tag: int) -> bool:
        """Try to settle; what the broker refuses for now is kept, decided as it is, and tried again."""
        now = datetime.now(UTC)
        try:
            settle(amqp, self._config, message, outcome, tag=tag, now=now, pod=self._pod)
        except Unreachable:
            raise  # with the connection the delivery is gone too
        except BrokerError as error:
            _log("unsettled", id=message.id, attempt=message.attempt, error=str(error))
            return False
        _log_outcome(message, outcome, now)
        return True

    def _read(self, delivery: Delivery) -> Message:
        attempts = self._config.policy.max_attempts
        message = read_message(delivery, now=datetime.now(UTC), max_attempts=attempts, new_id=lambda: str(uuid.uuid4()))
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
