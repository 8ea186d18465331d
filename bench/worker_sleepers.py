"""Messages that failed and sleep: what they cost the worker, and whether a fresh message is handled at once meanwhile.

Memory before is that of a worker that has already retried: what it needs once is not what sleepers cost. When all have
fallen asleep, memory and the fresh messages are looked at. A worker that does not get so far before the first wakes is
looked at shortly before that, and the number of those that slept says so. In the end all must come home.
"""

import time
from dataclasses import dataclass
from datetime import timedelta

from bench.errors import Abandoned
from bench.measure import watch_peak
from bench.usage import Accounts
from bench.worker_bed import Bed
from bench.worker_contenders import Contender
from bench.worker_figures import Sleepers
from bench.worker_peers import Peer
from bench.worker_process import WorkerProcess
from bench.worker_settings import Settings
from bench.worker_trial import Plan, Trial, name_percentiles, open_trial, wait_for

LOOK = 0.25  # of the time that they sleep, at least
MARGIN = 0.5  # seconds before the first wakes


@dataclass(frozen=True)
class Load:
    """What is asked of everybody."""

    sleepers: int
    delay: timedelta
    concurrency: int
    pace: float  # fresh messages a second
    warm_up: int

    @property
    def warming(self) -> range:
        return range(self.warm_up)

    @property
    def sleeping(self) -> range:
        return range(self.warm_up, self.warm_up + self.sleepers)

    @property
    def fresh(self) -> range:
        """As many as could be published while the others sleep, and more than there will be time for."""
        start = self.sleeping.stop
        return range(start, start + int(self.pace * self.delay.total_seconds()))


def measure_sleepers(bed: Bed, contender: Contender | Peer, load: Load, *, round_: int) -> Sleepers:
    plan = Plan(
        Settings(load.concurrency, load.delay), load.fresh.stop, failing=range(load.warming.start, load.sleeping.stop)
    )
    with open_trial(bed, contender, plan) as trial, trial.work() as worker:
        trial.publish(load.warming)
        trial.wait_for_all(worker, load.warming)
        before, own_before = worker.meter.memory_mib(), worker.own_meter.memory_mib()
        trial.publish(load.sleeping)
        fall_asleep(trial, worker, load.sleeping, load.delay)
        accounts = Accounts(bed.meter, worker.meter, trial.beside)
        usage = accounts.read()
        with watch_peak(worker.meter) as peak, watch_peak(worker.own_meter) as own_peak:
            fresh, unacked, asleep = _look(trial, load)
        used = accounts.read() - usage
        everything = range(fresh.stop)
        trial.wait_for_all(worker, everything)
        lost = trial.count_lost(worker, everything)
        trial.finish(worker, lost)
        return Sleepers(
            **name_percentiles("fresh", _latencies(trial, fresh)),
            version=bed.broker.version,
            contender=contender.name,
            round=round_,
            sleepers=load.sleepers,
            asleep=asleep,
            memory_before=before,
            memory_asleep=peak.mebibytes,
            own_before=own_before,
            own_asleep=own_peak.mebibytes,
            unacked=unacked,
            fresh_per_second=load.pace,
            others_busy=used.others_busy,
            lost=lost,
            duplicated=_duplicated(trial, load, fresh) + bed.count_left(contender.queues),
        )


def fall_asleep(trial: Trial, worker: WorkerProcess, numbers: range, delay: timedelta) -> None:
    """Wait until all have failed, or until it is time to look at those that have, because the first wakes soon."""
    wait_for(worker, lambda: trial.ledger.failed(numbers), 1)
    looked_at = _first_failed(trial, numbers) + delay.total_seconds() * (1 - LOOK) - MARGIN
    wait_for(worker, lambda: trial.ledger.failed(numbers), len(numbers), until=looked_at)


def _first_failed(trial: Trial, numbers: range) -> float:
    moments = [at for number in numbers if (at := trial.ledger.failed_at(number))]
    if not moments:
        raise Abandoned("no message failed that should have")
    return min(moments) / 1e9


def count_asleep(trial: Trial, numbers: range) -> int:
    return trial.ledger.failed(numbers) - trial.ledger.succeeded(numbers)


def _look(trial: Trial, load: Load) -> tuple[range, int, int]:
    """Publish fresh messages while all sleep; return them, what was held unacknowledged, and how many slept.

    Counts of the broker are up to five seconds old, so only the later ones count; and a fresh message may be in flight,
    so the least of these is what is held.
    """
    wakes = _first_failed(trial, load.sleeping) + load.delay.total_seconds()
    left = wakes - MARGIN - time.monotonic()
    if left * load.pace < 1:
        raise Abandoned(f"the first of {load.sleepers:,} messages woke before anything could be looked at")
    fresh = load.fresh[: int(load.pace * left)]
    unacked, asleep = [], []
    for second in _by_second(fresh, load.pace):
        trial.publish(second, per_second=load.pace)
        unacked.append(trial.bed.look_unacked(trial.contender.queues))
        asleep.append(count_asleep(trial, load.sleeping))
    return fresh, min(unacked[len(unacked) // 2 :]), min(asleep)


def _by_second(numbers: range, pace: float) -> list[range]:
    step = max(1, int(pace))
    return [numbers[start : start + step] for start in range(0, len(numbers), step)]


def _latencies(trial: Trial, numbers: range) -> list[float]:
    came = ((number, trial.ledger.succeeded_at(number)) for number in numbers)
    return [(at - trial.dues[number]) / 1e6 for number, at in came if at]


def _duplicated(trial: Trial, load: Load, fresh: range) -> int:
    ledger = trial.ledger
    return (
        ledger.duplicated(load.warming, failures=1)
        + ledger.duplicated(load.sleeping, failures=1)
        + ledger.duplicated(fresh, failures=0)
    )
