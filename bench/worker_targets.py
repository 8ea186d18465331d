"""What Redrive's worker is to reach beside the others, and whether a run shows that it does.

Every target is a ratio, because machines differ, or a bound that holds on any. Where a run has not measured what a
target speaks of, it says nothing about it; where it tried and came back without a figure, it says that.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench.measure import median, megabytes
from bench.tables import table
from bench.worker_figures import Crash, Growth, Retry, Run, Sleepers, Success
from bench.worker_growth_plot import plan_panels, span
from bench.worker_peers import PEERS

FAST = ("thread", "async")
MODES = ("thread", "async", "process")
PREFORK = ("celery", "celery-quorum")
LIMIT = "select"

TIMES_DRAMATIQ = 6.0
OF_THE_LIMIT = 0.6
TIMES_PREFORK = 4.0
OF_THE_BEST_PEERS_CPU = 0.25
OF_THE_RETRY_LIMIT = 0.8
LATE_MS = 100.0
ASLEEP_MB = 40.0
ASLEEP = 10_000

# So many times what a message costs at the first place it may cost at the second; falling is fine, for what is done
# once is divided among more. Had every message to be looked for among the others, or did each leave something behind,
# it would be tens of times as dear there. Two trials of the same thing differ by a quarter on a small machine.
GROWN = 1.25
GROWS_FROM_TO = {"messages": (1_000, 1_000_000), "concurrency": (1, 64)}
PLACE = {"messages": "{:,} messages", "concurrency": "concurrency {}"}

HEAD = ("RabbitMQ", "target", "measured", "held")
HELD = {True: "yes", False: "**no**", None: "–"}
NOT_MEASURED = "not measured"

Row = TypeVar("Row", Success, Retry, Sleepers, Crash, Growth)


@dataclass(frozen=True)
class Verdict:
    """One target: what it asks for, what was found, and whether that is enough; None where nothing was found."""

    version: str
    target: str
    measured: str
    held: bool | None


@dataclass(frozen=True)
class Best:
    """The contender that did best among some, by the median of its rounds; NaN where no round had a figure."""

    name: str
    value: float


def show_targets(run: Run) -> str:
    verdicts = judge(run)
    if not verdicts:
        return ""
    cells = [[each.version, each.target, each.measured, HELD[each.held]] for each in verdicts]
    return f"#### What was to be reached\n\n{table(HEAD, cells)}"


def judge(run: Run) -> list[Verdict]:
    versions = dict.fromkeys(row.version for row in (*run.success, *run.retry, *run.sleepers, *run.crash, *run.growth))
    return [
        verdict
        for version in versions
        for verdicts in (
            _judge_success(version, _of(run.success, version)),
            _judge_retry(version, _of(run.retry, version)),
            _judge_sleepers(version, _of(run.sleepers, version)),
            _judge_crash(version, _of(run.crash, version)),
            _judge_growth(version, _of(run.growth, version)),
        )
        for verdict in verdicts
    ]


def _judge_success(version: str, rows: Sequence[Success]) -> Iterator[Verdict]:
    for ours, others, least in (
        (FAST, ("dramatiq",), TIMES_DRAMATIQ),
        (FAST, (LIMIT,), OF_THE_LIMIT),
        (("process",), PREFORK, TIMES_PREFORK),
    ):
        mine, theirs = _best(rows, ours, _rate, max), _best(rows, others, _rate, max)
        if mine and theirs:
            target = f"messages/s of {' or '.join(ours)} ≥ {least:g} × {' or '.join(others)}"
            yield _compare(version, target, mine, theirs, lambda ratio, least=least: ratio >= least)
    for ours in (FAST, ("process",)):
        mine, theirs = _best(rows, ours, _cpu, min), _best(rows, tuple(PEERS), _cpu, min)
        if mine and theirs:
            target = f"worker CPU of {' or '.join(ours)} ≤ {OF_THE_BEST_PEERS_CPU:g} × the best peer's"
            yield _compare(version, target, mine, theirs, lambda ratio: ratio <= OF_THE_BEST_PEERS_CPU)


def _judge_retry(version: str, rows: Sequence[Retry]) -> Iterator[Verdict]:
    limit = _best(rows, (LIMIT,), _rate, max)
    for mode in MODES:
        mine = _best(rows, (mode,), _rate, max)
        if mine and limit:
            target = f"retries/s of {mode} ≥ {OF_THE_RETRY_LIMIT:g} × {LIMIT}"
            yield _compare(version, target, mine, limit, lambda ratio: ratio >= OF_THE_RETRY_LIMIT)
        late = [row.late_p99 for row in rows if row.contender == mode]
        if late:
            target = f"p99 lateness of {mode} < {LATE_MS:g} ms"
            yield _bound(version, target, median(late), f"{median(late):.0f} ms", median(late) < LATE_MS)


def _judge_sleepers(version: str, rows: Sequence[Sleepers]) -> Iterator[Verdict]:
    for mode in MODES:
        mine = [row for row in rows if row.contender == mode and row.sleepers >= ASLEEP]
        if mine:
            unacked, asleep = max(row.unacked for row in mine), min(row.asleep for row in mine)
            memory = megabytes(median(map(_own_memory, mine)))
            children = megabytes(median(row.memory_asleep for row in mine))
            beside = "" if mode in FAST else f" ({children:.1f} MB with its children)"
            yield _bound(
                version,
                f"{mode} with {ASLEEP:,} sleepers holds none unacked, in < {ASLEEP_MB:g} MB of its own",
                memory or math.nan,  # no worker needs none
                f"{unacked} of {asleep:,}, {memory:.1f} MB{beside}",
                unacked == 0 and asleep >= ASLEEP and memory < ASLEEP_MB,
            )


def _own_memory(row: Sleepers) -> float:
    """Take that of the worker's own process. An older run has it only of modes that have no other."""
    if row.own_asleep > 0:
        return row.own_asleep
    return row.memory_asleep if row.contender in FAST else math.nan


