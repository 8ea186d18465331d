"""A ProcessRunner on a small loop, with all that it reported; and the proof that it leaves nothing behind."""

import os
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pika.frame
import samples
from loops import SmallLoop

from redrive.amqp.wire import to_pika
from redrive.memory import Memory
from redrive.message import Message
from redrive.outcome import Result, Succeeded
from redrive.runners import Ended, Job
from redrive.runners.process import RUNS, ProcessRunner

LONG = timedelta(seconds=60)


def make_job(body: str | bytes, name: str = "", *, alone: bool = False) -> Job:
    message = samples.deliver(body=body if isinstance(body, bytes) else body.encode())
    return wire_job(replace(message, id=name or uuid.uuid4().hex), alone=alone)


def wire_job(message: Message, *, alone: bool = False) -> Job:
    """Give a job of a message as if it had come over the wire."""
    header = pika.frame.Header(1, len(message.body), to_pika(message.properties)).marshal()
    return Job(message, alone=alone, header=header[7:-1])


class Bed:
    """A runner and what came of it. `ended` has each report's jobs, in the order in which they were told."""

    def __init__(self, loop: SmallLoop, runner: ProcessRunner) -> None:
        self.loop = loop
        self.runner = runner
        self.ended: list[Ended] = []
        self.failures: list[str] = []

    def start(self) -> "Bed":
        self.runner.start(self.ended.extend, self.failures.append)
        return self

    def submit(self, *bodies: str | bytes | Job, alone: bool = False) -> list[Job]:
        jobs = [body if isinstance(body, Job) else make_job(body, alone=alone) for body in bodies]
        self.runner.submit(jobs)
        return jobs

    def run(self, *bodies: str | bytes | Job, alone: bool = False, within: float = 30) -> list[Result]:
        """Submit and wait; the results, in the order of what was submitted."""
        jobs = self.submit(*bodies, alone=alone)
        self.wait_for(*jobs, within=within)
        return [self.result_of(job) for job in jobs]

    def wait_for(self, *jobs: Job, within: float = 30) -> None:
        wanted = set(jobs)
        self.loop.run_until(lambda: wanted <= {one.job for one in self.ended}, within)

    def result_of(self, job: Job) -> Result:
        (one,) = [one for one in self.ended if one.job is job]
        return one.result

    def assert_each_succeeded_once(self, jobs: list[Job]) -> None:
        reports = Counter(one.job for one in self.ended)
        assert {reports[job] for job in jobs} == {1}
        assert {self.result_of(job) for job in jobs} == {Succeeded()}

    def pids(self) -> set[int]:
        """The children that are there now."""
        return {seat.pid for seat in self.runner._household.seats.values() if seat.pid}

    @property
    def zygote(self) -> int:
        zygote = self.runner._household._nursery._zygote
        assert zygote
        return zygote.pid


@contextmanager
def lay_bed(
    handler: str = "process_handlers:handle",
    *,
    concurrency: int = 4,
    timeout: timedelta = LONG,
    memory: Memory | None = None,
    runs: int = RUNS,
) -> Iterator[Bed]:
    """Start a runner, and see to it that nothing is left of it in the end: no process, no descriptor, no timer."""
    before = descriptors(), children()
    loop = SmallLoop()
    runner = ProcessRunner(handler, concurrency=concurrency, timeout=timeout, loop=loop, memory=memory, runs=runs)
    mark = uuid.uuid4().hex
    try:
        with mock.patch.dict(os.environ, REDRIVE_TEST=mark):
            yield Bed(loop, runner).start()
    finally:
        runner.stop()
        watched = loop.watched()
        loop.close()
    assert not watched
    assert processes_of(mark) == set()
    assert (descriptors(), children()) == before


def descriptors() -> dict[str, str]:
    found = {}
    for descriptor in list(Path("/proc/self/fd").iterdir()):
        with suppress(FileNotFoundError):  # the one by which they are listed
            found[descriptor.name] = str(descriptor.readlink())
    return found


def children() -> set[int]:
    """The processes that this one has to bury, living or dead."""
    return {int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def processes_of(mark: str) -> set[int]:
    """The living processes that were started, by whomever, with the mark in their environment."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if f"REDRIVE_TEST={mark}".encode() in environment and int(folder.name) != os.getpid():
            found.add(int(folder.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
