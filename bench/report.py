"""A run as tables for people: medians over the rounds with their spread, and ratios to the plain queue.

The same text goes to the terminal and, between two markers, into a page of the documentation: a figure that was
copied by hand is soon a figure of another run.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from bench.errors import Abandoned
from bench.figures import Figures, Homecoming, Idle, Run
from bench.measure import median

BEGIN = "<!-- bench.ladder: begin; written by the bench, edits are lost -->"
END = "<!-- bench.ladder: end -->"
MEASURE = "plain"
QUIET = 0.3  # cores used by other programs
TRAFFIC_HEAD = (
    "sleepers", "contender", "publishes/s", "×", "CPU ms", "×", "paced CPU ms", "×",
    "late p50 ms", "p99", "max", "peak MB", "lost", "dup.", "client",
)  # fmt: skip

Row = TypeVar("Row")


def render(run: Run) -> str:
    """Write the whole report in Markdown."""
    parts = [
        _facts(run),
        _warning(run),
        *_traffic(run.figures),
        _homecomings(run.homecomings),
        _idle(run.idle),
        _skipped(run.skipped),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def require_markers(page: Path) -> None:
    text = page.read_text() if page.exists() else ""
    if not 0 <= text.find(BEGIN) < text.find(END):
        raise Abandoned(f"{page} has no place for the report: give it the lines {BEGIN!r} and {END!r}")


def replace_section(page: Path, text: str) -> None:
    """Put the report between the page's markers."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def _facts(run: Run) -> str:
    lines = [f"- {name}: {value}" for name, value in run.facts.items()]
    lines += [
        f"- receiver alone on {version}: {rate:,.0f} messages a second"
        for version, rate in run.receiver_capacity.items()
    ]
    return "\n".join(lines)


def _warning(run: Run) -> str:
    """Say it where figures are more the machine's than the broker's; on a quiet machine there is nothing to say."""
    busy = max([row.others_busy for row in run.figures] + [row.others_busy for row in run.idle], default=0.0)
    if busy <= QUIET:
        return ""
    return (
        f"**Taken on a busy machine**: other programs used up to {busy:.1f} of its cores. Publishes a second, lateness "
        "and declare times say little, not even as ratios; CPU for a message suffers less, memory hardly."
    )


def _traffic(rows: Sequence[Figures]) -> Iterable[str]:
    for (version, workload), group in _grouped(rows, lambda row: (row.version, row.workload)):
        ordered = sorted(group, key=lambda row: row.sleepers)
        offered, receiver = group[0].offered_per_second, max(row.receiver_busy for row in group)
        others, earliest = max(row.others_busy for row in group), min(row.earliest for row in group)
        cells = [_traffic_cells(cell, _baseline(cell, group)) for _, cell in _grouped(ordered, _place)]
        table = _table(TRAFFIC_HEAD, cells)
        yield (
            f"#### RabbitMQ {version}, {workload}\n\n{table}\n\n"
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
        _spread([row.publishes_per_second for row in cell], ",.0f"),
        _ratio([row.publishes_per_second for row in cell], [row.publishes_per_second for row in baseline]),
        _spread([row.cpu_per_message for row in cell], ".2f"),
        _ratio([row.cpu_per_message for row in cell], [row.cpu_per_message for row in baseline]),
        _spread([row.paced_cpu_per_message for row in cell], ".2f"),
        _ratio([row.paced_cpu_per_message for row in cell], [row.paced_cpu_per_message for row in baseline]),
        _spread([row.late_p50 for row in cell], ".0f"),
        _spread([row.late_p99 for row in cell], ".0f"),
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
            "peak MB", "lost", "dup.")  # fmt: skip
    groups = _grouped(rows, lambda row: (row.version, row.sleepers, row.contender))
    table = _table(head, [_homecoming_cells(group) for _, group in groups])
    return f"#### All sleepers come home at once\n\n{table}"


def _homecoming_cells(rows: Sequence[Homecoming]) -> list[str]:
    return [
        rows[0].version,
        f"{rows[0].sleepers:,}",
        rows[0].contender,
        f"{max(row.hold_seconds for row in rows):.0f}",
        _spread([row.laid_per_second for row in rows], ",.0f"),
        _spread([row.home_per_second for row in rows], ",.0f"),
        _spread([row.cpu_per_message for row in rows], ".2f"),
        _spread([row.late_p50 for row in rows], ".0f"),
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
    head = ("RabbitMQ", "nodes", "places", "ladders", "queues", "CPU %", "memory MB", "MB/ladder", "declare s/ladder",
            "others' cores")  # fmt: skip
    return f"#### Ladders that nobody uses, all nodes together\n\n{_table(head, cells)}"


def _skipped(reasons: Sequence[str]) -> str:
    return "\n".join(("Not measured:\n", *(f"- {reason}" for reason in reasons))) if reasons else ""


def _place(row: Figures) -> tuple[int, str]:
    return row.sleepers, row.contender


def _baseline(cell: Sequence[Figures], rows: Sequence[Figures]) -> list[Figures]:
    return [row for row in rows if _place(row) == (cell[0].sleepers, MEASURE)]


def _ratio(values: Sequence[float], measure: Sequence[float]) -> str:
    """Divide the medians; there is none where the measure was not taken."""
    return f"{median(values) / median(measure):.2f}" if measure and median(measure) else "–"


def _spread(values: Sequence[float], form: str) -> str:
    """Write the median, and the lowest and highest of several rounds."""
    middle = f"{median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}}–{max(values):{form}})"


def _grouped(
    rows: Iterable[Row], key: Callable[[Row], tuple[object, ...]]
) -> list[tuple[tuple[object, ...], list[Row]]]:
    """Gather equal ones in the order of their first; contenders stay in the order in which they were named."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.items())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    lines = (" | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in (head, *rows))
    first, *others = (f"| {line} |" for line in lines)
    rule = "|".join(f"{'-' * (width + 1)}:" for width in widths)
    return "\n".join((first, f"|{rule}|", *others))
