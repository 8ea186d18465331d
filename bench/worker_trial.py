"""One contender in one bed: messages published, a worker started, and waited for what it does with them.

Everybody is measured in the same way and from outside: when messages were handled stands in the ledger that the
handler itself writes; what was not acknowledged shows when the worker is gone.
"""

import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pika

from bench.errors import Abandoned
from bench.measure import Meter, percentile
from bench.publisher import Letter, Publisher
from bench.usage import Accounts, Usage
from bench.worker_bed import Bed
from bench.worker_contenders import Contender
from bench.worker_handler import LEDGER, SECONDS
from bench.worker_ledger import Ledger
from bench.worker_peers import Peer
from bench.worker_process import WorkerProcess, run_worker
from bench.worker_settings import Settings
from redrive_testbed.shell import wait_until

# A broker has been seen to hold a rung for three minutes; only after that is a message called lost.
PATIENCE = 200
WINDOW = 500  # unconfirmed messages of the publisher
USUAL_BODY = 1024
LOOK_EVERY = 0.01  # seconds
ACKED_WITHIN = 0.1  # seconds from the last call of a handler: what is not acknowledged by then is counted
QUIET_CORES = 0.1
QUIET_WITHIN = 10


@dataclass(frozen=True)
class Plan:
    """What one trial is about: the messages of which numbers fail once, how large they are, how long each takes."""

    settings: Settings
    messages: int
    failing: range = range(0)
    body_bytes: int = USUAL_BODY
    handler_seconds: float = 0


@dataclass
class Trial:
    """A bed, its ledger and its publisher; `dues` are the moments of publishing, by number."""

    bed: Bed
    contender: Contender | Peer
    plan: Plan
    ledger: Ledger
    publisher: Publisher
    folder: Path
    dues: dict[int, int] = field(default_factory=dict)
    beside: Meter = field(default_factory=lambda: Meter(()))  # of the server that messages are posted to

    def publish(self, numbers: range, *, per_second: float = 0) -> None:
        entrance = self.contender.entrance
        self.publisher.publish([Letter(number, entrance, 0) for number in numbers], per_second=per_second)

    @contextmanager
    def work(self, under: tuple[str, ...] = ()) -> Iterator[WorkerProcess]:
        """Run the worker until the block ends, `under` another module, if there is one."""
        folder = Path(tempfile.mkdtemp(prefix="worker-", dir=self.folder))
        with ExitStack() as end:
            port = end.enter_context(self._serve(folder)) if self.contender.serves else 0
            command, env = self._start(folder, under, port)
            yield end.enter_context(run_worker(command, log=folder / "log", env={**self._environment(), **env}))

    @contextmanager
    def _serve(self, folder: Path) -> Iterator[int]:
        """Run the server that messages are posted to, as it would stand beside the worker in its pod."""
        port = folder / "port"
        command = [sys.executable, "-m", "bench.worker_server", str(port)]
        with run_worker(command, log=folder / "server", env=self._environment()) as server:
            wait_until("the server does not listen", port.exists, within=20, every=0.05)
            self.beside = server.meter
            yield int(port.read_text())

    def _start(self, folder: Path, under: tuple[str, ...], port: int) -> tuple[Sequence[str], Mapping[str, str]]:
        contender, settings = self.contender, self.plan.settings
        if isinstance(contender, Peer):
            return contender.command(settings), contender.environment(self.bed.url, settings)
        config, secret = self.bed.write_files(folder, contender, settings, port=port)
        return contender.command(config, secret, retry_key=settings.retry_key, under=under), {}

    def await_first(self, worker: WorkerProcess, numbers: range, *, every: float = LOOK_EVERY) -> int:
        """Wait until some have been handled, be it that they failed; return how many."""
        count = self.ledger.failed if self.plan.failing else self.ledger.succeeded
        wait_for(worker, lambda: count(numbers), 1, every=every)
        return count(numbers)

    def consume(self, worker: WorkerProcess, numbers: range) -> tuple[Usage, int, int]:
        """Wait for all; return what was used since the first were seen, by how many others, and how many were lost."""
        accounts = Accounts(self.bed.meter, worker.meter, self.beside)
        seen, before = self.await_first(worker, numbers), accounts.read()
        self.wait_for_all(worker, numbers)
        used = accounts.read() - before
        return used, len(numbers) - seen, self.count_lost(worker, numbers)

    def wait_for_all(self, worker: WorkerProcess, numbers: range, *, every: float = LOOK_EVERY) -> None:
        """Wait until all have succeeded, or until nothing has come of the rest for a long time."""
        wait_for(worker, lambda: self.ledger.succeeded(numbers), len(numbers), every=every)

    def count_lost(self, worker: WorkerProcess, numbers: range) -> int:
        """Count what did not succeed; what is still in a queue is not lost, but then the worker does not work."""
        missing = len(numbers) - self.ledger.succeeded(numbers)
        if missing:
            worker.kill()
            queues = self.contender.queues
            left, parked = self.bed.count_left(queues), self.bed.count_parked(queues)
            if left or parked:
                raise Abandoned(f"{missing} messages did not succeed: {left} are in the queue still, {parked} parked")
        return missing

    def finish(self, worker: WorkerProcess, lost: int) -> None:
        """Let it acknowledge what is left to, and end it; who lost something was ended over that."""
        if not lost:
            time.sleep(ACKED_WITHIN)
            worker.stop(must_be_polite=self.contender.ours)

    def _environment(self) -> Mapping[str, str]:
        return {
            LEDGER: str(self.folder / "ledger"),
            SECONDS: str(self.plan.handler_seconds),
            "REDRIVE_METRICS_PORT": "0",  # the usual one may be somebody else's on this machine
        }


