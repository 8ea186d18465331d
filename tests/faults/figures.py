"""What was found in trials, as lines of JSON that are kept, and as a table for people."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

BEGIN = "<!-- faults: begin; written by make faults, edits are lost -->"
END = "<!-- faults: end -->"
HEAD = (
    "RabbitMQ", "fault", "runs", "messages", "lost", "stuck", "wrong", "run twice", "parked twice", "cut short",
    "astray", "destroyed by hand", "recovered after, s", "latest retry, s",
)  # fmt: skip


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
    )


def write_row(row: Row) -> str:
    return json.dumps(asdict(row))


def read_rows(text: str) -> list[Row]:
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    tuples = ("recoveries", "together")
    return [Row(**{**line, **{name: tuple(line[name]) for name in tuples}}) for line in lines]


def place(page: str, report: str) -> str:
    """Put the report between the page's markers; ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the report: give it the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{report}\n{END}{after}"


def render(rows: Sequence[Row]) -> str:
    """Write the whole report in Markdown."""
    groups = {}
    for row in rows:
        groups.setdefault((row.version, row.fault), []).append(row)
    cells = [_cells(version, fault, group) for (version, fault), group in groups.items()]
    commands = "\n".join(f"- {row.date}: `{row.command}`" for row in {row.command: row for row in rows}.values())
    mixed = [row for row in rows if row.together]
    seeds = "\n".join(f"- RabbitMQ {row.version}, seed {row.seed}: {', '.join(row.together)}" for row in mixed)
    head = [HEAD, ["---"] * len(HEAD)]
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
