"""Figures as Markdown, and the place in a page that they are written into.

With several rounds a figure is the median, and the lowest and highest stand beside it. The same text goes to the
terminal and, between two markers, into a page of the documentation: a figure that was copied by hand is soon a figure
of another run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from bench.errors import Abandoned
from bench.measure import median

QUIET = 0.3  # cores used by other programs

Row = TypeVar("Row")


class Losing(Protocol):
    """A row that says who lost how many messages."""

    @property
    def contender(self) -> str: ...

    @property
    def lost(self) -> int: ...


def warn_of_others(busy: Iterable[float], what_suffers: str) -> str:
    """Say it where figures are more the machine's than ours; on a quiet machine there is nothing to say."""
    most = max(busy, default=0.0)
    if most <= QUIET:
        return ""
    return (
        f"**Taken on a busy machine**: other programs used up to {most:.1f} of its cores. {what_suffers} say little, "
        "not even as ratios; CPU for a message suffers less, memory hardly."
    )


@dataclass(frozen=True)
class Section:
    """The part of a page that one bench writes; people write the rest."""

    bench: str

    @property
    def begin(self) -> str:
        return f"<!-- {self.bench}: begin; written by the bench, edits are lost -->"

    @property
    def end(self) -> str:
        return f"<!-- {self.bench}: end -->"

    def require(self, page: Path) -> None:
        text = page.read_text() if page.exists() else ""
        if not 0 <= text.find(self.begin) < text.find(self.end):
            raise Abandoned(f"{page} has no place for the report: give it the lines {self.begin!r} and {self.end!r}")

    def replace(self, page: Path, text: str) -> None:
        """Put the report between the page's markers."""
        before, _, after = self._parts(page)
        page.write_text(f"{before}{self.begin}\n\n{text}\n{self.end}{after}")

    def add(self, page: Path, text: str, *, picture: str = "") -> None:
        """Put the report on top of those between the markers; where it has a `picture`, this is no longer theirs."""
        _, kept, _ = self._parts(page)
        lines = kept.splitlines()
        if picture:
            shows = picture[picture.index("](") :]
            lines = [line for line in lines if not (line.startswith("![") and line.endswith(shows))]
        self.replace(page, "\n\n".join(part for part in (text.rstrip(), "\n".join(lines).strip()) if part) + "\n")

    def has(self, page: Path, heading: str) -> bool:
        """Say whether a run stands there already, by the heading that tells it from the others."""
        _, kept, _ = self._parts(page)
        return heading in kept.splitlines()

    def _parts(self, page: Path) -> tuple[str, str, str]:
        """Give what stands before the markers, between them and after them."""
        before, _, rest = page.read_text().partition(self.begin)
        kept, _, after = rest.partition(self.end)
        return before, kept, after


def count_lost(rows: Iterable[Losing]) -> dict[str, int]:
    """Say who lost how many messages, of those that lost any."""
    losses: dict[str, int] = {}
    for row in rows:
        if row.lost:
            losses[row.contender] = losses.get(row.contender, 0) + row.lost
    return losses


def tell_losses(losses: Mapping[str, int], ours: Callable[[str], bool]) -> str:
    """Say it in words, too: a figure in one of many columns is overlooked."""
    said = [f"{count:,} by `{name}`{', which is Redrive' if ours(name) else ''}" for name, count in losses.items()]
    return f"**Messages were lost**: {'; '.join(said)}." if said else ""


def list_skipped(reasons: Sequence[str]) -> str:
    return "\n".join(("Not measured:\n", *(f"- {reason}" for reason in reasons))) if reasons else ""


def ratio(values: Sequence[float], measure: Sequence[float]) -> str:
    """Divide the medians; there is none where the measure was not taken."""
    return f"{median(values) / median(measure):.2f}" if measure and median(measure) else "–"


def spread(values: Sequence[float], form: str) -> str:
    """Write the median, and the lowest and highest of several rounds."""
    middle = f"{median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}}–{max(values):{form}})"


def grouped(
    rows: Iterable[Row], key: Callable[[Row], tuple[object, ...]]
) -> list[tuple[tuple[object, ...], list[Row]]]:
    """Gather equal ones in the order of their first; contenders stay in the order in which they were named."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.items())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    lines = (" | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in (head, *rows))
    first, *others = (f"| {line} |" for line in lines)
    rule = "|".join(f"{'-' * (width + 1)}:" for width in widths)
    return "\n".join((first, f"|{rule}|", *others))
