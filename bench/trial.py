"""One contender on one broker: more and more messages asleep, and what a retry costs and how late it comes meanwhile.

Sleepers are laid with a delay that outlasts all measurements, so they do nothing then but lie there. Over them, at
each number of sleepers and for each workload, go two measurements that must not be mixed:

- a burst, as fast as confirms allow, tells publishes a second and the broker's CPU for a message, publish to delivery;
- a stream at an even pace, slower than the slowest contender can carry, tells the lateness, and the CPU for a message
  when few come at once. Brokers batch: messages that come due together are cheap, and random delays never do.

At the end the sleepers come home all at once. Every message of every part is counted: lost, duplicated.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from bench.contenders import WORK, WORK_QUEUE, Contender, milliseconds
from bench.declare import declare
from bench.figures import Figures, Homecoming
from bench.measure import Meter, Peak, percentile, watch_peak
from bench.publisher import Letter, Publisher
from bench.receiver import Ledger, receiving
from bench.usage import Accounts, Usage
from bench.workloads import Scale, Workload
from redrive.ladder import UNIT
from redrive_testbed.rabbitmq import Broker

# A broker has been seen to hold a rung for three minutes; only after that is a message called lost.
PATIENCE = 200
WARM_UP = 500


@dataclass(frozen=True)
class Outcome:
    """What a trial gave; `skipped` are sentences about what it did not."""

    figures: list[Figures]
    homecomings: list[Homecoming]
    skipped: list[str]


@dataclass(frozen=True)
class _Laid:
    """All sleepers so far, and what laying them took."""

    count: int = 0
    last: range = range(0)  # those of the last step
    seconds: float = 0
    broker_cpu: float = 0


def run_trial(broker: Broker, url: str, contender: Contender, scale: Scale, *, round_: int) -> Outcome:
    declare(url, (WORK_QUEUE, *contender.plan(workload.middle for workload in scale.workloads)))
    meter = Meter(tuple(broker.pids()))
    dues: dict[int, int] = {}
    ledger = Ledger(scale.messages + WARM_UP)
    with (
        receiving(url, WORK, ledger) as receiver,
        watch_peak(meter) as peak,
        Publisher(url, window=scale.window, dues=dues) as publisher,
    ):
        trial = Trial(contender, scale, publisher, ledger, dues, Accounts(meter, receiver), peak, round_)
        return trial.run(broker.version, url)


class Trial:
    """The numbers given out so far, and the measurements over them."""

    def __init__(
        self,
        contender: Contender,
        scale: Scale,
        publisher: Publisher,
        ledger: Ledger,
        dues: dict[int, int],
        accounts: Accounts,
        peak: Peak,
        round_: int,
    ) -> None:
        self._contender = contender
        self._scale = scale
        self._publisher = publisher
        self._ledger = ledger
        self._dues = dues
        self._accounts = accounts
        self._peak = peak
        self._round = round_
        self._random = Random(round_)  # noqa: S311 - every contender gets the same delays
        self._next_number = max(scale.sleepers)  # those below are the sleepers'
        self._laid = _Laid()

    def run(self, version: str, url: str) -> Outcome:
        steps, hold, skipped = choose_steps(self._scale, self._warm_up())
        declare(url, self._contender.plan((hold,)))
        measured = [row for sleepers in steps for row in self._step(sleepers, hold, version)]
        homecomings = [self._come_home(hold, version)] if steps else []
        # Only now: a duplicate may come long after its first.
        figures = [replace(row, duplicated=self._ledger.duplicated(numbers)) for row, numbers in measured]
        return Outcome(figures, homecomings, [f"{version}, {self._contender.name}: {reason}" for reason in skipped])

    def _warm_up(self) -> float:
        """Say how fast publishes go, roughly."""
        letters = self._write(self._scale.workloads[-1], WARM_UP)
        sent = self._publisher.publish(letters)
        self._await(_numbers(letters))
        return sent.per_second

    def _step(self, sleepers: int, hold: timedelta, version: str) -> list[tuple[Figures, range]]:
        self._peak.restart()
        self._lay(sleepers, hold)
        return [self._measure(workload, sleepers, version) for workload in self._scale.workloads]

    def _lay(self, sleepers: int, hold: timedelta) -> None:
        """Lay as many more as are missing."""
        entrance = self._contender.enter(hold)
        letters = [Letter(number, entrance, _ns(hold)) for number in range(self._laid.count, sleepers)]
        before = self._accounts.read()
        sent = self._publisher.publish(letters)
        used = self._accounts.read() - before
        self._laid = _Laid(
            count=sleepers,
            last=_numbers(letters),
            seconds=self._laid.seconds + sent.seconds,
            broker_cpu=self._laid.broker_cpu + used.broker,
        )

    def _measure(self, workload: Workload, sleepers: int, version: str) -> tuple[Figures, range]:
        before = self._accounts.read()
        burst = self._write(workload, self._scale.burst)
        sent = self._publisher.publish(burst)
        self._await(_numbers(burst))
        between = self._accounts.read()
        stream = self._write(workload, self._scale.paced)
        self._publisher.publish(stream, per_second=self._scale.pace)
        self._await(_numbers(stream))
        after = self._accounts.read()
        numbers = range(burst[0].number, stream[-1].number + 1)
        row = Figures(
            **self._lateness_of(stream),
            version=version,
            contender=self._contender.name,
            workload=workload.name,
            sleepers=sleepers,
            round=self._round,
            publishes_per_second=sent.per_second,
            publisher_busy=sent.client_cpu / sent.seconds,
            cpu_per_message=1000 * (between - before).broker / len(burst),
            paced_cpu_per_message=1000 * (after - between).broker / len(stream),
            earliest=percentile(self._lateness(numbers), 0),
            offered_per_second=self._scale.pace,
            receiver_busy=(after - between).receiver / (after - between).seconds,
            others_busy=(after - before).others_busy,
            peak_memory=self._peak.mebibytes,
            lost=self._ledger.lost(numbers),
            duplicated=0,
            disturbed=time.monotonic_ns() >= self._dues[0],
        )
        return row, numbers

    def _lateness_of(self, letters: Sequence[Letter]) -> dict[str, float]:
        late = self._lateness(_numbers(letters))
        return {f"late_{name}": percentile(late, rank) for name, rank in (("p50", 50), ("p99", 99), ("max", 100))}

    def _come_home(self, hold: timedelta, version: str) -> Homecoming:
        sleepers = range(self._laid.count)
        time.sleep(max(0.0, self._dues[0] / 1e9 - time.monotonic()))
        before = self._accounts.read()
        self._await(sleepers, every=0.5)
        used: Usage = self._accounts.read() - before
        last = self._laid.last
        home = max(self._ledger.arrived(number) or 0 for number in last) - self._dues[last.start]
        late = self._lateness(sleepers)
        return Homecoming(
            version=version,
            contender=self._contender.name,
            sleepers=len(sleepers),
            round=self._round,
            hold_seconds=hold.total_seconds(),
            laid_per_second=self._laid.count / self._laid.seconds,
            home_per_second=len(last) / (home / 1e9),
            cpu_per_message=1000 * (self._laid.broker_cpu + used.broker) / len(sleepers),
            late_p50=percentile(late, 50),
            late_max=percentile(late, 100),
            peak_memory=self._peak.mebibytes,
            lost=self._ledger.lost(sleepers),
            duplicated=self._ledger.duplicated(sleepers),
        )

    def _write(self, workload: Workload, count: int) -> list[Letter]:
        """Write letters with the workload's delays, ahead of the time that is measured."""
        first, self._next_number = self._next_number, self._next_number + count
        varies = self._contender.varies
        delays = (workload.draw(self._random) if varies else workload.middle for _ in range(count))
        return [
            Letter(number, self._contender.enter(delay), _ns(delay)) for number, delay in enumerate(delays, start=first)
        ]

    def _await(self, numbers: range, *, every: float = 0.05) -> None:
        """Wait until all are home, or none has come for so long that the others count as lost."""
        deadline, missing = max(self._dues[number] for number in numbers) / 1e9 + PATIENCE, len(numbers)
        while not self._ledger.complete(numbers):
            if time.monotonic() >= deadline:
                still = self._ledger.lost(numbers)
                if still == missing:
                    return
                deadline, missing = time.monotonic() + PATIENCE, still
            time.sleep(every)

    def _lateness(self, numbers: Iterable[int]) -> list[float]:
        came = ((number, self._ledger.arrived(number)) for number in numbers)
        return [(arrived - self._dues[number]) / 1e6 for number, arrived in came if arrived is not None]


