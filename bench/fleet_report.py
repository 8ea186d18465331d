"""A run of the operator's bench as tables for people, and what was promised beside what was found."""

from collections.abc import Iterable, Mapping, Sequence

from bench.fleet_figures import Run, Size
from bench.fleet_flows import WRITES
from bench.fleet_latency_report import show_bursts, show_first_messages
from bench.measure import median, megabytes
from bench.run_facts import introduce
from bench.tables import QUIET, Section, list_skipped, table

SECTION = Section("bench.fleet")

# A watch is asked for once, and then goes on.
ASKED = ("get", "list", *WRITES)

WHO = ("RabbitMQ", "consumers", "vhosts")

# What is promised of a thousand consumers on two cores.
PROMISED_SIZE = 1000
READY_SECONDS, CPU_PERCENT, MEMORY, CHANGE_SECONDS, SETTLED_SECONDS = 180.0, 10.0, 250.0, 5.0, 60.0


def render(run: Run) -> str:
    """Write the whole report in Markdown."""
    parts = [
        introduce(run.facts),
        _warning(run.sizes),
        *(_sizes(run.sizes) if run.sizes else ()),
        show_first_messages(run.first_messages),
        show_bursts(run.bursts),
        list_skipped(run.skipped),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _warning(sizes: Sequence[Size]) -> str:
    """Say it where others were at work; the API server, which the operator keeps busy, is among the others here."""
    most = max((size.steady.others_busy for size in sizes), default=0.0)
    if most <= 2 * QUIET:
        return ""
    return (
        f"**Taken on a busy machine**: other programs, the API server among them, used up to {most:.1f} of its cores "
        "while nothing happened. Times say little; CPU suffers less, memory and requests hardly."
    )


def _sizes(sizes: Sequence[Size]) -> Iterable[str]:
    yield _start(sizes)
    yield _steady(sizes)
    yield _changes(sizes)
    yield _restart(sizes)
    yield _each(sizes)


def _start(sizes: Sequence[Size]) -> str:
    head = (*WHO, "applied s", "first Ready s", "half s", "all s", "goal", "CPU s", "requests each",
            "peak MiB")  # fmt: skip
    rows = [
        [
            *_who(size),
            f"{size.start.apply_seconds:.1f}",
            f"{size.start.first_ready_seconds:.1f}",
            f"{size.start.half_ready_seconds:.1f}",
            f"{size.start.ready_seconds:.1f}",
            _goal(size, size.start.ready_seconds, READY_SECONDS, "s"),
            f"{size.start.cpu_seconds:.1f}",
            f"{_sum(size.start.api_requests) / size.consumers:.1f}",
            f"{size.start.peak_memory:.0f}",
        ]
        for size in sizes
    ]
    return f"#### From applying all to all Ready\n\n{table(head, rows)}"


def _steady(sizes: Sequence[Size]) -> str:
    head = (*WHO, "CPU %", "goal", "MiB", "goal", "API requests/min", "of which writes", "watches",
            "broker requests/min", "connections/min", "broker CPU %", "without operator")  # fmt: skip
    rows = [
        [
            *_who(size),
            f"{size.steady.cpu_percent:.1f}",
            _goal(size, size.steady.cpu_percent, CPU_PERCENT, "%"),
            f"{size.steady.memory:.0f}",
            _goal(size, megabytes(size.steady.memory), MEMORY, "MB"),
            f"{_sum(size.steady.api_requests):.1f}",
            f"{_sum(size.steady.api_requests, WRITES):.1f}",
            f"{size.steady.api_requests['watch']:.1f}",
            f"{sum(size.steady.broker_requests.values()):.1f}",
            f"{size.steady.broker_connections:.1f}",
            f"{size.steady.broker_cpu_percent:.1f}",
            f"{size.steady.bare_broker_cpu_percent:.1f}",
        ]
        for size in sizes
    ]
    looked, foreign = min(size.steady.seconds for size in sizes), max(size.foreign for size in sizes)
    return (
        f"#### While nothing happens\n\n{table(head, rows)}\n\n"
        f"Over {looked:.0f} s. In the cluster there were {foreign:,} Secrets and {foreign:,} pods of others besides."
    )


def _changes(sizes: Sequence[Size]) -> str:
    head = (*WHO, "changes", "median s", "worst s", "goal")
    rows = [
        [
            *_who(size),
            str(len(size.changes)),
            f"{median(size.changes):.2f}",
            f"{max(size.changes):.2f}",
            _goal(size, max(size.changes), CHANGE_SECONDS, "s"),
        ]
        for size in sizes
        if size.changes
    ]
    return f"#### From an edit of one to the config of its workers\n\n{table(head, rows)}" if rows else ""


def _restart(sizes: Sequence[Size]) -> str:
    head = (*WHO, "stopped s", "ready s", "all seen to s", "goal", "CPU s", "reads", "writes",
            "peak MiB")  # fmt: skip
    rows = [
        [
            *_who(size),
            f"{size.restart.stop_seconds:.1f}",
            f"{size.restart.ready_seconds:.1f}",
            f"{size.restart.settled_seconds:.1f}",
            _goal(size, size.restart.settled_seconds, SETTLED_SECONDS, "s"),
            f"{size.restart.cpu_seconds:.1f}",
            str(_sum(size.restart.api_requests, ("get", "list"))),
            str(_sum(size.restart.api_requests, WRITES)),
            f"{size.restart.peak_memory:.0f}",
        ]
        for size in sizes
    ]
    return f"#### A restarted operator\n\n{table(head, rows)}"


def _each(sizes: Sequence[Size]) -> str:
    """Divide by the consumers; memory is what is above the smallest fleet on the same release, mostly libraries."""
    head = (*WHO, "Ready: ms each", "Ready: CPU ms each", "quiet: CPU ms each a minute",
            "quiet: KiB each", "quiet: API requests each a minute", "restart: CPU ms each")  # fmt: skip
    rows = [
        [
            *_who(size),
            f"{1000 * size.start.ready_seconds / size.consumers:.0f}",
            f"{1000 * size.start.cpu_seconds / size.consumers:.0f}",
            f"{600 * size.steady.cpu_percent / size.consumers:.2f}",
            _memory_each(size, next(first for first in sizes if first.version == size.version)),
            f"{_sum(size.steady.api_requests) / size.consumers:.2f}",
            f"{1000 * size.restart.cpu_seconds / size.consumers:.0f}",
        ]
        for size in sizes
    ]
    return f"#### The cost of each consumer\n\n{table(head, rows)}"


def _memory_each(size: Size, smallest: Size) -> str:
    more = size.consumers - smallest.consumers
    return f"{1024 * (size.steady.memory - smallest.steady.memory) / more:.0f}" if more > 0 else "–"


def _who(size: Size) -> list[str]:
    return [size.version, f"{size.consumers:,}", str(size.spread)]


def _sum(requests: Mapping[str, float], verbs: Sequence[str] = ASKED) -> float:
    return sum(requests[verb] for verb in verbs)


def _goal(size: Size, found: float, most: float, unit: str) -> str:
    if size.consumers < PROMISED_SIZE:
        return ""
    return f"≤ {most:g} {unit} {'met' if found <= most else 'missed'}"
