"""Accounts for every message that was published: handled, dead as it should be, waiting; or something is wrong.

Pure: published messages, notes of runs, dead letters and what waits go in, an account comes out. A message may be run
twice when something was broken while it lived (the crash window of the promise), and never else. Nothing else is
excused: every step from one attempt to the next must be shown by a failure that somebody noted. Nor is anything excused
without end: what was broken a few times makes a few runs more of one message, and a few hundred of all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from faults.findings import Disturbance, Findings, Letter, Published, Run
from faults.scripts import FAILING, HANDLED, MAX_ATTEMPTS, MAX_CRASHES, dies, dies_always, succeeds

from redrive.runtime.prefetch import MOST_AHEAD

# The most that a worker of a trial holds: what its four handlers run, and what is fetched ahead. When it dies, or when
# its connection breaks, so many may be there twice.
HELD = 4 + MOST_AHEAD

# A rung that is interrupted sends so many again.
HELD_BY_A_RUNG = 32

# Of one message there may already be two, and both may be in the way of what breaks.
AT_ONCE = 2

# Whoever notes a death notes it a little late, and clocks are read in different processes.
SLACK_SECONDS = 5.0


class Wrong(StrEnum):
    """What can be wrong with a message."""

    LOST = "lost"
    WAITING = "still waiting when all had come to rest"
    STUCK = "held for nobody"
    WRONGLY_PARKED = "wrongly parked"
    SKIPPED = "an attempt was skipped"
    OVERSPENT = "an attempt was spent without a failure"
    BEYOND = "run after its last attempt"
    REPEATED = "run again though nothing was broken"
    CUT_SHORT = "a run was cut short though nothing was broken"
    TOO_OFTEN = "run more often than what was broken explains"
    DOUBLED = "parked twice, or handled and parked, though nothing was broken"
    LATE = "later than what was broken explains"
    SPARED = "destroyed by hand and yet not missing"
    UNRECOVERED = "nothing that came after the mending was handled"
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
    """The sum. `repeated` and `doubled` are duplicates; `astray` was parked against its script, with a reason.

    What was handled while its twin was parked is `doubled` as well as what was parked twice.
    """

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
    complaints += _judge_all(found, counts["twins"])
    complaints += _judge_lateness(found)
    complaints += _judge_destroyed(found, counts["missing"])
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


def _judge_all(found: Findings, twins: int) -> Iterable[Complaint]:
    """Compare the messages that ran twice with what can have been in anybody's hands when something broke."""
    harsh = [one for one in found.disturbances if not one.gentle]
    held = _held(found, harsh)
    if harsh and twins > held:
        yield Complaint("all together", Wrong.TOO_OFTEN, f"{twins} ran twice, of {held} that were held")


def _judge_destroyed(found: Findings, missing: int) -> Iterable[Complaint]:
    """Compare what was destroyed by hand with what is missing: what is not had a twin, and a loss may hide behind each.

    Who destroys makes no twins: no worker is there, or what may go on meanwhile is counted as `escaping`.
    """
    destroyed = sum(one.destroyed for one in found.disturbances)
    others = [one for one in found.disturbances if not one.gentle and not one.destroyed]
    explained = _held(found, others) + len(found.deaths) * HELD + sum(one.escaping for one in found.disturbances)
    if destroyed - missing > explained:
        told = f"{destroyed} were destroyed, {missing} are missing, {explained} may have had a twin"
        yield Complaint("all together", Wrong.SPARED, told)


def _held(found: Findings, broken: Iterable[Disturbance]) -> int:
    """Count what can have been in anybody's hands when these broke, and what its publisher sent again."""
    held = sum(one.breaks * (HELD * (found.workers if one.takes_back else 1) + HELD_BY_A_RUNG) for one in broken)
    return held + sum(one.sent - 1 for one in found.published.values())