def choose_steps(scale: Scale, publishes_per_second: float) -> tuple[list[int], timedelta, list[str]]:
    """Choose the numbers of sleepers that can be laid and measured in time, and how long these must sleep.

    A power of two of units is one hop on every ladder.
    """
    steps: list[int] = []
    hold = UNIT
    for sleepers in scale.sleepers:
        probing = (len(steps) + 1) * scale.probing_seconds(publishes_per_second)
        needed = 1.5 * sleepers / publishes_per_second + probing
        units = 1 << (int(needed / UNIT.total_seconds()) - 1).bit_length()
        if units * UNIT.total_seconds() > scale.longest_hold:
            missed = ", ".join(f"{count:,}" for count in scale.sleepers[len(steps) :])
            return (
                steps,
                hold,
                [
                    f"{missed} sleepers not measured: at {publishes_per_second:,.0f} publishes a second it would take "
                    f"{needed:,.0f} s, and {scale.longest_hold:,.0f} s is the limit"
                ],
            )
        steps.append(sleepers)
        hold = units * UNIT
    return steps, hold, []


def _numbers(letters: Sequence[Letter]) -> range:
    return range(letters[0].number, letters[-1].number + 1)


def _ns(delay: timedelta) -> int:
    return milliseconds(delay) * 1_000_000