def _judge_crash(version: str, rows: Sequence[Crash]) -> Iterator[Verdict]:
    for mode in MODES:
        mine = [row for row in rows if row.contender == mode]
        if mine:
            lost, sleepers = sum(row.lost for row in mine), sum(row.sleepers for row in mine)
            yield Verdict(
                version, f"{mode} killed while messages sleep: none lost", f"{lost} of {sleepers:,}", lost == 0
            )
            # Who was killed at work has run some of them: these are charged with an attempt for that.
            asleep = [row for row in mine if row.asleep >= row.sleepers]
            overspent = sum(row.overspent for row in asleep) if asleep else math.nan
            target = f"{mode} killed while messages sleep: no attempt overspent"
            yield _bound(version, target, overspent, f"{overspent:g}", overspent == 0)


def _judge_growth(version: str, rows: Sequence[Growth]) -> Iterator[Verdict]:
    for panel in plan_panels(rows):
        low, high = GROWS_FROM_TO[panel.axis]
        if low not in panel.places or high not in panel.places:
            continue
        for name, values in panel.lines.items():
            first, last = (values[panel.places.index(place)] for place in (low, high))
            ratio = last / first if first > 0 else math.nan
            target = f"CPU of a message of {name} at {PLACE[panel.axis].format(high)} ≤ {GROWN:g} × at {low:,}"
            measured = f"{ratio:.2f}; highest {span(values):.2f} × lowest"
            yield _bound(version, target, ratio, measured, ratio <= GROWN)


def _bound(version: str, target: str, found: float, measured: str, held: bool) -> Verdict:
    return (
        Verdict(version, target, NOT_MEASURED, None) if math.isnan(found) else Verdict(version, target, measured, held)
    )


def _compare(version: str, target: str, mine: Best, theirs: Best, enough: Callable[[float], bool]) -> Verdict:
    ratio = mine.value / theirs.value
    if math.isnan(ratio):
        return Verdict(version, target, NOT_MEASURED, None)
    return Verdict(version, target, f"{ratio:.2f} ({mine.name} to {theirs.name})", enough(ratio))


def _best(
    rows: Sequence[Row], names: Sequence[str], value: Callable[[Row], float], choose: Callable[..., Best]
) -> Best | None:
    """Find the one that did best. A window too short for what was looked for says 0, which is no figure either."""
    measured = [row for row in rows if row.contender in names]
    if not measured:
        return None
    medians = (Best(name, median(value(row) for row in measured if row.contender == name)) for name in names)
    nothing = Best(measured[0].contender, math.nan)
    return choose((best for best in medians if best.value > 0), key=lambda best: best.value, default=nothing)


def _rate(row: Success | Retry) -> float:
    return row.per_second


def _cpu(row: Success) -> float:
    return row.worker_cpu


def _of(rows: Sequence[Row], version: str) -> list[Row]:
    return [row for row in rows if row.version == version]
