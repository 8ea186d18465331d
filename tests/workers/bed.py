"""A worker process on a real broker, the messages that it was given, and what it did with each."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

from redrive.amqp import Amqp
from redrive.config import plan_config, write_config
from redrive.endpoints import parse_amqp_url
from redrive.errors import BrokerError
from redrive.message import read_message
from redrive.properties import Properties
from redrive.provision import ensure
from redrive.spec import parse_consumer
from redrive.topology import Owner, Wanted, dead_queue_name
from redrive_testbed.shell import wait_until
from workers.descent import descendants

HANDLERS = Path(__file__).parent
PROGRAM = {"command": {"args": [sys.executable, str(HANDLERS / "program.py")]}}
WORKER = ("-m", "redrive.worker")
QUEUE = "orders"
IDLE_SECONDS = 10


def manifest(vhost, *, mode="Process", concurrency=4, timeout="60s", retry=None, runner=None):
    """Build a RetryingConsumer that retries fast; in mode Command it runs a program."""
    backoff = {"strategy": "Fixed", "base": "250ms", "jitter": "None"}
    handler = "scripted:handle_async" if mode == "Async" else "scripted:handle"
    runner = runner or (PROGRAM if mode == "Command" else {"python": {"handler": handler, "mode": mode}})
    return {
        "apiVersion": "redrive.dev/v1alpha1",
        "kind": "RetryingConsumer",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {
            "broker": {"secretRef": {"name": "rabbitmq"}, "vhost": vhost},
            "queue": {"name": QUEUE},
            "retry": {"maxAttempts": 3, "backoff": backoff, "maxDelay": "2s", **(retry or {})},
            "worker": {"image": "none", "concurrency": concurrency, "timeout": timeout, **runner},
        },
    }


class Bed:
    """One consumer in one vhost. Close it: no worker outlives its test."""

    def __init__(self, url, folder, raw):
        self.url = url
        self.folder = folder
        self.consumer = parse_consumer(raw)
        self.ledger = folder / "ledger"
        self.ledger.touch()
        self.workers = []
        self.published = []
        self._amqp = None
        self.provision()
        config = plan_config(self.consumer, self.consumer.worker, queue_parks=True)
        (folder / "config.json").write_text(write_config(config))
        self.point_to(url)

    @property
    def amqp(self):
        """Give a connection that works: an idle one ends, for nobody beats its heart."""
        if self._amqp is not None and time.monotonic() - self._used > IDLE_SECONDS:
            self._amqp.close()
            self._amqp = None
        if self._amqp is None:
            self._amqp = Amqp([parse_amqp_url(self.url)])
        self._used = time.monotonic()
        return self._amqp

    def provision(self):
        ensure(Wanted.of(self.consumer), owner=Owner("tests"), amqp=self.amqp)

    def point_to(self, url):
        """Have workers that connect from now on come by this way."""
        (self.folder / "broker").mkdir(exist_ok=True)
        (self.folder / "broker" / "uri").write_text(url)

    def disconnect(self):
        """Have no connection of the test's own, until the next is needed."""
        if self._amqp is not None:
            self._amqp.close()
        self._amqp = None

    def reconnect(self):
        """Connect the test itself again, after it broke its broker."""
        self.disconnect()
        wait_until("the broker lets the test in", self._try_connect, within=120)

    def start(self, *, inside=(), program=WORKER):
        """Start a worker, by way of another program if one is given, or another worker."""
        self.workers.append(Running(self.folder, len(self.workers), self.ledger, inside, program))
        return self.workers[-1]

    def keep_alive(self, until, *, within=240, inside=()):
        """Start the worker anew whenever it has died, as Kubernetes does, until something is so."""

        def look():
            if not self.workers or self.workers[-1].process.poll() is not None:
                self.start(inside=inside)
            return until()

        wait_until(lambda: f"it is not so; {self._tail()}", look, within=within)

    def publish(self, names, *, do=("ok",), padding=0, **properties):
        """Publish messages that say what to do, with as many spaces behind it."""
        body = json.dumps({"do": list(do)}).encode() + b" " * padding
        for name in names:
            self.published.append(name)
            self.amqp.publish("", QUEUE, body, Properties(message_id=name, delivery_mode=2, **properties))

    def release(self, what="ok"):
        """Let those that are held before they do this go on, and those that come later."""
        (self.folder / f"{what}-released").touch()

    def hold(self, what="ok"):
        """Have those that come from now on held again."""
        (self.folder / f"{what}-released").unlink()

    def runs(self):
        """List what was run, in order: id, attempt, and what it did; of a line that is being written, nothing yet."""
        lines = self.ledger.read_text().rpartition("\n")[0].splitlines()
        return [(name, int(attempt), what) for name, attempt, what in (line.split(" ", 2) for line in lines)]

    def done(self):
        """Count the successes by id, as the workers tell them. What a killed worker last told is gone with it."""
        return Counter(line["id"] for worker in self.workers for line in worker.lines("done"))

    def ran(self):
        """Count the runs that were to succeed, by id."""
        return Counter(name for name, _, what in self.runs() if what in ("ok", "held, ok") or what.startswith("sleep:"))

    def left(self):
        """Say what was published and is not done, as the workers tell it."""
        return set(self.published) - set(self.done())

    def dead(self):
        return self.amqp.count_ready(dead_queue_name(QUEUE))

    def wait_done(self, names=None, *, within=120):
        """Wait until each of these was done at least once, and nothing of them is left in the queue."""
        wanted = set(self.published if names is None else names)
        missing = lambda: sorted(wanted & self.left())  # noqa: E731
        wait_until(lambda: f"not done: {missing()[:5]}; {self._tail()}", lambda: not missing(), within=within)

    def wait_empty(self, within=60):
        """Wait until the queue has nothing for anybody, also nothing that comes back when the workers end.

        A broker may notice late that a connection is gone, and then deliver again what had been done.
        """
        wait_until("something is left in the queue", self._is_empty, within=within)

    def _is_empty(self):
        for worker in self.workers:
            worker.stop()
        if self.amqp.count_ready(QUEUE) == 0:
            return True
        self.start().wait_for("consuming")
        wait_until("something is ready still", lambda: self.amqp.count_ready(QUEUE) == 0, within=30)
        return False

    def letters(self):
        """Take what is in the dead letter queue, as messages."""
        return take_dead(self.amqp)

    def close(self):
        for worker in self.workers:
            worker.kill()
        self.disconnect()

    def _try_connect(self):
        try:
            return self.amqp is not None
        except BrokerError:
            return False

    def _tail(self):
        return "\n".join(worker.tail() for worker in self.workers[-2:])


