"""A worker with nothing to do: what it costs to have one that waits, by itself and by what the broker does for it.

It starts on an empty queue. When it takes from it and has come to rest, it is looked at over a window. The broker alone
is looked at for half of such a window before and for half of one afterwards, because it does less as it gets older.
What a worker makes it do is a few milliseconds in a window, so both are read to the nanosecond, not in ticks of ten.
"""

import time
from dataclasses import dataclass

from bench.measure import FineMeter
from bench.usage import Accounts, Usage
from bench.worker_bed import Bed
from bench.worker_contenders import Contender
from bench.worker_figures import Idle
from bench.worker_peers import Peer
from bench.worker_process import WorkerProcess
from bench.worker_settings import Settings
from bench.worker_trial import Plan, Trial, await_quiet, open_trial
from redrive_testbed.shell import wait_until

CONSUMES_WITHIN = 60  # seconds
QUIET_WINDOW = 1.0  # seconds: Celery's children come up one after the other, with pauses


@dataclass(frozen=True)
class Load:
    """How long everybody is looked at, with which concurrency."""

    seconds: float
    concurrency: int


def measure_idle(bed: Bed, contender: Contender | Peer, load: Load, *, round_: int) -> Idle:
    with open_trial(bed, contender, Plan(Settings(load.concurrency), messages=1)) as trial:
        before = _watch_broker(bed, load.seconds / 2)
        with trial.work() as worker:
            _await_rest(trial, worker)
            used = _watch(Accounts(bed.fine_meter, FineMeter((worker.pid,)), trial.beside), load.seconds)
            worker.must_live()
            memory, shares = worker.meter.memory_mib(), worker.meter.shares() if contender.ours else []
            worker.kill()
        after = _watch_broker(bed, load.seconds / 2)
    alone = (before.broker + after.broker) / (before.seconds + after.seconds)
    return Idle(
        version=bed.broker.version,
        contender=contender.name,
        round=round_,
        concurrency=load.concurrency,
        seconds=used.seconds,
        worker_cpu=_each_minute(used.receiver / used.seconds),
        broker_cpu=_each_minute(used.broker / used.seconds - alone),
        broker_alone=_each_minute(alone),
        memory=memory,
        others_busy=max(looked.others_busy for looked in (before, used, after)),
        shares=shares,
    )


def _await_rest(trial: Trial, worker: WorkerProcess) -> None:
    """Wait until it takes from its queue, and then until neither it nor the broker is at work over that."""

    def consumes() -> bool:
        worker.must_live()
        return trial.bed.look(trial.contender.queues.work).consumers > 0

    wait_until("nobody takes from the queue", consumes, within=CONSUMES_WITHIN, every=0.1)
    await_quiet(worker.meter, QUIET_WINDOW)
    await_quiet(trial.bed.meter)


def _watch_broker(bed: Bed, seconds: float) -> Usage:
    await_quiet(bed.meter)
    return _watch(Accounts(bed.fine_meter), seconds)


def _watch(accounts: Accounts, seconds: float) -> Usage:
    before = accounts.read()
    time.sleep(seconds)
    return accounts.read() - before


def _each_minute(cores: float) -> float:
    """Say how many milliseconds of CPU that is in a minute."""
    return 60_000 * cores
