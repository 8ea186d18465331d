"""A worker process: `redrive-worker --config PATH` takes messages from a queue and runs a handler for each.

Credentials are files of a folder, as Kubernetes mounts a Secret. Exit codes: 0 when told to stop and done,
1 when it must be replaced, 2 when it was told something that it cannot do, which no restart mends.
"""

import argparse
import gc
import io
import os
import random
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from redrive.amqp.consuming import QueueConsumer
from redrive.amqp.link import Terms
from redrive.amqp.loop import EventLoop
from redrive.amqp.publishing import ConfirmingPublisher
from redrive.broker_folder import BrokerFolder
from redrive.config import WorkerConfig, read_config
from redrive.errors import RedriveError
from redrive.health import Health
from redrive.listener import Listener
from redrive.logs import LEVELS, Log, route_logging
from redrive.metrics import CONNECTIONS, CONSUMING, PUBLISHING, Metrics
from redrive.runners.choice import choose_runner, name_mode, shares_interpreter
from redrive.runtime.core import Runtime
from redrive.signalling import on_signals
from redrive.spec.worker import METRICS_PORT
from redrive.watchdog import WIND_SECONDS, Watchdog
from redrive.witness import Told

SECRET_FOLDER = Path("/etc/redrive/broker")
UNUSABLE = 2
KILLED = 128 + signal.SIGTERM

FLUSH_SECONDS = 0.1
FAREWELL_SECONDS = 5.0

# After so many new objects Python looks for garbage among them. With its own 700 it would look at messages that are in
# our hands, over and over; those need no collector when they leave.
YOUNG_OBJECTS = 10_000


def main() -> int:
    arguments = _parse(sys.argv[1:])
    log = Log(level=arguments.log_level)
    try:
        config = read_config(arguments.config.read_text())
        folder = BrokerFolder(arguments.broker, config.vhost)
        folder.read()  # now, when a mistake in it can still be told as one
        return Worker(config, folder, log, listen=(arguments.host, arguments.port)).run()
    except (RedriveError, OSError, UnicodeDecodeError) as error:
        log.close()
        print(f"error: {error}", file=sys.stderr)
        return UNUSABLE


class Worker:
    """The parts of a worker, put together. They live as long as the process."""

    def __init__(self, config: WorkerConfig, folder: BrokerFolder, log: Log, *, listen: tuple[str, int]) -> None:
        pod = os.environ.get("HOSTNAME") or socket.gethostname()
        self._log = log
        self._loop = EventLoop()
        self._exit_code = 0
        self._told_to_stop = False
        self._runner = choose_runner(config, self._loop)
        self._watchdog = Watchdog() if shares_interpreter(config) else None
        metrics = Metrics(config.namespace, config.consumer, version=version("redrive"), mode=name_mode(config))
        told = Told(metrics, log, queue=config.queue)
        terms = {
            use: Terms(folder.read, f"{config.address} {pod}", told.trouble, partial(told.stands, use))
            for use in CONNECTIONS
        }
        self._runtime = Runtime(
            config,
            loop=self._loop,
            consumer=QueueConsumer(self._loop, terms[CONSUMING], queue=config.queue),
            publisher=ConfirmingPublisher(self._loop, terms[PUBLISHING]),
            runner=self._runner,
            witness=told,
            random=random.random,
            new_id=lambda: str(uuid.uuid4()),
            pod=pod,
            finished=self._finished,
        )
        metrics.watch_held(lambda: self._runtime.held)
        health = Health(
            turned_at=lambda: self._loop.last_turn,
            waits_for=self._waits_for,
            expose=metrics.expose,
            busy=lambda: self._runtime.running,
        )
        self._listener = Listener(health.respond, host=listen[0], port=listen[1])

    def run(self) -> int:
        """Work until told to stop; HandlerError when the handler cannot be used, before any message is taken."""
        undo = route_logging(self._log)
        self._listener.start()
        self._log.info("listening", port=self._listener.port)
        on_signals(self._loop, self._stop, signal.SIGTERM, signal.SIGINT)
        try:
            self._runtime.start()
            self._flush()
            gc.collect()
            gc.freeze()  # what is there now stays, and need not be looked at again and again
            if self._watchdog is not None:
                self._watchdog.start()
                self._wind(self._watchdog)
            self._loop.run()
        finally:
            if self._watchdog is not None:
                self._watchdog.stop()
            self._runner.stop()
            self._listener.close()
            undo()
            self._log.close()
        return self._exit_code

    def _stop(self) -> None:
        """Stop politely; the second time at once: what the broker has not heard about, it gives to another worker.

        A worker that drains because it must be replaced has not been told yet.
        """
        if self._told_to_stop:
            self._log.warning("stopped", "told to stop for the second time")
            self._finished(KILLED)
        else:
            self._told_to_stop = True
            self._log.info("draining")
            self._runtime.drain()

    def _finished(self, exit_code: int) -> None:
        self._exit_code = exit_code
        self._loop.stop()

    def _flush(self) -> None:
        self._log.flush()
        self._loop.later(FLUSH_SECONDS, self._flush)

    def _wind(self, watchdog: Watchdog) -> None:
        watchdog.wind()
        self._loop.later(WIND_SECONDS, partial(self._wind, watchdog))

    def _waits_for(self) -> str | None:
        if self._runtime.is_draining:
            return "draining: it was told to stop"
        return None if self._runtime.is_consuming else "connecting: the broker or the queue is not there"


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line. What the environment says is read as if it stood there, with the same errors."""
    parser = argparse.ArgumentParser(prog="redrive-worker", description="Run a handler for each message of a queue.")
    parser.add_argument("--config", type=Path, required=True, help="the file that the operator wrote")
    parser.add_argument("--broker", type=Path, default=SECRET_FOLDER, help="the folder with the broker's Secret")
    port_help = "where to serve /metrics, /livez and /readyz; 0 for any that is free; or REDRIVE_METRICS_PORT"
    parser.add_argument("--port", type=_port, default=METRICS_PORT, help=f"{port_help} (default: %(default)s)")
    parser.add_argument("--host", default="", help="the address to serve them on (default: all)")
    level_help = "how much to tell; at warning, only trouble and dead letters; or REDRIVE_LOG_LEVEL"
    parser.add_argument("--log-level", choices=LEVELS, default="info", help=f"{level_help} (default: %(default)s)")
    told = {"--port": os.environ.get("REDRIVE_METRICS_PORT"), "--log-level": os.environ.get("REDRIVE_LOG_LEVEL")}
    return parser.parse_args([*(f"{name}={value}" for name, value in told.items() if value), *words])


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65536):
        raise argparse.ArgumentTypeError("must be a number from 0 to 65535")
    return int(text)


def start() -> NoReturn:
    """Run `main`, and end with its exit code, whatever threads a handler has left behind."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A line that a handler prints goes out in one piece, also where output is unbuffered: no other ends up in it.
        sys.stdout.reconfigure(line_buffering=True, write_through=False)
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])  # a handler that wants another sets it when imported
    exit_code = main()
    if exit_code == 0:
        # What was registered to be done at the end is done; a thread that does not end has a moment.
        farewell = threading.Timer(FAREWELL_SECONDS, os._exit, [exit_code])
        farewell.daemon = True
        farewell.start()
        sys.exit(exit_code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


if __name__ == "__main__":
    start()