@contextmanager
def open_trial(bed: Bed, contender: Contender | Peer, plan: Plan) -> Iterator[Trial]:
    def write(number: int) -> tuple[bytes, pika.BasicProperties]:
        return contender.write(number, failures=int(number in plan.failing), size=plan.body_bytes)

    if isinstance(contender, Peer):
        bed.lay(contender, plan.settings)

    dues: dict[int, int] = {}
    with ExitStack() as end:
        folder = Path(end.enter_context(tempfile.TemporaryDirectory(prefix="redrive-bench-")))
        publisher = end.enter_context(Publisher(bed.url, window=WINDOW, dues=dues, write=write))
        ledger = Ledger.create(folder / "ledger", plan.messages)
        yield Trial(bed, contender, plan, ledger, publisher, folder, dues)


def wait_for(
    worker: WorkerProcess,
    count: Callable[[], int],
    wanted: int,
    *,
    until: float = math.inf,
    every: float = LOOK_EVERY,
) -> None:
    """Wait until so many are counted, or until for a long time there was no other, and no longer than `until`."""
    best, deadline = -1, time.monotonic() + PATIENCE
    while (counted := count()) < wanted and time.monotonic() < until:
        worker.must_live()
        if counted > best:
            best, deadline = counted, time.monotonic() + PATIENCE
        elif time.monotonic() > deadline:
            return
        time.sleep(every)


def await_quiet(meter: Meter, window: float = 0.25) -> None:
    """Let the broker finish with what was published, as long as it does anything, within reason."""
    deadline = time.monotonic() + QUIET_WITHIN
    used, busy = meter.cpu_seconds(), 1.0
    while busy > QUIET_CORES and time.monotonic() < deadline:
        time.sleep(window)
        before, used = used, meter.cpu_seconds()
        busy = (used - before) / window


def name_percentiles(name: str, milliseconds: list[float]) -> dict[str, float]:
    ranks = (("p50", 50), ("p99", 99), ("max", 100))
    return {f"{name}_{rank}": percentile(milliseconds, percent) for rank, percent in ranks}
