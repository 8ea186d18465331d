"""The suite's stage on a real broker: worker processes, one for each consumer, that all tests of a module share."""

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

from behaviour.handlers import errands
from behaviour.stage import EVENTS, HANDLERS, Stage, manifest, read_letter
from redrive.amqp import Amqp
from redrive.config import plan_config, write_config
from redrive.elements import Exchange
from redrive.endpoints import parse_amqp_url
from redrive.message import read_message
from redrive.provision import ensure
from redrive.republish import build_requeue
from redrive.spec import parse_consumer
from redrive.topology import Owner, Wanted, dead_queue_name
from redrive_testbed.shell import tail, wait_until

# Longer than a busy machine needs, and than RabbitMQ lets a rung wait now and then.
PATIENCE = 90

COUNTS = ("x-delivery-count", "x-acquired-count")


class BrokerStage(Stage):
    def __init__(self, name, vhost, folder):
        super().__init__(name)
        self.user = vhost.user
        self._url = vhost.amqp_url
        self._folder = folder
        self._journal = folder / "journal"
        self._logs = []
        self._letters = []
        self._consumer = parse_consumer(manifest(name, vhost.name))
        self._process = None
        self._provision()
        self._start()

    def publish(self, body, properties, *, exchange, routing_key, redelivered):
        if redelivered:
            self._stop()
        with self._amqp() as amqp:
            amqp.publish(exchange, routing_key, body, properties)
            if redelivered:
                self._take_and_die(amqp)
        if redelivered:
            self._start()

    def wait_for(self, name):
        self._wait(f"{name} is not over", lambda: self.is_over(name) or self._has_ended())

    def journal(self):
        return errands.read_journal(self._journal)

    def letters(self):
        """Take the letters that have come meanwhile, and remember them."""
        with self._amqp() as amqp:
            for delivery in amqp.consume(dead_queue_name(self.queue), prefetch=100, patience=0.05):
                if delivery is None:
                    break
                self._letters.append(read_letter(_read(delivery)))
                amqp.ack(delivery.tag)
        return list(self._letters)

    def requeue(self, letter):
        self._letters.remove(letter)
        with self._amqp() as amqp:
            amqp.publish("", self.queue, letter.message.body, build_requeue(letter.message))

    def drain_during(self, name, *, gives_back):
        self._wait(f"{name} has not begun", lambda: self.look(name).calls)
        self._process.terminate()
        self._wait("the worker keeps what it should give back", lambda: self.count_waiting() == gives_back)
        release = errands.release_file(self._journal)
        release.touch()
        assert self._process.wait(PATIENCE) == 0, self._tail()
        release.unlink()

    def count_waiting(self):
        with self._amqp() as amqp:
            return amqp.count_ready(self.queue)

    def restart(self):
        self._stop()
        self._start()

    def close(self):
        """See that the worker ends well, and that it leaves nothing behind."""
        self._stop()
        assert self.count_waiting() == 0, f"{self.queue} is not empty"

    def kill(self):
        """Leave no process behind, whatever happened before."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def _provision(self):
        with self._amqp() as amqp:
            amqp.declare(Exchange(EVENTS))
            ensure(Wanted.of(self._consumer), owner=Owner("tests"), amqp=amqp)
        config = plan_config(self._consumer, self._consumer.worker, queue_parks=True)
        (self._folder / "config.json").write_text(write_config(config))
        (self._folder / "broker").mkdir()
        (self._folder / "broker" / "uri").write_text(self._url)

    def _start(self):
        config, broker = self._folder / "config.json", self._folder / "broker"
        command = [sys.executable, "-m", "redrive.worker", "--config", config, "--broker", broker, "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": str(HANDLERS), "ERRANDS": str(self._journal)}
        self._logs.append(self._folder / f"log-{len(self._logs)}")
        with self._logs[-1].open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        self._wait("the worker is not consuming", lambda: '"consuming"' in self._tail() or self._has_ended())

    def _stop(self):
        """Tell the worker to stop, and see that it does so well."""
        if self._process.poll() is None:
            self._process.terminate()
        assert self._process.wait(PATIENCE) == 0, self._tail()

    def _has_ended(self):
        """Never so while a message is waited for: then nobody would ever run it."""
        assert self._process.poll() is None, f"the worker ended:\n{self._tail()}"
        return False

    def _take_and_die(self, amqp):
        """Be a worker that dies with a message in its hands."""
        [taken] = [next(amqp.consume(self.queue, prefetch=1, patience=PATIENCE))]
        assert taken is not None

    def _amqp(self):
        return Amqp([parse_amqp_url(self._url)])

    def _wait(self, problem, condition):
        wait_until(lambda: f"{problem}:\n{self._tail()}", lambda: bool(condition()), within=PATIENCE, every=0.05)

    def _tail(self):
        return tail(self._logs[-1].read_text(errors="replace"))


def _read(delivery):
    """Read a letter, without what our own looking wrote on it: one that came as we left was delivered before."""
    headers = {name: value for name, value in delivery.properties.headers.items() if name not in COUNTS}
    plain = replace(delivery, properties=replace(delivery.properties, headers=headers))
    return read_message(plain, now=datetime.now(UTC), max_attempts=3, new_id=lambda: "")
