"""What was found in trials, as lines of JSON that are kept, and as a table for people.

The JSON stays on the machine of the trials. A line of the table that it knows nothing of, because it is of another
machine or of another time, stays on the page as it was.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

BEGIN = "<!-- faults: begin; written by make faults, edits are lost -->"
END = "<!-- faults: end -->"
KUBERNETES_BEGIN = "<!-- faults of Kubernetes: begin; written by make faults, edits are lost -->"
KUBERNETES_END = "<!-- faults of Kubernetes: end -->"
HEAD = (
    "RabbitMQ", "fault", "runs", "messages", "waiting", "lost", "stuck", "wrong", "run twice", "parked twice",
    "cut short", "astray", "destroyed by hand", "recovered after, s", "latest retry, s",
)  # fmt: skip
WHOLE = "whole again after, s"
UNKNOWN, NEVER = "–", "never"
_BY_SEED = "- RabbitMQ "


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
    waiting: int | None = None  # once nobody told


@dataclass(frozen=True)
class Report:
    """What a page says: its commands, its lines by release and fault, each by title, and what was broken together."""

    commands: tuple[str, ...] = ()
    lines: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    seeds: tuple[str, ...] = ()


NOTHING = Report()


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
        waiting=counted.waiting,
    )


def write_row(row: Row) -> str:
    return json.dumps(asdict(row))


def read_rows(text: str) -> list[Row]:
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    tuples = ("recoveries", "together", "whole")
    return [Row(**{**line, **{name: tuple(line.get(name, ())) for name in tuples}}) for line in lines]


def place(page: str, report: str, *, begin: str = BEGIN, end: str = END) -> str:
    """Put the report between the page's markers; ValueError where it has none."""
    before, _, after = _cut(page, begin, end)
    return f"{before}{begin}\n\n{report}\n{end}{after}"


def read_report(page: str, *, begin: str = BEGIN, end: str = END) -> Report:
    """Read what the page says between its markers; a title that it does not have yet is missing in its lines."""
    told = _cut(page, begin, end)[1].splitlines()
    listed = [line for line in told if line.startswith("- ")]
    titles, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in told if line[:1] == "|"] or [[]]
    named = [dict(zip(titles, cells, strict=True)) for cells in lines[1:]]
    return Report(
        commands=tuple(line for line in listed if not line.startswith(_BY_SEED)),
        lines={(line[HEAD[0]], line[HEAD[1]]): line for line in named},
        seeds=tuple(line for line in listed if line.startswith(_BY_SEED)),
    )


def _cut(page: str, begin: str, end: str) -> tuple[str, str, str]:
    before, has_begin, rest = page.partition(begin)
    within, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"the page has no place for the report: give it the lines {begin!r} and {end!r}")
    return before, within, after


def render(rows: Sequence[Row], *, whole: bool = False, before: Report = NOTHING) -> str:
    """Write the whole report in Markdown; `whole` adds how long it took until all was as before.

    What the page said before stays where no row is of the same release and fault.
    """
    groups = {}
    for row in rows:
        groups.setdefault((row.version, row.fault), []).append(row)
    titles = [*HEAD, *[WHOLE] * whole]
    cells = {key: _cells(*key, group) + [_longest(group)] * whole for key, group in groups.items()}
    kept = {key: [line.get(title, UNKNOWN) for title in titles] for key, line in before.lines.items()}
    commands = dict.fromkeys([*before.commands, *(f"- {row.date}: `{row.command}`" for row in rows)])
    mixed = [row for row in rows if row.together]
    again = tuple(f"{_BY_SEED}{row.version}, " for row in mixed)
    seeds = [line for line in before.seeds if not line.startswith(again)]
    seeds += [f"{_BY_SEED}{row.version}, seed {row.seed}: {', '.join(row.together)}" for row in mixed]
    table = [titles, ["---"] * len(titles), *{**kept, **cells}.values()]
    parts = ["\n".join(commands), "\n".join(f"| {' | '.join(line)} |" for line in table)]
    if seeds:
        parts.append("What was broken together, by seed:\n\n" + "\n".join(seeds))
    return "\n\n".join(parts) + "\n"


def _cells(version: object, fault: object, rows: Sequence[Row]) -> list[str]:
    names = ("lost", "stuck", "wrong", "repeated", "doubled", "cut_short", "astray", "destroyed")
    sums = [f"{sum(getattr(row, name) for row in rows):,}" for name in names]
    messages, latest = sum(row.messages for row in rows), max(row.lateness for row in rows)
    told = [str(version), str(fault), str(len(rows)), f"{messages:,}", _waiting(rows)]
    return [*told, *sums, _recovered([one for row in rows for one in row.recoveries]), f"{latest:.1f}"]


def _waiting(rows: Sequence[Row]) -> str:
    """Claim that nothing waited only where that was told of every trial."""
    waiting = sum(row.waiting or 0 for row in rows)
    return f"{waiting:,}" if waiting or all(row.waiting is not None for row in rows) else UNKNOWN


def _recovered(recoveries: Sequence[float | None]) -> str:
    """Give the median and the longest; a trial in which nothing was handled any more is longer than any."""
    known = sorted(one for one in recoveries if one is not None)
    longest = NEVER if None in recoveries else f"{known[-1]:.1f}" if known else UNKNOWN
    return f"{known[len(known) // 2]:.1f} ({longest})" if known else longest


def _longest(rows: Sequence[Row]) -> str:
    return f"{max((one for row in rows for one in row.whole), default=0.0):.1f}"
