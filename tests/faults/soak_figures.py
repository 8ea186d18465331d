"""What was found in an hour's work, as tables for people."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from faults import figures
from faults.accounting import Account, Complaint
from faults.flatness import Course

BEGIN = "<!-- soak: begin; written by make soak, edits are lost -->"
END = "<!-- soak: end -->"
KUBERNETES_BEGIN = "<!-- soak of Kubernetes: begin; written by make soak, edits are lost -->"
KUBERNETES_END = "<!-- soak of Kubernetes: end -->"
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Soak:
    """One run. The courses are by what they are of and what they are; None had too few samples to be judged.

    What was wrong beside the account and the courses is told in words.
    """

    version: str
    seed: int
    date: str
    command: str
    minutes: float
    account: Account
    deaths: int
    faults: tuple[str, ...]
    courses: Mapping[tuple[str, str], Course | None]
    wrong: tuple[str, ...] = ()

    @property
    def complaints(self) -> list[Complaint | str]:
        growing = [f"{who}: {what} is not flat" for (who, what), one in self.courses.items() if one and not one.is_flat]
        unknown = [f"{who}: {what} was hardly ever seen" for (who, what), one in self.courses.items() if one is None]
        unwatched = [] if self.courses else ["nothing was watched"]
        return [*self.account.complaints, *growing, *unknown, *unwatched, *self.wrong]

    @property
    def is_right(self) -> bool:
        return not (self.complaints or self.account.lost or self.account.waiting)


def place(page: str, report: str, *, begin: str = BEGIN, end: str = END) -> str:
    """Put the report between the page's markers; ValueError where it has none."""
    return figures.place(page, report, begin=begin, end=end)


def render(soak: Soak) -> str:
    """Write the whole report in Markdown."""
    counted = soak.account
    times = Counter(soak.faults)
    broken = ", ".join(f"{name} ({times[name]})" for name in sorted(times))
    account = {
        "messages": counted.messages, "handled": counted.handled, "dead": counted.dead, "waiting": counted.waiting,
        "lost": counted.lost, "stuck": counted.stuck, "wrong": len(counted.complaints) + len(soak.wrong),
        "run twice": counted.repeated, "parked twice": counted.doubled, "cut short": counted.cut_short,
        "astray": counted.astray, "workers died": soak.deaths,
    }  # fmt: skip
    parts = [
        f"- {soak.date}: `{soak.command}`, RabbitMQ {soak.version}, seed {soak.seed}, {soak.minutes:.0f} minutes",
        f"- {len(soak.faults)} faults: {broken}",
    ]
    sums = _table([list(account), [f"{value:,}" for value in account.values()]])
    head = ["of", "what", "at first", "at last", "most", "rise", "allowed", "course", "flat"]
    lines = [_line(who, what, one) for (who, what), one in soak.courses.items()]
    return "\n".join(parts) + "\n\n" + sums + "\n\n" + _table([head, *lines]) + "\n"


def _line(who: str, what: str, course: Course | None) -> list[str]:
    if course is None:
        return [who, what, *["–"] * 6, "not judged"]
    numbers = (course.medians[0], course.medians[-1], course.most, course.rise, course.allowed)
    verdict = "yes" if course.is_flat else "**no**"
    return [who, what, *(f"{number:,.1f}" for number in numbers), sparkline(course.medians), verdict]


def sparkline(values: tuple[float, ...]) -> str:
    """Draw the medians of the windows, from nothing up to the largest: what is flat looks flat."""
    top = max(values)
    if top <= 0:
        return _BARS[0] * len(values)
    return "".join(_BARS[min(len(_BARS) - 1, int(max(0.0, value) / top * (len(_BARS) - 1) + 0.5))] for value in values)


def _table(lines: list[list[str]]) -> str:
    head, *rest = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rest])
