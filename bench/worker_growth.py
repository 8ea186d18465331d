"""Does a message cost the same whether there are a thousand or a million of them, and at any concurrency?

The success path, once more, for the CPU alone. A thousand messages are over in a few hundredths of a second, so they
are repeated with a worker of their own each time, and CPU is read to the nanosecond. Where it is flat, nothing in the
worker grows with what it has handled, and nothing in it is searched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from bench.measure import FineMeter
from bench.usage import Accounts, Usage
from bench.worker_bed import Bed
from bench.worker_contenders import Contender
from bench.worker_figures import Growth
from bench.worker_peers import Peer
from bench.worker_settings import Settings
from bench.worker_success import per_message
from bench.worker_trial import LOOK_EVERY as USUALLY_EVERY
from bench.worker_trial import Plan, await_quiet, open_trial, wait_for

LOOK_EVERY = 0.001  # seconds
ENOUGH = 20_000  # messages in all, for a figure that can be believed
MOST_REPEATS = 10

# So many times the usual messages where the concurrency is varied. To fork 64 children takes 0.2 s of CPU, and goes on
# while the first messages are handled: it is to be lost among the others, for it is not what a message costs.
TIMES_FOR_CONCURRENCY = 5


@dataclass(frozen=True)
class Load:
    """How many messages, handled by a worker with which concurrency, and how often at most that is repeated."""

    messages: int
    concurrency: int
    most_repeats: int = MOST_REPEATS

    @property
    def warm_up(self) -> int:
        """Leave out the first: what each child does once, at its first message, is not what a message costs."""
        return max(1, self.messages // 10)

    @property
    def repeats(self) -> int:
        return max(1, min(self.most_repeats, ENOUGH // self.messages))


@dataclass(frozen=True)
class Once:
    """What was used after the warm-up, for how many messages, and how many were lost."""

    used: Usage
    counted: int
    lost: int


def plan_growth(*, counts: Sequence[int], concurrencies: Sequence[int], usual: Load) -> list[Load]:
    """Vary one of the two at a time; what both lists have is measured once."""
    by_count = [replace(usual, messages=count) for count in counts]
    many = replace(usual, messages=TIMES_FOR_CONCURRENCY * usual.messages)
    by_concurrency = [replace(many, concurrency=concurrency) for concurrency in concurrencies]
    return list(dict.fromkeys([*by_count, *by_concurrency]))


def measure_growth(bed: Bed, contender: Contender | Peer, load: Load, *, round_: int) -> Growth:
    found = [_measure_once(bed, contender, load) for _ in range(load.repeats)]
    return sum_up(found, load, version=bed.broker.version, contender=contender.name, round_=round_)


def sum_up(found: Sequence[Once], load: Load, *, version: str, contender: str, round_: int) -> Growth:
    """Take all repeats as one window: of one of 40 ms, read in ticks of 10, nothing is known."""
    used = reduce(add, (once.used for once in found))
    counted = sum(once.counted for once in found)
    return Growth(
        version=version,
        contender=contender,
        round=round_,
        messages=load.messages,
        concurrency=load.concurrency,
        repeats=load.repeats,
        worker_cpu=per_message(used.receiver, counted),
        broker_cpu=per_message(used.broker, counted),
        others_busy=used.others_busy,
        lost=sum(once.lost for once in found),
    )


def _measure_once(bed: Bed, contender: Contender | Peer, load: Load) -> Once:
    numbers = range(load.messages)
    bed.empty()  # of what the worker before was killed with: it would be handled, and counted as nobody's
    with open_trial(bed, contender, Plan(Settings(load.concurrency), load.messages)) as trial:
        trial.publish(numbers)
        await_quiet(bed.meter)
        with trial.work() as worker:
            accounts = Accounts(bed.meter, FineMeter((worker.pid,)))
            wait_for(worker, lambda: trial.ledger.succeeded(numbers), load.warm_up, every=LOOK_EVERY)
            before, seen = accounts.read(), trial.ledger.succeeded(numbers)  # at once: a reading takes its time
            trial.wait_for_all(worker, numbers, every=LOOK_EVERY if load.repeats > 1 else USUALLY_EVERY)
            used = accounts.read() - before
            lost = trial.count_lost(worker, numbers)
            worker.kill()
        bed.count_left(contender.queues)
        return Once(used, load.messages - seen, lost)
