"""How far a Redrive has come, as its status tells it: read from there, and written there. There is no other memory.

What was read may have been edited by hand: counts that make no sense are made to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from redrive_operator.history import format_time, read_time
from redrive_operator.shapes import REDRIVE, sift

# As many as the CRD takes.
MOST_GROUPS = 50


@dataclass(frozen=True, slots=True)
class Group:
    """Letters that died of the same, by their fingerprint."""

    fingerprint: str
    count: int
    reason: str = ""
    error_type: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Canaries:
    """The first few: how many are back, since when they are watched, and when it was decided to go on or to stop."""

    sent: int = 0
    died: int = 0
    since: datetime | None = None
    decided: datetime | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """What was done until now. No `matched` means that nobody has looked yet.

    `begun` counts what may have been moved. It is ahead of `done` while letters are on their way, and stays ahead by
    those of which nobody knows, because the operator ended while it moved them.
    """

    started: datetime | None = None
    finished: datetime | None = None
    scanned: int = 0
    matched: int | None = None
    done: int = 0
    begun: int = 0
    skipped: int = 0
    failed: int = 0
    canaries: Canaries = field(default_factory=Canaries)
    groups: tuple[Group, ...] = ()

    @property
    def unknown(self) -> int:
        """How many of those that were begun may have been moved or not."""
        return self.begun - self.done


def read_progress(status: object) -> Progress:
    told = sift(status, REDRIVE)
    canary, done = told.get("canary", {}), told.get("done", 0)
    return Progress(
        started=read_time(told.get("startedTime")),
        finished=read_time(told.get("finishedTime")),
        scanned=told.get("scanned", 0),
        matched=told.get("matched"),
        done=done,
        begun=max(done, told.get("begun", 0)),
        skipped=told.get("skipped", 0),
        failed=told.get("failed", 0),
        canaries=Canaries(
            sent=canary.get("sent", 0),
            died=canary.get("diedAgain", 0),
            since=read_time(canary.get("sentTime")),
            decided=read_time(canary.get("decidedTime")),
        ),
        groups=tuple(_read_group(group) for group in told.get("groups", ())),
    )


def write_progress(progress: Progress) -> dict[str, Any]:
    if progress.started is None:
        return {}
    raw = {
        "startedTime": format_time(progress.started),
        "finishedTime": None if progress.finished is None else format_time(progress.finished),
        "scanned": progress.scanned,
        "matched": progress.matched,
        "done": progress.done,
        "begun": progress.begun,
        "skipped": progress.skipped,
        "failed": progress.failed,
        "canary": _write_canaries(progress.canaries),
        "groups": [_write_group(group) for group in progress.groups],
    }
    return sift(raw, REDRIVE)


def _read_group(raw: Mapping[str, Any]) -> Group:
    return Group(
        raw["fingerprint"], raw["count"], raw.get("reason", ""), raw.get("errorType", ""), raw.get("example", "")
    )


def _write_group(group: Group) -> dict[str, Any]:
    facts = {"reason": group.reason, "errorType": group.error_type, "example": group.example}
    return {"fingerprint": group.fingerprint, "count": group.count, **facts}


def _write_canaries(canaries: Canaries) -> dict[str, Any]:
    if canaries == Canaries():
        return {}
    times = {"sentTime": canaries.since, "decidedTime": canaries.decided}
    return {
        "sent": canaries.sent,
        "diedAgain": canaries.died,
        **{name: format_time(time) for name, time in times.items() if time is not None},
    }
