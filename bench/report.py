"""A run of the ladder's bench as tables for people: medians over the rounds, and ratios to the plain queue."""

from collections.abc import Iterable, Sequence

from bench.contenders import OURS
from bench.figures import Figures, Homecoming, Idle, Run
from bench.measure import median
from bench.run_facts import introduce
from bench.tables import Section, grouped, list_skipped, ratio, spread, table, tell_losses, warn_of_others

SECTION = Section("bench.ladder")
MEASURE = "plain"
TRAFFIC_HEAD = (
    "sleepers", "contender", "publishes/s", "×", "CPU ms", "×", "paced CPU ms", "×",
    "late p50 ms", "p99", "max", "peak MiB", "lost", "dup.", "client",
)  # fmt: skip


def render(run: Run) -> str:
    """Write the whole report in Markdown."""
    parts = [
        _facts(run),
        warn_of_others(_busy(run), "Publishes a second, lateness and declare times"),
        tell_losses(run.losses(), lambda name: name == OURS),
        *_traffic(run.figures),
        _homecomings(run.homecomings),
        _idle(run.idle),
        list_skipped([*run.left_out, *run.skipped]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _busy(run: Run) -> list[float]:
    return [*(row.others_busy for row in run.figures), *(row.others_busy for row in run.idle)]


def _facts(run: Run) -> str:
    capacity = run.receiver_capacity.items()
    alone = {f"receiver alone on {version}": f"{rate:,.0f} messages a second" for version, rate in capacity}
    return introduce({**run.facts, **alone})


def _traffic(rows: Sequence[Figures]) -> Iterable[str]:
    for (version, workload), group in grouped(rows, lambda row: (row.version, row.workload)):
        ordered = sorted(group, key=lambda row: row.sleepers)
        offered, receiver = group[0].offered_per_second, max(row.receiver_busy for row in group)
        others, earliest = max(row.others_busy for row in group), min(row.earliest for row in group)
        cells = [_traffic_cells(cell, _baseline(cell, group)) for _, cell in grouped(ordered, _place)]
        yield (
            f"#### RabbitMQ {version}, {workload}\n\n{table(TRAFFIC_HEAD, cells)}\n\n"
            f"Lateness at {offered:,.0f} messages a second offered, where the receiver used {receiver:.0%} of a core "
            f"at most. The earliest message of all came {earliest:+.1f} ms from its due time. Other programs of the "
            f"machine used up to {others:.1f} cores."
        )


def _traffic_cells(cell: Sequence[Figures], baseline: Sequence[Figures]) -> list[str]:
    sleepers, contender = _place(cell[0])
    mark = " (disturbed)" if any(row.disturbed for row in cell) else ""
    return [
        f"{sleepers:,}",
        contender + mark,
        spread([row.publishes_per_second for row in cell], ",.0f"),
        ratio([row.publishes_per_second for row in cell], [row.publishes_per_second for row in baseline]),
        spread([row.cpu_per_message for row in cell], ".2f"),
        ratio([row.cpu_per_message for row in cell], [row.cpu_per_message for row in baseline]),
        spread([row.paced_cpu_per_message for row in cell], ".2f"),
        ratio([row.paced_cpu_per_message for row in cell], [row.paced_cpu_per_message for row in baseline]),
        spread([row.late_p50 for row in cell], ".0f"),
        spread([row.late_p99 for row in cell], ".0f"),
        f"{max(row.late_max for row in cell):.0f}",
        f"{median(row.peak_memory for row in cell):.0f}",
        str(sum(row.lost for row in cell)),
        str(sum(row.duplicated for row in cell)),
        f"{median(row.publisher_busy for row in cell):.0%}",
    ]


def _homecomings(rows: Sequence[Homecoming]) -> str:
    if not rows:
        return ""
    head = ("RabbitMQ", "sleepers", "contender", "slept s", "laid/s", "home/s", "CPU ms/message", "late p50 ms", "max",
            "peak MiB", "lost", "dup.")  # fmt: skip
    groups = grouped(rows, lambda row: (row.version, row.sleepers, row.contender))
    cells = [_homecoming_cells(group) for _, group in groups]
    return f"#### All sleepers come home at once\n\n{table(head, cells)}"


def _homecoming_cells(rows: Sequence[Homecoming]) -> list[str]:
    return [
        rows[0].version,
        f"{rows[0].sleepers:,}",
        rows[0].contender,
        f"{max(row.hold_seconds for row in rows):.0f}",
        spread([row.laid_per_second for row in rows], ",.0f"),
        spread([row.home_per_second for row in rows], ",.0f"),
        spread([row.cpu_per_message for row in rows], ".2f"),
        spread([row.late_p50 for row in rows], ".0f"),
        f"{max(row.late_max for row in rows):.0f}",
        f"{median(row.peak_memory for row in rows):.0f}",
        str(sum(row.lost for row in rows)),
        str(sum(row.duplicated for row in rows)),
    ]


def _idle(rows: Sequence[Idle]) -> str:
    if not rows:
        return ""
    cells = [
        [
            row.version,
            str(row.nodes),
            str(row.places),
            str(row.ladders),
            f"{row.queues:,}",
            f"{row.cpu_percent:.1f}",
            f"{row.memory:,.0f}",
            f"{row.memory_per_ladder:.1f}" if row.ladders else "–",
            f"{row.declare_seconds:.2f}" if row.ladders else "–",
            f"{row.others_busy:.1f}",
        ]
        for row in rows
    ]
    head = ("RabbitMQ", "nodes", "places", "ladders", "queues", "CPU %", "memory MiB", "MiB/ladder", "declare s/ladder",
            "others' cores")  # fmt: skip
    return f"#### Ladders that nobody uses, all nodes together\n\n{table(head, cells)}"


def _place(row: Figures) -> tuple[int, str]:
    return row.sleepers, row.contender


def _baseline(cell: Sequence[Figures], rows: Sequence[Figures]) -> list[Figures]:
    return [row for row in rows if _place(row) == (cell[0].sleepers, MEASURE)]
