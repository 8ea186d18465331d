"""What came of killing workers and brokers, as lines of JSON that are kept, and as a table for people."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

BEGIN = "<!-- kills: begin; written by python -m bench.kills, edits are lost -->"
END = "<!-- kills: end -->"
HEAD = ("killed", "RabbitMQ", "who", "rounds", "messages", "lost", "left in a queue", "run twice", "ended by itself",
        "recovered after, s")  # fmt: skip
NAMES = {
    "process": "Redrive",
    "celery": "Celery, classic queue",
    "celery-quorum": "Celery, quorum queue",
    "dramatiq": "Dramatiq",
}


@dataclass(frozen=True)
class Kill:
    """One trial. `missing` did not succeed, and `left` is in some queue; `restarts` are of workers nobody killed."""

    version: str
    contender: str
    fault: str
    date: str
    messages: int
    missing: int
    left: int
    run_twice: int
    recovered: float | None
    restarts: int
    commit: str = ""  # older ones do not tell it

    @property
    def lost(self) -> int:
        return max(0, self.missing - self.left)


def save(kills: Sequence[Kill]) -> str:
    return "".join(json.dumps(asdict(kill)) + "\n" for kill in kills)


def load(text: str) -> list[Kill]:
    return [Kill(**json.loads(line)) for line in text.splitlines() if line.strip()]


def render(kills: Sequence[Kill], skipped: Sequence[str], *, versions: str, command: str) -> str:
    groups: dict[tuple[str, str, str], list[Kill]] = {}
    for kill in kills:
        groups.setdefault((kill.fault, kill.version, kill.contender), []).append(kill)
    lines = [_line(*key, several) for key, several in sorted(groups.items(), key=lambda item: item[0][:2])]
    dates = " and ".join(sorted({kill.date for kill in kills}))
    commits = " and ".join(f"commit {commit}" for commit in dict.fromkeys(kill.commit for kill in kills) if commit)
    told = [
        f"- {', '.join(word for word in (dates, commits) if word)}: `{command.strip()}`; {versions}",
        *(f"- given up: {what}" for what in skipped),
    ]
    table = [HEAD, ["---"] * len(HEAD), *lines]
    return "\n".join(told) + "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in table) + "\n"


def _line(fault: str, version: str, contender: str, kills: Sequence[Kill]) -> list[str]:
    known = [kill.recovered for kill in kills if kill.recovered is not None]
    sums = (
        sum(getattr(kill, name) for kill in kills) for name in ("messages", "lost", "left", "run_twice", "restarts")
    )
    recovered = f"{median(known):.1f} ({max(known):.1f})" if known else "–"
    return [fault, version, NAMES.get(contender, contender), str(len(kills)), *(f"{one:,}" for one in sums), recovered]


def place(page: str, report: str) -> str:
    """Put the report between the page's markers; ValueError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the report: give it the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{report}\n{END}{after}"
