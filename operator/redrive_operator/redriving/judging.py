"""The judgement of a Redrive: from how far it has come and what it does now, its status and what there is to tell.

Events follow from what the status said before: a restart of the operator repeats none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from redrive.errors import SpecError
from redrive.spec import Redrive, RedriveAction
from redrive_operator.events import Event, tell, tell_invalid
from redrive_operator.history import Judged, Past, write_conditions
from redrive_operator.judge import Verdict
from redrive_operator.reasons import (
    CompleteReason,
    ConditionType,
    EventReason,
    PausedReason,
    ProgressingReason,
)
from redrive_operator.redriving.course import End, Step, Watch
from redrive_operator.redriving.progress import Progress, read_progress, write_progress
from redrive_operator.subject import Subject
from redrive_operator.wording import count

# With these nobody is at work, and something or somebody must change first.
BLOCKED = (
    CompleteReason.CONSUMER_NOT_FOUND,
    CompleteReason.CONSUMER_DELETING,
    CompleteReason.CONSUMER_NOT_READY,
    CompleteReason.MANAGEMENT_REQUIRED,
    CompleteReason.BROKER_UNREACHABLE,
    CompleteReason.NOT_ACCEPTED,
    CompleteReason.INVALID_SPEC,
)

_ENDS = (
    CompleteReason.FINISHED,
    CompleteReason.LIMIT_REACHED,
    CompleteReason.NOTHING_MATCHED,
    CompleteReason.COUNTED,
    CompleteReason.CANARY_DIED,
)


@dataclass(frozen=True, slots=True)
class Stance:
    """What a Redrive does now, or why it does nothing: a reason and its sentence."""

    reason: CompleteReason
    message: str

    @property
    def progressing(self) -> ProgressingReason:
        if self.reason in _ENDS:
            return ProgressingReason.ENDED
        if self.reason in BLOCKED:
            return ProgressingReason.BLOCKED
        return {
            CompleteReason.WATCHING_CANARY: ProgressingReason.WATCHING_CANARY,
            CompleteReason.WAITING: ProgressingReason.WAITING,
            CompleteReason.PAUSED: ProgressingReason.PAUSED,
        }.get(self.reason, ProgressingReason.MOVING)


def take_stance(redrive: Redrive, progress: Progress, step: Step, *, note: str = "") -> Stance:
    """Say what is done in a step; `note` is what else a person should know."""
    message = _join(describe(redrive, progress), note)
    match step:
        case End(reason):
            return Stance(reason, _join(_explain_end(redrive, progress, reason), note))
        case Watch(until):
            timed = f"watching {count(progress.canaries.sent, 'canary message')} until {until:%Y-%m-%d %H:%M:%S} UTC"
            return Stance(CompleteReason.WATCHING_CANARY, _join(timed, note))
        case _:
            return Stance(CompleteReason.RUNNING, message)


def is_over(subject: Subject) -> bool:
    """Say whether it has ended: by its time, or by its condition, whichever somebody has left there."""
    past = subject.history[ConditionType.COMPLETE]
    return read_progress(subject.status).finished is not None or past.reason in _ENDS


def judge_redrive(
    subject: Subject, redrive: Redrive, progress: Progress, stance: Stance, *, now: datetime, counting: bool = False
) -> Verdict:
    """Judge a Redrive whose spec can be used."""
    progressing = ProgressingReason.COUNTING if counting else stance.progressing
    paused = PausedReason.PAUSED if redrive.paused else PausedReason.NOT_PAUSED
    judged = (
        Judged(ConditionType.COMPLETE, stance.reason, stance.message),
        Judged(ConditionType.PROGRESSING, progressing, stance.message),
        Judged(ConditionType.PAUSED, paused, "spec.paused is set" if redrive.paused else "spec.paused is not set"),
    )
    status = {
        "observedGeneration": subject.generation,
        "conditions": write_conditions(judged, subject.history, generation=subject.generation, now=now),
        **write_progress(progress),
    }
    return Verdict(status, tuple(_tell(subject, redrive, progress, judged[0])))


def judge_invalid_redrive(subject: Subject, error: SpecError, *, now: datetime) -> Verdict:
    """Judge one whose spec cannot be used: nothing is done, and what was done stays told."""
    complete = Judged(ConditionType.COMPLETE, CompleteReason.INVALID_SPEC, str(error))
    progressing = Judged(ConditionType.PROGRESSING, ProgressingReason.BLOCKED, str(error))
    history = subject.history
    status = {
        "observedGeneration": subject.generation,
        "conditions": write_conditions((complete, progressing), history, generation=subject.generation, now=now),
        **write_progress(read_progress(subject.status)),
    }
    return Verdict(status, tuple(tell_invalid(history[ConditionType.COMPLETE], complete)))


def describe(redrive: Redrive, progress: Progress) -> str:
    """Say how far it has come."""
    if progress.matched is None:
        return "looking through the dead letters"
    of = min(progress.matched, redrive.limit) if redrive.limit is not None else progress.matched
    parts = [f"{progress.done} of {count(max(of, progress.done), 'dead letter')} {_done(redrive)}"]
    if progress.unknown:
        parts.append(f"{progress.unknown} more may have been")
    if progress.failed:
        parts.append(f"{progress.failed} could not be moved")
    if progress.skipped:
        parts.append(f"{progress.skipped} left for a person, having died again too often")
    return "; ".join(parts)


def _tell(subject: Subject, redrive: Redrive, progress: Progress, complete: Judged) -> Iterator[Event]:
    before = read_progress(subject.status)
    past = subject.history[ConditionType.COMPLETE]
    if progress.started is not None and before.started is None and progress.matched is not None:
        yield tell(EventReason.REDRIVE_STARTED, _explain_start(redrive, progress))
    if progress.finished is not None and before.finished is None:
        stopped = complete.reason is CompleteReason.CANARY_DIED
        yield tell(EventReason.REDRIVE_STOPPED if stopped else EventReason.REDRIVE_FINISHED, complete.message)
    yield from _tell_blocked(past, complete)


def _tell_blocked(past: Past, complete: Judged) -> Iterator[Event]:
    if complete.reason in BLOCKED and not past.is_same(complete):
        yield tell(EventReason.REDRIVE_BLOCKED, complete.message)


def _explain_start(redrive: Redrive, progress: Progress) -> str:
    fit = f"{progress.matched} of {count(progress.scanned, 'dead letter')} fit"
    return f"{fit}, to be {'only counted' if redrive.dry_run else _done(redrive)}"


def _explain_end(redrive: Redrive, progress: Progress, reason: CompleteReason) -> str:
    match reason:
        case CompleteReason.NOTHING_MATCHED:
            left = f"; {progress.skipped} left for a person, having died again too often" if progress.skipped else ""
            return f"none of {count(progress.scanned, 'dead letter')} fits{left}"
        case CompleteReason.COUNTED:
            return f"{progress.matched} of {count(progress.scanned, 'dead letter')} fit; nothing was moved"
        case CompleteReason.CANARY_DIED:
            sent = max(progress.canaries.sent, progress.canaries.died)
            died = f"{progress.canaries.died} of {count(sent, 'canary message')} died again"
            return f"{died}, so nothing more is moved: mend the cause, and make another Redrive"
        case CompleteReason.LIMIT_REACHED if progress.unknown:
            return f"{describe(redrive, progress)}, when the operator was ended: make another Redrive for the rest"
        case _:
            return describe(redrive, progress)


def _done(redrive: Redrive) -> str:
    return "put back" if redrive.action is RedriveAction.REQUEUE else "deleted"


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