def _judge_lateness(found: Findings) -> Iterable[Complaint]:
    """Compare the latest retry with what is known of everything that was broken; if nothing was, nobody was bound."""
    allowed = [one.max_lateness for one in found.disturbances]
    known = [seconds for seconds in allowed if seconds is not None]
    if not known or len(known) < len(allowed):
        return
    late = lateness_seconds(found)
    if late > max(known):
        yield Complaint("all together", Wrong.LATE, f"the latest retry by {late:.1f} s, not {max(known):.0f} s")


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
        yield from self._too_often()

    @property
    def _handled(self) -> bool:
        return any(succeeds(run.what) and run.ended is not None for run in self.runs)

    def _fate(self, counts: Counter[str]) -> Iterable[Complaint]:
        handled = self._handled
        counts["handled"] += handled
        counts["dead"] += bool(self.letters) and not handled
        counts["astray"] += any(letter.reason != self.published.script.fate for letter in self.letters)
        if handled or self.letters:
            return
        if self.name in self.found.waiting:
            # Nothing is told to sleep for longer than the rest lasts: whatever waits, nobody takes.
            counts["waiting"] += 1
            yield self._complain(Wrong.WAITING, self._story())
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
                shown = letter.crashes == MAX_CRASHES and self._deaths(letter) >= MAX_CRASHES
            case _:
                shown = False
        if not shown:
            yield self._complain(Wrong.WRONGLY_PARKED, f"{letter}; {self._story()}")

    def _deaths(self, letter: Letter) -> int:
        """Count what looked like a death over this message to whoever got it next, until it was parked.

        That is a run without an end, and a worker that died with it in its hands before it ran. Where the broker takes
        a message from a worker that lives and gives it to another, that one cannot know better either. Of a message
        that was neither cut short nor a suspect, only what ran again counts: nobody else is to blame for it.
        """
        until = self._until(letter)
        runs = [run for run in self.runs if run.began <= until]
        unfinished = sum(run.ended is None for run in runs)
        taken = sum(
            one.takes_back and one.healed >= self.published.at and one.began <= until for one in self.found.disturbances
        )
        again = sum(run.ended is not None for run, _ in _repetitions(runs)) if taken else 0
        if not unfinished and not any(run.suspect for run in runs):
            return again
        return unfinished + again + taken + sum(self.published.at < death <= until for death in self.found.deaths)

    def _until(self, letter: Letter) -> float:
        """Say until when a letter's message lived; a clock by which that was before it was published is put back."""
        if letter.dead_at is None or letter.dead_at < self.published.at - SLACK_SECONDS:
            return float("inf")
        return letter.dead_at + SLACK_SECONDS

    def _attempts(self) -> Iterable[Complaint]:
        if self.runs and not self.published.script.is_readable:
            yield self._complain(Wrong.FORBIDDEN)
        last = max((one.attempt for one in (*self.runs, *self.letters)), default=1)
        for attempt in range(1, last):
            if not self._noted(attempt):
                yield self._complain(Wrong.SKIPPED, f"{attempt} of {last}; {self._story()}")
            elif not self._failed(attempt):
                yield self._complain(Wrong.OVERSPENT, f"{attempt} of {last}; {self._story()}")
        if any(run.attempt > MAX_ATTEMPTS for run in self.runs):
            yield self._complain(Wrong.BEYOND, self._story())

    def _duplicates(self, counts: Counter[str]) -> Iterable[Complaint]:
        counts["twins"] += self._twins()
        for run, again in _repetitions(self.runs):
            excused = self._is_excused(again.began)
            if run.ended is not None:
                counts["repeated"] += 1
                if not excused:
                    yield self._complain(Wrong.REPEATED, self._story())
            elif not dies(run.what):
                counts["cut short"] += 1
                if not excused:
                    yield self._complain(Wrong.CUT_SHORT, self._story())
        doubled = max(0, len(self.letters) + self._handled - 1)
        counts["doubled"] += doubled
        if doubled and not self._is_excused(float("inf")):
            yield self._complain(Wrong.DOUBLED, f"{len(self.letters)} letters; {self._story()}")

    def _twins(self) -> int:
        """Say how many more of it there were than one: a twin goes through every further step by itself."""
        again = Counter((run.attempt, run.snoozes) for run, _ in _repetitions(self.runs) if run.ended is not None)
        return max(again.values(), default=0)

    def _too_often(self) -> Iterable[Complaint]:
        """Compare how often each step of it ran with how often something was broken meanwhile."""
        for runs in _by_step(self.runs):
            copies = max(self.published.sent, len(self.letters), 1)
            if dies_always(runs[0].what):
                # Each of it dies as often as it may. One more is run only where a death was not counted: something was
                # broken in that moment.
                allowed = copies * MAX_CRASHES + AT_ONCE * self._breaks(runs[0].began - SLACK_SECONDS, runs[-1].began)
            else:
                usual = 2 if dies(runs[0].what) else 1
                allowed = copies * usual + AT_ONCE * self._breaks(self.published.at, runs[-1].began)
            if len(runs) > allowed and (dies(runs[0].what) or self._is_excused(runs[-1].began)):
                yield self._complain(Wrong.TOO_OFTEN, f"{len(runs)}, not {allowed}; {self._story()}")

    def _breaks(self, since: float, until: float) -> int:
        """Count how often something was broken in between."""
        harsh = (one for one in self.found.disturbances if not one.gentle)
        return sum(one.breaks for one in harsh if one.began < until and one.healed >= since)

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


def _by_step(runs: Sequence[Run]) -> Iterable[Sequence[Run]]:
    """Put together the runs of one attempt, and of one snooze of it, in the order of time."""
    same = defaultdict(list)
    for run in runs:
        same[run.attempt, run.snoozes].append(run)
    return same.values()


def _repetitions(runs: Sequence[Run]) -> Iterable[tuple[Run, Run]]:
    """Pair the runs of one step, each with the next."""
    for several in _by_step(runs):
        yield from pairwise(several)


def recovery_seconds(found: Findings, disturbance: Disturbance) -> float | None:
    """Say how long after the mending the first message that was published after it was handled."""
    since = disturbance.healed if disturbance.mended is None else disturbance.mended
    later = {name for name, one in found.published.items() if one.at > since and one.script.fate == HANDLED}
    ends = [run.ended for run in found.runs if run.message in later and run.ended is not None and succeeds(run.what)]
    return min(ends) - since if ends else None


def lateness_seconds(found: Findings) -> float:
    """Say by how much the latest retry came after its delay, waiting in the queue included."""
    ends, latest = {}, 0.0
    delay = found.delay or 0.0
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
