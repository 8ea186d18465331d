"""Judges a consumer's pods together: which have no place, and why; and, apart from them, which crash in a loop.

A worker is unplaced when it has had no place, or could not be started, for longer than the grace. What takes long is no
failure by itself: a pod that its node sets up without a word is counted only if one of its events tells of a failure.
So no pod is counted twice, and one that may start any moment is not counted at all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from redrive_operator.causes import PlacementCause
from redrive_operator.diagnosis import diagnose_event, diagnose_refusal, tidy
from redrive_operator.observation import Crashing, Unplaced
from redrive_operator.pods import Crash, Hindrance, PodSeen

# Of a container that does not wait for its next start, so many restarts make a loop.
FEWEST_RESTARTS = 2

# A start may last ten minutes before the probe ends it, so a loop can turn as slowly as this. What ran for longer than
# that is in none; nor is a worker that crashed longer ago and is not ready now, because its broker is away.
SLOWEST_LOOP = timedelta(minutes=15)

# A worker that is ready has come out of a loop when it has run for this long, and for twice as long as the last time.
# Otherwise, in a loop that turns slowly, each turn would be told as a recovery.
SHORTEST_RECOVERY = timedelta(seconds=60)

_CAUSES = [*PlacementCause]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Pods that are not even created: what the API server said, and since when it does."""

    message: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Note:
    """The newest warning among a pod's events."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PlacementSeen:
    """What was judged. Of `unexplained` pods only their events can tell whether anything is wrong with them.

    They stay among these when a note has told it, so that it is asked for again, and are then unplaced as well.
    """

    unplaced: tuple[Unplaced, ...] = ()
    waiting: int = 0
    unexplained: tuple[PodSeen, ...] = ()
    crashing: Crashing | None = None


def judge_placement(
    pods: Iterable[PodSeen],
    *,
    wanted: int,
    exist: int,
    refusal: Refusal | None,
    grace: timedelta,
    now: datetime,
    notes: Mapping[str, Note],
) -> PlacementSeen:
    """Judge the pods of one consumer: `wanted` are asked for, `exist` are there; `notes` are by a pod's uid."""
    alive = sorted((pod for pod in pods if not (pod.deleting or pod.ended)), key=lambda pod: (pod.key, pod.uid))
    hindered = [(pod, pod.hindrance) for pod in alive if pod.hindrance is not None and not _is_looping(pod, now)]
    counted = [(_explain(hindrance, notes.get(pod.uid)), 1) for pod, hindrance in hindered]
    if refusal is not None and wanted > 0:
        # In a rollout as many may exist as are wanted, and those be refused that would replace them.
        counted.append((_read_refusal(refusal), max(1, wanted - exist)))

    def is_over(hindrance: Hindrance) -> bool:
        return now - hindrance.since > grace

    return PlacementSeen(
        unplaced=_group((hindrance, number) for hindrance, number in counted if is_over(hindrance)),
        waiting=sum(number for hindrance, number in counted if not is_over(hindrance)),
        unexplained=tuple(pod for pod, hindrance in hindered if hindrance.cause is None and is_over(hindrance)),
        crashing=_sum_up([pod for pod in alive if _is_looping(pod, now)]),
    )


def _explain(hindrance: Hindrance, note: Note | None) -> Hindrance:
    """Say what its events tell of a pod of which its status tells nothing."""
    cause = None if note is None else diagnose_event(note.reason, note.message)
    if hindrance.cause is not None or note is None or cause is None:
        return hindrance
    return Hindrance(cause, tidy(f"{note.reason}: {note.message}"), hindrance.since)


def _read_refusal(refusal: Refusal) -> Hindrance:
    return Hindrance(diagnose_refusal(refusal.message), tidy(refusal.message), refusal.since)


def _group(failed: Iterable[tuple[Hindrance, int]]) -> tuple[Unplaced, ...]:
    """Count by cause, the most frequent first, in the words of whoever has waited longest: they change least."""
    counts: dict[PlacementCause, int] = {}
    words: dict[PlacementCause, str] = {}
    for hindrance, number in sorted(failed, key=lambda one: one[0].since):
        if hindrance.cause is not None:
            counts[hindrance.cause] = counts.get(hindrance.cause, 0) + number
            words.setdefault(hindrance.cause, hindrance.message)
    ranked = sorted(counts, key=lambda cause: (-counts[cause], _CAUSES.index(cause)))
    return tuple(Unplaced(cause, counts[cause], words[cause]) for cause in ranked)


def _is_looping(pod: PodSeen, now: datetime) -> bool:
    """Say whether it starts and crashes, again and again. One that cannot be started does not get that far."""
    crash, hindrance = pod.crash, pod.hindrance
    if crash is None or (hindrance is not None and hindrance.cause is not None):
        return False
    return crash.waiting or (pod.restarts >= FEWEST_RESTARTS and _is_fresh(crash, now, is_ready=pod.ready))


def _is_fresh(crash: Crash, now: datetime, *, is_ready: bool) -> bool:
    """Say whether a crash belongs to a loop that has not been left."""
    if crash.ended is None or now - crash.ended >= SLOWEST_LOOP:
        return False
    ran = timedelta(0) if crash.started is None else crash.ended - crash.started
    recovers = max(SHORTEST_RECOVERY, 2 * ran)
    has_recovered = is_ready and crash.resumed is not None and now - crash.resumed >= recovers
    return ran < SLOWEST_LOOP and not has_recovered


def _sum_up(looping: Sequence[PodSeen]) -> Crashing | None:
    for pod in looping:
        if pod.crash is not None:
            return Crashing(len(looping), pod.key.name, pod.crash.message)
    return None
