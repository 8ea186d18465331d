"""A runner on a small loop, all that it reported, and messages that would like to kill it."""

import asyncio
import threading
from collections import Counter
from contextlib import contextmanager

import loops
import samples

from redrive.properties import Properties
from redrive.runners import Job

NEIGHBOURS = 100


class Bed:
    """Hands jobs to a runner and keeps what it reports. Its loop turns only while `wait` waits."""

    def __init__(self, runner, loop):
        self.runner = runner
        self.loop = loop
        self.ended = []
        self.failures = []

    def submit(self, *bodies, alone=False):
        jobs = [Job(samples.deliver(body=body), alone=alone) for body in bodies]
        self.runner.submit(jobs)
        return jobs

    def submit_message(self, properties=None, **facts):
        job = Job(samples.deliver(properties or Properties(message_id="m-1"), **facts))
        self.runner.submit([job])
        return job

    def wait(self, condition, within=30.0):
        self.loop.run_until(condition, within)

    def turn(self):
        """Let the loop do what is due, once."""
        turned = iter((False, True))
        self.loop.run_until(lambda: next(turned))

    def run(self, *bodies, alone=False):
        """Run messages to their end and say what came of each, in their order."""
        jobs = self.submit(*bodies, alone=alone)
        self.wait(lambda: {ended.job for ended in self.ended} >= {*jobs})
        return [self.result_of(job) for job in jobs]

    def result_of(self, job):
        results = [ended.result for ended in self.ended if ended.job is job]
        assert len(results) == 1, f"reported {len(results)} times"
        return results[0]

    def reports(self):
        """Say how often each job was reported."""
        return Counter(ended.job for ended in self.ended)


@contextmanager
def running(make):
    """Start the runner that `make` builds on a loop, and stop it at the end."""
    loop = loops.SmallLoop()
    bed = Bed(make(loop), loop)
    try:
        bed.runner.start(bed.ended.extend, bed.failures.append)
        yield bed
    finally:
        bed.runner.stop()
        loop.close()


def slot_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("redrive-")]


def hold(condition, within=20.0):
    """Wait, where there is no loop to turn."""
    loop = loops.SmallLoop()
    try:
        loop.run_until(condition, within)
    finally:
        loop.close()


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no words")


class Verbose(Exception):
    def __str__(self):
        return "x" * 50_000_000


class WithBadCause(Exception):
    @property
    def __cause__(self):
        raise ValueError("no cause")


class NotText(Exception):
    def __str__(self):
        return 7


class TextOfItsOwn(str):
    __slots__ = ()

    def __getitem__(self, key):
        raise ValueError("no part")

    def encode(self, *args, **kwargs):
        raise ValueError("no bytes")


class SpeaksOddly(Exception):
    def __str__(self):
        return TextOfItsOwn("odd")


def recurse():
    recurse()


def fill_memory():
    bytearray(1 << 60)


def group():
    raise BaseExceptionGroup("several", [SystemExit(1), Unspeakable(), KeyboardInterrupt()])


def chain():
    try:
        raising(Unspeakable())()
    except Unspeakable as error:
        raise Verbose from error


def ring():
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    raise one


def raising(error):
    def behave():
        raise error

    return behave


# What a handler can do to the process that it shares with others, short of ending it. All are failures.
KILLERS = {
    b"exits": raising(SystemExit(1)),
    b"interrupts": raising(KeyboardInterrupt()),
    b"is cancelled": raising(asyncio.CancelledError()),
    b"stops a generator": raising(GeneratorExit()),
    b"stops an iteration": raising(StopIteration()),
    b"recurses": recurse,
    b"wants memory": fill_memory,
    b"cannot speak": raising(Unspeakable()),
    b"speaks for long": raising(Verbose()),
    b"speaks no text": raising(NotText()),
    b"speaks oddly": raising(SpeaksOddly()),
    b"has a bad cause": raising(WithBadCause()),
    b"is a group": group,
    b"has causes": chain,
    b"is its own cause": ring,
}


def behave(body):
    """Do what the body says: harm, or nothing."""
    KILLERS.get(body, lambda: None)()


def with_neighbours(killer):
    """Put a killer amid its neighbours."""
    neighbours = [f"neighbour {number}".encode() for number in range(NEIGHBOURS)]
    return [*neighbours[: NEIGHBOURS // 2], killer, *neighbours[NEIGHBOURS // 2 :]]
