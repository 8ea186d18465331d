"""What was found in trials, as lines of JSON that are kept, and as a table for people."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

BEGIN = "<!-- faults: begin; written by make faults, edits are lost -->"
END = "<!-- faults: end -->"
KUBERNETES_BEGIN = "<!-- faults of Kubernetes: begin; written by make faults, edits are lost -->"
KUBERNETES_END = "<!-- faults of Kubernetes: end -->"
HEAD = (
    "RabbitMQ", "fault", "runs", "messages", "lost", "stuck", "wrong", "run twice", "parked twice", "cut short",
    "astray", "destroyed by hand", "recovered after, s", "latest retry, s",
)  # fmt: skip
WHOLE = "whole again after, s"


@dataclass(frozen=True)
class Row:
    """One trial."""

    version: str
    fault: str
    seed: int
    messages: int
    lost: int
    wrong: int
    repeated: int
    doubled: int
    cut_short: int
    astray: int
    destroyed: int
    recoveries: tuple[float | None, ...]
    lateness: float
    seconds: float
    date: str
    command: str
    together: tuple[str, ...] = ()
    stuck: int = 0
    whole: tuple[float, ...] = ()


def to_row(outcome, *, version, fault, seed, date, command):
    """Keep of an outcome what the table is made of."""
    counted = outcome.account
    return Row(
        version=version,
        fault=fault,
        seed=seed,
        messages=counted.messages,
        lost=counted.lost,
        wrong=len(counted.complaints),
        repeated=counted.repeated,
        doubled=counted.doubled,
        cut_short=counted.cut_short,
        astray=counted.astray,
        destroyed=counted.destroyed,
        recoveries=outcome.recoveries,
        lateness=outcome.lateness,
        seconds=outcome.seconds,
        date=date,
        command=command,
        together=outcome.faults if len(outcome.faults) > 1 else (),
        stuck=counted.stuck,
        whole=outcome.whole,
    )


def write_row(row: Row) -> str:
    return json.dumps(asdict(row))


def read_rows(text: str) -> list[Row]:
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    tuples = ("recoveries", "together", "whole")
    return [Row(**{**line, **{name: tuple(line.get(name, ())) for name in tuples}}) for line in lines]


def place(page: str, report: str, *, begin: str = BEGIN, end: str = END) -> str:
    """Put the report between the page's markers; ValueError where it has none."""
    before, has_begin, rest = page.partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"the page has no place for the report: give it the lines {begin!r} and {end!r}")
    return f"{before}{begin}\n\n{report}\n{end}{after}"


def render(rows: Sequence[Row], *, whole: bool = False) -> str:
    """Write the whole report in Markdown; `whole` adds how long it took until all was as before."""
    groups = {}
    for row in rows:
        groups.setdefault((row.version, row.fault), []).append(row)
    cells = [_cells(*key, group) + [_longest(group)] * whole for key, group in groups.items()]
    commands = "\n".join(f"- {row.date}: `{row.command}`" for row in {row.command: row for row in rows}.values())
    mixed = [row for row in rows if row.together]
    seeds = "\n".join(f"- RabbitMQ {row.version}, seed {row.seed}: {', '.join(row.together)}" for row in mixed)
    titles = [*HEAD, *[WHOLE] * whole]
    head = [titles, ["---"] * len(titles)]
    parts = [commands, "\n".join(f"| {' | '.join(line)} |" for line in [*head, *cells])]
    if seeds:
        parts.append(f"What was broken together, by seed:\n\n{seeds}")
    return "\n\n".join(parts) + "\n"


def _cells(version: object, fault: object, rows: Sequence[Row]) -> list[str]:
    recoveries = [one for row in rows for one in row.recoveries]
    known = sorted(one for one in recoveries if one is not None)
    after = "–" if not known else f"{known[len(known) // 2]:.1f} ({known[-1]:.1f})"
    sums = [
        sum(getattr(row, name) for row in rows)
        for name in ("messages", "lost", "stuck", "wrong", "repeated", "doubled", "cut_short", "astray", "destroyed")
    ]
    latest = max(row.lateness for row in rows)
    return [str(version), str(fault), str(len(rows)), *(f"{one:,}" for one in sums), after, f"{latest:.1f}"]


def _longest(rows: Sequence[Row]) -> str:
    return f"{max((one for row in rows for one in row.whole), default=0.0):.1f}"
