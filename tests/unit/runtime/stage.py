"""A worker's runtime on a broker in memory, with a runner that begins and ends what the test says."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from samples import worker_config

from redrive.outcome import Failed, Succeeded
from redrive.properties import Properties
from redrive.runners import Ended
from redrive.runtime.core import Runtime
from redrive.runtime.ports import Refusal
from redrive.story import read_story
from redrive.testing.memory import MemoryConsumer, MemoryPublisher, Stored, Vhost
from redrive.testing.virtual_loop import VirtualLoop

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
FAILED = Failed("no answer", error_types=("shop.Late",))
FULL = Refusal("the queue did not take it", kind="nacked")


@dataclass
class ScriptedRunner:
    """Begins up to `concurrency` jobs by itself; a test ends them."""

    concurrency: int
    inbox: list = field(default_factory=list)
    running: list = field(default_factory=list)
    began: list = field(default_factory=list)
    is_stopped: bool = False

    def start(self, report, fail):
        self.report, self.fail = report, fail

    def submit(self, jobs):
        self.inbox.extend(jobs)
        self._begin()

    def withdraw(self):
        withdrawn, self.inbox = self.inbox, []
        return withdrawn

    def stop(self):
        self.is_stopped = True

    def end(self, result, *ids, seconds=0.01):
        """End what runs, all of it or these, together."""
        ending = [job for job in self.running if not ids or job.message.id in ids]
        self.running = [job for job in self.running if job not in ending]
        self._begin()
        self.report([Ended(job, result, seconds) for job in ending])

    def running_ids(self):
        return [job.message.id for job in self.running]

    def _begin(self):
        while self.inbox and len(self.running) < self.concurrency:
            job = self.inbox.pop(0)
            self.running.append(job)
            self.began.append((job.message.id, job.message.attempt, job.alone, tuple(self.running_ids())))


@dataclass
class Notes:
    """Remembers what the runtime said."""

    said: list = field(default_factory=list)

    def __getattr__(self, name):
        return lambda *facts: self.said.append((name, *facts))

    def settled(self, held, disposal):
        self.said.append(("settled", held.message.id, type(disposal).__name__))

    def of(self, name):
        return [facts for kind, *facts in self.said if kind == name]


class Stage:
    """Everything around one runtime; another one may follow it on the same broker."""

    def __init__(self, settings=None):
        self.config = settings or worker_config()
        self.loop = VirtualLoop()
        self.vhost = Vhost(self.loop, "redrive.retry", "redrive.dead", "shop/orders")
        self.start()

    def start(self):
        """Start a worker, as after the death of the one before."""
        self.notes = Notes()
        self.runner = ScriptedRunner(self.config.concurrency)
        self.consumer = MemoryConsumer(self.vhost, self.loop)
        self.publisher = MemoryPublisher(self.vhost, self.loop)
        self.exit_codes = []
        self.runtime = Runtime(
            self.config,
            loop=self.loop,
            consumer=self.consumer,
            publisher=self.publisher,
            runner=self.runner,
            witness=self.notes,
            random=lambda: 1.0,
            new_id=lambda: "made-up",
            pod="pod-1",
            finished=self.exit_codes.append,
            clock=lambda: BEGAN + timedelta(seconds=self.loop.now()),
        )
        self.runtime.start()
        self.loop.settle()

    def kill(self):
        """Have the worker die: the broker takes back what it had, and nobody is told."""
        self.consumer.stop()
        self.publisher.send = lambda *_: None
        self.runner.submit = lambda *_: None

    def refuse(self, exchange):
        """Have the broker refuse what is sent to this exchange, and nothing else."""

        def send(to, *rest):
            if to == exchange:
                self.loop.soon(lambda: rest[-1](FULL))
            else:
                MemoryPublisher.send(self.publisher, to, *rest)

        self.publisher.send = send

    def silence(self, *exchanges):
        """Have the broker say nothing to what is sent to these exchanges, as a queue without quorum has it do."""

        def send(to, *rest):
            if to not in exchanges:
                MemoryPublisher.send(self.publisher, to, *rest)

        self.publisher.send = send

    def accept(self):
        """Have the broker take everything again."""
        self.vhost.refusing = None
        self.publisher.__dict__.pop("send", None)

    def publish(self, *ids, redelivered=False, **headers):
        for name in ids:
            self.vhost.arrive(make_stored(name, redelivered=redelivered, **headers))
        self.loop.settle()

    def meet_first(self):
        """Have the worker see a first message, after which it takes several at a time."""
        self.publish("first")
        self.succeed("first")

    def end(self, result, *ids):
        self.runner.end(result, *ids)
        self.loop.settle()

    def succeed(self, *ids):
        self.end(Succeeded(), *ids)

    def fail(self, *ids):
        self.end(FAILED, *ids)

    def break_connection(self):
        self.consumer.break_connection()
        self.loop.settle()

    def cancel(self, *, takes_back):
        self.consumer.cancel(takes_back=takes_back)
        self.loop.settle()

    def delete_queue(self):
        """Have the broker end the consumer with its queue: what was delivered is nowhere but with the worker."""
        session = self.consumer.session
        self.cancel(takes_back=False)
        return session

    def lose(self, session):
        """Have a channel go by which nothing came any more."""
        session.is_open = False
        self.runtime.lost(session, "the connection broke")
        self.loop.settle()

    def connect(self):
        self.consumer.connect()
        self.loop.settle()

    def drain(self):
        self.runtime.drain()
        self.loop.settle()

    @property
    def unacked(self):
        session = self.consumer.session
        self.loop.advance(0.02)
        return [stored.properties.message_id for stored in session.unacked.values()] if session else []

    @property
    def waiting(self):
        return [stored.properties.message_id for stored in self.vhost.ready]

    @property
    def dead(self):
        return [(stored.properties.message_id, stored.properties.headers) for stored in self.vhost.dead]

    def stories(self):
        return {stored.properties.message_id: read_story(stored.properties.headers) for stored in self.vhost.ready}


def make_stored(name, *, redelivered=False, **headers):
    """Make a message as it lies in the work queue."""
    named = {header.replace("_", "-"): value for header, value in headers.items()}
    return Stored("", "orders", name.encode(), Properties(message_id=name, headers=named), redelivered)
