"""What a Redrive does next, by its spec and how far it has come; and what each step makes of that.

Nothing is done here. Killed between any two of these steps, the next operator asks the same question and goes on:

- **Begin, then do.** `begin` is written before a letter is touched, `settle` after. What was begun counts against the
  limit, so that the limit holds over any number of kills; those that were begun and not counted are told to a person.
- **A canary must have been sent.** Of canaries only those that are known to be back count. A kill so sends up to
  `canary.count` more, because one that never left proves nothing.
- A Redrive that has ended has its `finished`, and is never asked again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from redrive.spec import Canary, Redrive
from redrive_operator.reasons import CompleteReason
from redrive_operator.redriving.progress import MOST_GROUPS, Group, Progress

# So much is begun at once: what the rate allows in these seconds, and so is the status no older than that.
CHUNK_SECONDS = 5
MOST_AT_ONCE = 10_000

# And no more than this share of the limit, so that a kill leaves at most so much of it undone.
LIMIT_SHARE = 20


@dataclass(frozen=True, slots=True)
class Count:
    """Look through all dead letters, and count what fits."""


@dataclass(frozen=True, slots=True)
class Move:
    """Put back or delete up to `most`, as canaries or as the rest."""

    most: int
    canary: bool = False


@dataclass(frozen=True, slots=True)
class Watch:
    """Look whether canaries have died again, and decide when it is `until`."""

    until: datetime


@dataclass(frozen=True, slots=True)
class End:
    """It is over; the reason is one of those that are the last."""

    reason: CompleteReason


Step = Count | Move | Watch | End


@dataclass(frozen=True, slots=True)
class Census:
    """What one look through all dead letters found. `died_again` are those that this Redrive itself had put back."""

    scanned: int = 0
    matched: int = 0
    skipped: int = 0
    died_again: int = 0
    groups: tuple[Group, ...] = ()


def next_step(redrive: Redrive, progress: Progress, *, exhausted: bool = False) -> Step:
    """Say what to do. `exhausted` means that the last look found none that is left to move."""
    if progress.matched is None:
        return Count()
    if redrive.dry_run:
        return End(CompleteReason.COUNTED)
    if not progress.matched and not progress.begun:
        return End(CompleteReason.NOTHING_MATCHED)
    room = _room(redrive, progress)
    if redrive.canary is not None and progress.canaries.decided is None:
        return _next_of_canaries(redrive, redrive.canary, progress, 0 if exhausted else room)
    if progress.canaries.died:
        return End(CompleteReason.CANARY_DIED)
    if exhausted:
        return End(CompleteReason.FINISHED)
    return Move(_chunk(redrive, room)) if room else End(CompleteReason.LIMIT_REACHED)


def _next_of_canaries(redrive: Redrive, canary: Canary, progress: Progress, room: int) -> Step:
    canaries = progress.canaries
    if canaries.died:
        return End(CompleteReason.CANARY_DIED)
    if room and canaries.sent < canary.count:
        return Move(_chunk(redrive, min(room, canary.count - canaries.sent)), canary=True)
    if progress.begun and canaries.since is not None:  # also those that only may have been sent
        return Watch(canaries.since + canary.timeout)
    return End(CompleteReason.FINISHED)  # what fitted when it was counted is gone


def counted(progress: Progress, census: Census, *, now: datetime) -> Progress:
    """Note what fits; a Redrive begins with that."""
    return replace(
        progress,
        started=progress.started or now,
        scanned=census.scanned,
        matched=census.matched,
        skipped=census.skipped,
        groups=census.groups[:MOST_GROUPS],
    )


def begin(progress: Progress, step: Move, *, now: datetime) -> Progress:
    """Note that so many may be moved from now on."""
    canaries = replace(progress.canaries, since=now) if step.canary else progress.canaries
    return replace(progress, begun=progress.begun + step.most, canaries=canaries)


def settle(progress: Progress, step: Move, *, moved: int, failed: int, unknown: int, now: datetime) -> Progress:
    """Note what became of the letters that were begun in this step. Those beside moved and unknown were not touched."""
    canaries = progress.canaries
    if step.canary and moved:
        canaries = replace(canaries, sent=canaries.sent + moved, since=now)
    return replace(
        progress,
        done=progress.done + moved,
        begun=progress.begun - step.most + moved + unknown,
        failed=failed,
        canaries=canaries,
    )


def watched(progress: Progress, *, died: int, now: datetime, until: datetime, idle: bool, whole: bool) -> Progress:
    """Note what a look at the canaries found, and decide if it is time to.

    While nobody consumes (`idle`), nothing can be learned, and the time begins anew; from a look that has not seen all
    (not `whole`), only that some have died.
    """
    canaries = replace(progress.canaries, died=died)
    if died or (now >= until and whole and not idle):
        canaries = replace(canaries, decided=now)
    elif idle:
        canaries = replace(canaries, since=now)
    return replace(progress, canaries=canaries)


def ended(progress: Progress, *, now: datetime) -> Progress:
    return replace(progress, started=progress.started or now, finished=now)


def pause_between_looks(canary: Canary, *, cost: timedelta) -> timedelta:
    """Say how long to wait between two looks at canaries: seldom enough that looking is a tenth of the time."""
    return max(timedelta(seconds=2), min(canary.timeout / 10, timedelta(seconds=15)), 10 * cost)


def find_next(waiting: Sequence[tuple[bool, datetime, str]]) -> int:
    """Choose whose turn it is, of (has begun, made at, name): who has begun, and then the oldest."""
    return min(range(len(waiting)), key=lambda place: (not waiting[place][0], waiting[place][1], waiting[place][2]))


def _room(redrive: Redrive, progress: Progress) -> int:
    return MOST_AT_ONCE if redrive.limit is None else max(0, redrive.limit - progress.begun)


def _chunk(redrive: Redrive, room: int) -> int:
    share = MOST_AT_ONCE if redrive.limit is None else -(-redrive.limit // LIMIT_SHARE)
    return min(room, share, redrive.rate * CHUNK_SECONDS, MOST_AT_ONCE)
