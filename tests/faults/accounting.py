"""Accounts for every message that was published: handled, dead as it should be, waiting; or something is wrong.

Pure: published messages, notes of runs, dead letters and what waits go in, an account comes out. A message may be run
twice when something was broken while it lived (the crash window of the promise), and never else. Nothing else is
excused: every step from one attempt to the next must be shown by a failure that somebody noted.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from faults.scripts import FAILING, HANDLED, MAX_ATTEMPTS, MAX_CRASHES, Script, dies, succeeds


@dataclass(frozen=True)
class Published:
    """A message that the broker has confirmed. `sent` is how often it was published until it was."""

    script: Script
    at: float
    sent: int = 1


@dataclass(frozen=True)
class Run:
    """One run of the handler; one that was killed has no end."""

    message: str
    attempt: int
    what: str
    began: float
    ended: float | None
    snoozes: int = 0
    suspect: bool = False


@dataclass(frozen=True)
class Letter:
    """A dead letter as it was found."""

    message: str
    reason: str | None
    attempt: int
    crashes: int = 0
    failed_by: str | None = None


@dataclass(frozen=True)
class Disturbance:
    """Something that was broken, from when to when, and how many messages were destroyed on purpose by it.

    While one lasts that `takes_back`, the broker may take messages away from workers that live. A `gentle` one kills
    nobody and breaks no connection, so it excuses nothing. `mended` is when the last hand was laid to it, if it took
    longer until all was as before.
    """

    name: str
    began: float
    healed: float
    destroyed: int = 0
    takes_back: bool = False
    gentle: bool = False
    mended: float | None = None

    @property
    def whole_after(self) -> float:
        """Say how long it took after the mending until all was as before."""
        return 0.0 if self.mended is None else self.healed - self.mended


@dataclass(frozen=True)
class Findings:
    """All that was found after a trial.

    `stuck` waited too, and came only when their queue got another leader. `timed_out` are attempts that a worker ended,
    by id and number; `deaths` are the times at which workers died.
    """

    published: Mapping[str, Published]
    runs: Sequence[Run]
    letters: Sequence[Letter]
    waiting: Collection[str] = ()
    stuck: Collection[str] = ()
    timed_out: Collection[tuple[str, int]] = ()
    disturbances: Sequence[Disturbance] = ()
    deaths: Sequence[float] = ()


class Wrong(StrEnum):
    """What can be wrong with a message."""

    LOST = "lost"
    STUCK = "held for nobody"
    WRONGLY_PARKED = "wrongly parked"
    SKIPPED = "an attempt was skipped"
    OVERSPENT = "an attempt was spent without a failure"
    REPEATED = "run again though nothing was broken"
    CUT_SHORT = "a run was cut short though nothing was broken"
    DOUBLED = "parked twice though nothing was broken"
    UNKNOWN = "nobody published it"
    FORBIDDEN = "run though it cannot be read"


@dataclass(frozen=True)
class Complaint:
    """One wrong thing about one message."""

    message: str
    wrong: Wrong
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.message}: {self.wrong}{f' ({self.detail})' if self.detail else ''}"


@dataclass(frozen=True)
class Account:
    """The sum. `repeated` and `doubled` are duplicates; `astray` was parked against its script, with a reason."""

    messages: int
    handled: int
    dead: int
    waiting: int
    stuck: int
    missing: int
    destroyed: int
    repeated: int
    doubled: int
    cut_short: int
    astray: int
    complaints: tuple[Complaint, ...] = field(default=())

    @property
    def lost(self) -> int:
        """What is missing and was not destroyed on purpose: a purged queue tells how many it had, not which."""
        return max(0, self.missing - self.destroyed)


def account(found: Findings) -> Account:
    """Add it all up; whatever cannot be explained is a complaint."""
    runs, letters = _by_message(found.runs), _by_message(found.letters)
    unknown = (set(runs) | set(letters)) - set(found.published)
    complaints = [Complaint(name, Wrong.UNKNOWN) for name in sorted(unknown)]
    counts: Counter[str] = Counter()
    for name, published in found.published.items():
        case = _Case(name, published, sorted(runs[name], key=lambda run: run.began), letters[name], found)
        complaints += case.judge(counts)
    destroyed = sum(one.destroyed for one in found.disturbances)
    excused = counts["missing"] <= destroyed
    return Account(
        messages=len(found.published),
        handled=counts["handled"],
        dead=counts["dead"],
        waiting=counts["waiting"],
        stuck=counts["stuck"],
        missing=counts["missing"],
        destroyed=destroyed,
        repeated=counts["repeated"],
        doubled=counts["doubled"],
        cut_short=counts["cut short"],
        astray=counts["astray"],
        complaints=tuple(one for one in complaints if not (excused and one.wrong is Wrong.LOST)),
    )


@dataclass(frozen=True)
class _Case:
    name: str
    published: Published
    runs: Sequence[Run]
    letters: Sequence[Letter]
    found: Findings

    def judge(self, counts: Counter[str]) -> Iterable[Complaint]:
        yield from self._fate(counts)
        for letter in self.letters:
            yield from self._parked(letter)
        yield from self._attempts()
        yield from self._duplicates(counts)

    def _fate(self, counts: Counter[str]) -> Iterable[Complaint]:
        handled = any(succeeds(run.what) and run.ended is not None for run in self.runs)
        counts["handled"] += handled
        counts["dead"] += bool(self.letters) and not handled
        counts["astray"] += any(letter.reason != self.published.script.fate for letter in self.letters)
        if handled or self.letters:
            return
        if self.name in self.found.waiting:
            counts["waiting"] += 1
        elif self.name in self.found.stuck:
            counts["stuck"] += 1
            yield self._complain(Wrong.STUCK, self._story())
        else:
            counts["missing"] += 1
            yield self._complain(Wrong.LOST, f"of {len(self.runs)} runs the last was {self.runs[-1:] or 'none'}")

    def _parked(self, letter: Letter) -> Iterable[Complaint]:
        """Look for what a letter's reason claims; the script does not matter where the notes show it."""
        match letter.reason:
            case "Exhausted":
                shown = letter.attempt == MAX_ATTEMPTS and all(map(self._failed, range(1, MAX_ATTEMPTS + 1)))
            case "Rejected":
                shown = any(run.what == "reject" and run.attempt == letter.attempt for run in self.runs)
            case "Unreadable":
                shown = not self.published.script.is_readable and letter.attempt == 1
            case "Crashed":
                shown = letter.crashes == MAX_CRASHES and self._deaths() >= MAX_CRASHES
            case _:
                shown = False
        if not shown:
            yield self._complain(Wrong.WRONGLY_PARKED, f"{letter}; {self._story()}")

    def _deaths(self) -> int:
        """Count what looks like a death over this message to whoever gets it next.

        That is a run without an end, and a worker that died with it in its hands before it ran. Where the broker takes
        a message from a worker that lives and gives it to another, that one cannot know better either. Of a message
        that was neither cut short nor a suspect, only what ran again counts: nobody else is to blame for it.
        """
        unfinished = sum(run.ended is None for run in self.runs)
        taken = sum(one.takes_back and one.healed >= self.published.at for one in self.found.disturbances)
        again = sum(run.ended is not None for run, _ in self._repetitions()) if taken else 0
        if not unfinished and not any(run.suspect for run in self.runs):
            return again
        return unfinished + again + taken + sum(death > self.published.at for death in self.found.deaths)

    def _attempts(self) -> Iterable[Complaint]:
        if self.runs and not self.published.script.is_readable:
            yield self._complain(Wrong.FORBIDDEN)
        last = max((one.attempt for one in (*self.runs, *self.letters)), default=1)
        for attempt in range(1, last):
            if not self._noted(attempt):
                yield self._complain(Wrong.SKIPPED, f"{attempt} of {last}; {self._story()}")
            elif not self._failed(attempt):
                yield self._complain(Wrong.OVERSPENT, f"{attempt} of {last}; {self._story()}")

    def _duplicates(self, counts: Counter[str]) -> Iterable[Complaint]:
        for run, again in self._repetitions():
            excused = self._is_excused(again.began)
            if run.ended is not None:
                counts["repeated"] += 1
                if not excused:
                    yield self._complain(Wrong.REPEATED, self._story())
            elif not dies(run.what):
                counts["cut short"] += 1
                if not excused:
                    yield self._complain(Wrong.CUT_SHORT, self._story())
        doubled = max(0, len(self.letters) - 1)
        counts["doubled"] += doubled
        if doubled and not self._is_excused(float("inf")):
            yield self._complain(Wrong.DOUBLED)

    def _repetitions(self) -> Iterable[tuple[Run, Run]]:
        """Pair the runs of one attempt, and of one snooze of it, each with the next."""
        same = defaultdict(list)
        for run in self.runs:
            same[run.attempt, run.snoozes].append(run)
        for several in same.values():
            yield from pairwise(several)

    def _is_excused(self, until: float) -> bool:
        """Say whether something was broken while this message lived, or its publisher sent it twice."""
        harsh = (one for one in self.found.disturbances if not one.gentle)
        during = (one.began < until and one.healed >= self.published.at for one in harsh)
        return self.published.sent > 1 or any(during)

    def _noted(self, attempt: int) -> bool:
        return (self.name, attempt) in self.found.timed_out or any(run.attempt == attempt for run in self.runs)

    def _failed(self, attempt: int) -> bool:
        if (self.name, attempt) in self.found.timed_out:
            return True
        return any(run.attempt == attempt and run.what in FAILING for run in self.runs)

    def _story(self) -> str:
        return ", ".join(
            f"{run.attempt}.{run.snoozes} {run.what}{'' if run.ended is not None else ' †'}" for run in self.runs
        )

    def _complain(self, wrong: Wrong, detail: str = "") -> Complaint:
        return Complaint(self.name, wrong, detail)


def recovery_seconds(found: Findings, disturbance: Disturbance) -> float | None:
    """Say how long after the mending the first message that was published after it was handled."""
    since = disturbance.healed if disturbance.mended is None else disturbance.mended
    later = {name for name, one in found.published.items() if one.at > since and one.script.fate == HANDLED}
    ends = [run.ended for run in found.runs if run.message in later and run.ended is not None and succeeds(run.what)]
    return min(ends) - since if ends else None


def lateness_seconds(found: Findings, delay: float) -> float:
    """Say by how much the latest retry came after its delay, waiting in the queue included."""
    ends, latest = {}, 0.0
    for run in sorted(found.runs, key=lambda run: run.began):
        before = ends.get((run.message, run.attempt - 1))
        if before is not None and (run.message, run.attempt) not in ends:
            latest = max(latest, run.began - before - delay)
        if run.what == "fail" and run.ended is not None:
            ends.setdefault((run.message, run.attempt), run.ended)
    return latest


def _by_message(several: Sequence) -> defaultdict:
    found = defaultdict(list)
    for one in several:
        found[one.message].append(one)
    return found
