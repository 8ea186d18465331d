"""A run of the worker's bench as tables for people: medians over the rounds, ratios to the measure, and the goals."""

import math
from collections.abc import Iterable, Mapping, Sequence

from bench.measure import median
from bench.run_facts import introduce
from bench.tables import Section, grouped, list_skipped, ratio, spread, table, tell_losses, warn_of_others
from bench.worker_contenders import (
    RETRY_GOALS,
    RETRY_MEASURE,
    SUCCESS_GOALS,
    SUCCESS_MEASURE,
    describe_concurrency,
    name_all,
)
from bench.worker_figures import Crash, Growth, Retry, Run, Sleepers, Success, is_ours
from bench.worker_growth_plot import list_growth
from bench.worker_idle_report import show_idle
from bench.worker_sweep_report import show_sweep
from bench.worker_targets import show_targets

SECTION = Section("bench.worker")

SUCCESS_HEAD = (
    "contender", "messages/s", f"× {SUCCESS_MEASURE}", "goal", "worker CPU µs", "×", "broker CPU µs", "×",
    "worker cores", "broker cores", "peak MiB", "held", "redelivered", "lost", "dup.",
)  # fmt: skip
RETRY_HEAD = (
    "contender", "messages/s", f"× {RETRY_MEASURE}", "goal", "worker CPU µs", "×", "broker CPU µs", "×", "late p50 ms",
    "p99", "max", "peak MiB", "redelivered", "lost", "dup.",
)  # fmt: skip
SLEEPERS_HEAD = (
    "RabbitMQ", "contender", "sleepers", "asleep", "MiB before", "MiB asleep", "own MiB before", "own MiB asleep",
    "unacked", "fresh p50 ms", "p99", "max", "lost", "dup.",
)  # fmt: skip
CRASH_HEAD = ("RabbitMQ", "contender", "sleepers", "asleep", "all home s", "attempts overspent", "lost", "dup.")
GROWTH_HEAD = ("RabbitMQ", "contender", "messages", "concurrency", "worker CPU µs", "broker CPU µs")


