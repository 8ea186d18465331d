"""A worker that is killed while messages of its own sleep, and the one that comes after it: what became of them.

Everything fails once. When all sleep, the worker and its children are killed, and another is started at once. A message
that succeeds once, on its second attempt, has not noticed. One that the first worker held is handed to the second; it
may be run twice, be charged with an attempt that it never had, or be gone.
"""

import time
from dataclasses import dataclass
from datetime import timedelta

from bench.usage import Accounts
from bench.worker_bed import Bed
from bench.worker_contenders import Contender
from bench.worker_figures import Crash
from bench.worker_peers import Peer
from bench.worker_settings import Settings
from bench.worker_sleepers import count_asleep, fall_asleep
from bench.worker_trial import Plan, Trial, open_trial

SETTLED = 0.5  # seconds from the last failed call until its message sleeps, too


@dataclass(frozen=True)
class Load:
    """What is asked of everybody."""

    sleepers: int
    delay: timedelta
    concurrency: int

    @property
    def everything(self) -> range:
        return range(self.sleepers)


def measure_crash(bed: Bed, contender: Contender | Peer, load: Load, *, round_: int) -> Crash:
    numbers = load.everything
    with open_trial(bed, contender, plan_crash(load)) as trial:
        asleep = _kill_one(trial, load)
        with trial.work() as worker:
            accounts = Accounts(bed.meter, worker.meter, trial.beside)
            began, usage = time.monotonic(), accounts.read()
            trial.wait_for_all(worker, numbers)
            home_seconds, used = time.monotonic() - began, accounts.read() - usage
            lost = trial.count_lost(worker, numbers)
            trial.finish(worker, lost)
        return Crash(
            version=bed.broker.version,
            contender=contender.name,
            round=round_,
            sleepers=load.sleepers,
            asleep=asleep,
            home_seconds=home_seconds,
            others_busy=used.others_busy,
            overspent=trial.ledger.overspent(numbers, failures=1),
            lost=lost,
            duplicated=trial.ledger.duplicated(numbers, failures=1) + bed.count_left(contender.queues),
        )


def plan_crash(load: Load) -> Plan:
    return Plan(Settings(load.concurrency, load.delay), load.sleepers, failing=load.everything)


def _kill_one(trial: Trial, load: Load) -> int:
    """Let a worker fail with all of them, end it without a word, and say how many slept."""
    with trial.work() as worker:
        trial.publish(load.everything)
        fall_asleep(trial, worker, load.everything, load.delay)
        time.sleep(SETTLED)
        asleep = count_asleep(trial, load.everything)
        worker.kill()
    return asleep
