"""Every message succeeds: how many a second a worker takes from a full queue, and what each costs.

The rate is that of the calls of the handler, from the first to the last, after all messages were published. A worker
that acknowledges in batches is a moment behind with that: what it has not acknowledged shortly after the last call
shows when it is killed then, and goes back to the queue.
"""

import math
import time
from dataclasses import dataclass

from bench.measure import watch_peak
from bench.worker_bed import Bed
from bench.worker_contenders import Contender
from bench.worker_figures import Success
from bench.worker_peers import Peer
from bench.worker_settings import Settings
from bench.worker_trial import ACKED_WITHIN, USUAL_BODY, Plan, Trial, await_quiet, open_trial


@dataclass(frozen=True)
class Load:
    """What is asked of everybody."""

    messages: int
    concurrency: int
    body_bytes: int = USUAL_BODY
    handler_ms: float = 0


def measure_success(bed: Bed, contender: Contender | Peer, load: Load, *, round_: int) -> Success:
    numbers = range(load.messages)
    with open_trial(bed, contender, plan_success(load)) as trial:
        trial.publish(numbers)
        await_quiet(bed.meter)
        with trial.work() as worker, watch_peak(worker.meter) as peak:
            used, counted, lost = trial.consume(worker, numbers)
            time.sleep(ACKED_WITHIN)
            worker.kill()
        return Success(
            version=bed.broker.version,
            contender=contender.name,
            round=round_,
            concurrency=load.concurrency,
            handler_ms=load.handler_ms,
            body_bytes=load.body_bytes,
            messages=load.messages,
            per_second=rate(trial, numbers),
            worker_cpu=per_message(used.receiver, counted),
            broker_cpu=per_message(used.broker, counted),
            worker_busy=used.receiver / used.seconds,
            broker_busy=used.broker / used.seconds,
            others_busy=used.others_busy,
            peak_memory=peak.mebibytes,
            held=bed.count_left(contender.queues),
            redelivered=bed.count_redelivered(contender.queues, load.messages),
            lost=lost,
            duplicated=trial.ledger.duplicated(numbers, failures=0),
        )


def plan_success(load: Load) -> Plan:
    settings = Settings(load.concurrency)
    return Plan(settings, load.messages, body_bytes=load.body_bytes, handler_seconds=load.handler_ms / 1000)


def rate(trial: Trial, numbers: range) -> float:
    """Say how many a second were handled, from the first of them to the last."""
    moments = list(trial.ledger.moments(numbers))
    taken = (max(moments) - min(moments)) / 1e9 if moments else 0.0
    return (len(moments) - 1) / taken if taken else math.nan


def per_message(cpu_seconds: float, messages: int) -> float:
    """Divide, in microseconds; a run so short that it was over at the first look has no figure."""
    return 1e6 * cpu_seconds / messages if messages else math.nan