def render(run: Run) -> str:
    """Write the whole report in Markdown."""
    parts = [
        introduce(run.facts),
        warn_of_others(run.others_busy(), "Messages a second and lateness"),
        tell_losses(run.losses(), is_ours),
        show_targets(run),
        *_success(run.success),
        *_retry(run.retry),
        _sleepers(run.sleepers),
        _crash(run.crash),
        *show_idle(run.idle),
        *show_sweep(run.sweep),
        _growth(run.growth),
        list_skipped(run.skipped),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _success(rows: Sequence[Success]) -> Iterable[str]:
    for (version,), group in grouped(rows, lambda row: (row.version,)):
        measure = [row for row in group if row.contender == SUCCESS_MEASURE]
        cells = [_success_cells(cell, measure) for _, cell in grouped(group, lambda row: (row.contender,))]
        first = group[0]
        yield (
            f"#### RabbitMQ {version}, every message succeeds\n\n{table(SUCCESS_HEAD, cells)}\n\n"
            f"{first.messages:,} messages of {first.body_bytes:,} bytes, a handler that does nothing. "
            f"{_concurrency(group)} {_others(group)}"
        )


def _success_cells(cell: Sequence[Success], measure: Sequence[Success]) -> list[str]:
    contender = cell[0].contender
    rates, usual = [row.per_second for row in cell], [row.per_second for row in measure]
    return [
        contender,
        spread(rates, ",.0f"),
        ratio(rates, usual),
        _goal(SUCCESS_GOALS, contender, rates, usual),
        *_cost(cell, measure),
        f"{median(row.worker_busy for row in cell):.2f}",
        f"{median(row.broker_busy for row in cell):.2f}",
        f"{median(row.peak_memory for row in cell):.0f}",
        str(max(row.held for row in cell)),
        str(max(row.redelivered for row in cell)),
        str(sum(row.lost for row in cell)),
        str(sum(row.duplicated for row in cell)),
    ]


def _retry(rows: Sequence[Retry]) -> Iterable[str]:
    for (version,), group in grouped(rows, lambda row: (row.version,)):
        measure = [row for row in group if row.contender == RETRY_MEASURE]
        cells = [_retry_cells(cell, measure) for _, cell in grouped(group, lambda row: (row.contender,))]
        earliest = min(row.earliest for row in group)
        yield (
            f"#### RabbitMQ {version}, every message fails once and is back after 1 s\n\n{table(RETRY_HEAD, cells)}\n\n"
            f"{_counts(group)} messages of 1 KB. {_concurrency(group)} Lateness at {_paces(group)}; the "
            f"earliest of all came {earliest:+.1f} ms from its due time. {_others(group)}"
        )


def _counts(rows: Iterable[Retry]) -> str:
    """Say how many there were; peers may have had fewer."""
    return " or ".join(f"{count:,}" for count in sorted({row.messages for row in rows}, reverse=True))


def _paces(rows: Iterable[Retry]) -> str:
    """Say what was offered; who starts a program for each message is offered less, and is named."""
    names: dict[float, list[str]] = {}
    for row in rows:
        names.setdefault(row.offered_per_second, []).append(row.contender)
    usual, *fewer = sorted(names, reverse=True)
    said = [f"{usual:,.0f} messages a second offered"]
    said += [f"{pace:,.0f} to {name_all(dict.fromkeys(names[pace]))}" for pace in fewer]
    return ", ".join(said)


def _retry_cells(cell: Sequence[Retry], measure: Sequence[Retry]) -> list[str]:
    contender = cell[0].contender
    rates, usual = [row.per_second for row in cell], [row.per_second for row in measure]
    return [
        contender,
        spread(rates, ",.0f"),
        ratio(rates, usual),
        _goal(RETRY_GOALS, contender, rates, usual),
        *_cost(cell, measure),
        spread([row.late_p50 for row in cell], ".0f"),
        spread([row.late_p99 for row in cell], ".0f"),
        f"{max(row.late_max for row in cell):.0f}",
        f"{median(row.peak_memory for row in cell):.0f}",
        str(max(row.redelivered for row in cell)),
        str(sum(row.lost for row in cell)),
        str(sum(row.duplicated for row in cell)),
    ]


def _sleepers(rows: Sequence[Sleepers]) -> str:
    if not rows:
        return ""
    cells = [_sleepers_cells(cell) for _, cell in grouped(rows, lambda row: (row.version, row.contender))]
    return (
        f"#### While failed messages sleep\n\n{table(SLEEPERS_HEAD, cells)}\n\n"
        f"MiB are those of the worker with all its children, own MiB those of its own process. "
        f"{rows[0].fresh_per_second:,.0f} fresh messages a second. {_others(rows)}"
    )


def _sleepers_cells(cell: Sequence[Sleepers]) -> list[str]:
    return [
        cell[0].version,
        cell[0].contender,
        f"{cell[0].sleepers:,}",
        f"{min(row.asleep for row in cell):,}",
        spread([row.memory_before for row in cell], ".1f"),
        spread([row.memory_asleep for row in cell], ".1f"),
        _known([row.own_before for row in cell], ".1f"),
        _known([row.own_asleep for row in cell], ".1f"),
        str(max(row.unacked for row in cell)),
        spread([row.fresh_p50 for row in cell], ".1f"),
        spread([row.fresh_p99 for row in cell], ".1f"),
        f"{max(row.fresh_max for row in cell):.1f}",
        str(sum(row.lost for row in cell)),
        str(sum(row.duplicated for row in cell)),
    ]


def _known(values: Sequence[float], form: str) -> str:
    """Write what was measured; older runs have nothing of it."""
    known = [value for value in values if not math.isnan(value)]
    return spread(known, form) if known else "–"


def _crash(rows: Sequence[Crash]) -> str:
    if not rows:
        return ""
    cells = [
        [
            cell[0].version,
            cell[0].contender,
            f"{cell[0].sleepers:,}",
            f"{min(row.asleep for row in cell):,}",
            spread([row.home_seconds for row in cell], ".1f"),
            str(sum(row.overspent for row in cell)),
            str(sum(row.lost for row in cell)),
            str(sum(row.duplicated for row in cell)),
        ]
        for _, cell in grouped(rows, lambda row: (row.version, row.contender))
    ]
    return f"#### A worker killed while its messages sleep\n\n{table(CRASH_HEAD, cells)}\n\n{_others(rows)}"


def _growth(rows: Sequence[Growth]) -> str:
    if not rows:
        return ""
    ordered = sorted(rows, key=lambda row: (row.messages, row.concurrency))
    cells = [
        [
            cell[0].version,
            cell[0].contender,
            f"{cell[0].messages:,}",
            str(cell[0].concurrency),
            spread([row.worker_cpu for row in cell], ".1f"),
            spread([row.broker_cpu for row in cell], ".1f"),
        ]
        for _, cell in grouped(ordered, lambda row: (row.version, row.contender, row.messages, row.concurrency))
    ]
    return (
        f"#### What a message costs as there are more\n\n{table(GROWTH_HEAD, cells)}\n\n{list_growth(rows)}\n\n"
        f"{_others(rows)}"
    )


def _cost(cell: Sequence[Success] | Sequence[Retry], measure: Sequence[Success] | Sequence[Retry]) -> list[str]:
    worker, broker = [row.worker_cpu for row in cell], [row.broker_cpu for row in cell]
    return [
        spread(worker, ".0f"),
        ratio(worker, [row.worker_cpu for row in measure]),
        spread(broker, ".0f"),
        ratio(broker, [row.broker_cpu for row in measure]),
    ]


def _goal(goals: Mapping[str, float], contender: str, rates: Sequence[float], measure: Sequence[float]) -> str:
    """Write what was promised, and whether it is kept."""
    if contender not in goals:
        return ""
    goal = goals[contender]
    if not measure:
        return f"≥ {goal}"
    return f"≥ {goal} {'met' if median(rates) >= goal * median(measure) else 'missed'}"


def _concurrency(rows: Sequence[Success] | Sequence[Retry]) -> str:
    return describe_concurrency(dict.fromkeys(row.contender for row in rows), rows[0].concurrency)


def _others(rows: Iterable[Success | Retry | Sleepers | Crash | Growth]) -> str:
    return f"Other programs of the machine used up to {max(row.others_busy for row in rows):.1f} cores."