def take_dead(amqp):
    """Take what is in the dead letter queue, as messages."""
    found = []
    for delivery in amqp.consume(dead_queue_name(QUEUE), prefetch=500, patience=2):
        if delivery is None:
            break
        found.append(read_message(delivery, now=None, max_attempts=1, new_id=str))
        amqp.ack(delivery.tag)
    return found


class Running:
    """One worker process and its log."""

    def __init__(self, folder, number, ledger, inside=(), program=WORKER):
        self.log = folder / f"log-{number}"
        pid_file = folder / f"pid-{number}"
        command = [*inside, sys.executable, *program, "--config", str(folder / "config.json")]
        command += ["--broker", str(folder / "broker"), "--port", "0"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(HANDLERS),
            "LEDGER": str(ledger),
            "LEDGER_BEGAN": str(time.time() - time.monotonic()),
            "WORKER_PID_FILE": str(pid_file),
        }
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )
        pid_file.write_text(str(self.process.pid))

    def lines(self, event):
        """Read what was told of one kind of event; what is not JSON is a handler's own, or the cut end of a line."""
        return [line for line in self.told() if line.get("event") == event]

    def wait_for(self, event, count=1, *, within=60):
        wait_until(
            lambda: f"no {count} {event} in {self.tail()}", lambda: len(self.lines(event)) >= count, within=within
        )
        return self.lines(event)

    def metric(self, name):
        """Scrape the one value of this metric."""
        [listening] = self.lines("listening")
        with urlopen(f"http://127.0.0.1:{listening['port']}/metrics", timeout=20) as answer:
            [line] = [line for line in answer.read().decode().splitlines() if line.startswith(f"{name}{{")]
        return float(line.rpartition(" ")[2])

    def stop(self, within=60):
        """Tell it to stop, and give its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(within)

    def kill(self):
        """End it and every process of its own, as a node that goes away would."""
        for pid in [self.process.pid, *descendants(self.process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(30)

    def tail(self):
        return self.log.read_text(errors="replace")[-3000:]

    def told(self, containing=""):
        """Give what it told, line by line; a log may be long."""
        with self.log.open(errors="replace") as lines:
            for line in lines:
                if containing not in line:
                    continue
                try:
                    told = json.loads(line)
                except ValueError:
                    continue
                if isinstance(told, dict):
                    yield told
