"""Every message fails once and succeeds on its second delivery: retries a second, and how late each comes back.

Two measurements that must not be mixed. A full queue tells how many messages a second are brought to their end, from
the first call to the last success less the delay, which nobody could spare; there messages wait behind others most of
the time. A stream at an even and slow pace tells the lateness: from the call that failed to the one that succeeded,
less the delay.
"""

import math
from dataclasses import dataclass
from datetime import timedelta

from bench.measure import percentile, watch_peak
from bench.worker_bed import Bed
from bench.worker_contenders import Contender
from bench.worker_figures import Retry
from bench.worker_peers import Peer
from bench.worker_settings import Settings
from bench.worker_success import per_message
from bench.worker_trial import Plan, Trial, await_quiet, name_percentiles, open_trial

DELAY = timedelta(seconds=1)
CALLS = 2  # of each message: one fails, one succeeds


@dataclass(frozen=True)
class Load:
    """What is asked of everybody: `messages` at once, then a stream."""

    messages: int
    concurrency: int
    pace: float  # messages a second
    paced_seconds: float

    @property
    def burst(self) -> range:
        return range(self.messages)

    @property
    def stream(self) -> range:
        return range(self.messages, self.messages + int(self.pace * self.paced_seconds))


def measure_retry(bed: Bed, contender: Contender | Peer, load: Load, *, round_: int) -> Retry:
    everything = range(load.stream.stop)
    with open_trial(bed, contender, plan_retry(load)) as trial:
        trial.publish(load.burst)
        await_quiet(bed.meter)
        with trial.work() as worker, watch_peak(worker.meter) as peak:
            used, counted, lost = trial.consume(worker, load.burst)
            if not lost:  # who lost some was ended over it, and has no lateness
                trial.publish(load.stream, per_second=load.pace)
                trial.wait_for_all(worker, load.stream)
                lost = trial.count_lost(worker, load.stream)
            trial.finish(worker, lost)
        late = _lateness(trial, load.stream)
        return Retry(
            **name_percentiles("late", late),
            version=bed.broker.version,
            contender=contender.name,
            round=round_,
            concurrency=load.concurrency,
            messages=load.messages,
            per_second=_rate(trial, load.burst),
            worker_cpu=per_message(used.receiver, counted),
            broker_cpu=per_message(used.broker, counted),
            others_busy=used.others_busy,
            peak_memory=peak.mebibytes,
            earliest=percentile(late + _lateness(trial, load.burst), 0),
            offered_per_second=load.pace,
            redelivered=bed.count_redelivered(contender.queues, 2 * len(everything)),
            lost=lost,
            duplicated=trial.ledger.duplicated(everything, failures=1) + bed.count_left(contender.queues),
        )


def pace_of(contender: Contender | Peer, usual: float) -> float:
    """Say how many messages a second it is offered: where it cannot keep up, they wait behind each other."""
    return min(usual, contender.most_calls / CALLS)


def plan_retry(load: Load) -> Plan:
    everything = range(load.stream.stop)
    return Plan(Settings(load.concurrency, DELAY), len(everything), failing=everything)


def _rate(trial: Trial, numbers: range) -> float:
    moments = list(trial.ledger.moments(numbers))
    taken = (max(moments) - min(moments)) / 1e9 - DELAY.total_seconds() if moments else 0.0
    return trial.ledger.succeeded(numbers) / taken if taken > 0 else math.nan


def _lateness(trial: Trial, numbers: range) -> list[float]:
    """Say of each that came back how many milliseconds after its time it did."""
    ledger, delay = trial.ledger, DELAY.total_seconds() * 1e9
    pairs = ((ledger.failed_at(number), ledger.succeeded_at(number)) for number in numbers)
    return [(succeeded - failed - delay) / 1e6 for failed, succeeded in pairs if failed and succeeded]
