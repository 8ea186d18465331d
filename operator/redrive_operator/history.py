"""The conditions that an object has, and how new ones are written over them.

The time of a condition is that of its last change of status, and of nothing else. Conditions that somebody else wrote
are kept. What was read may have been edited by hand: what is no condition is as if it were not there.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redrive_operator.reasons import ConditionType, Reason, Status
from redrive_operator.wording import shorten

# What the API server takes; see `status.conditions` in the CRDs.
MOST_CONDITIONS = 16
LONGEST_MESSAGE = 32768
_TYPE = re.compile(r"[A-Z][A-Za-z]*")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition as it is now."""

    type: ConditionType
    reason: Reason
    message: str

    @property
    def status(self) -> Status:
        return self.reason.status


@dataclass(frozen=True, slots=True)
class Past:
    """A condition as it was written last. One that never was has empty fields."""

    status: str = ""
    reason: str = ""
    message: str = ""
    since: str = ""
    generation: int | None = None

    def is_same(self, judged: Judged) -> bool:
        return (self.status, self.reason) == (judged.status, judged.reason)


class History(dict[str, Past]):
    """The conditions of an object by their type; one that it does not have is an empty one."""

    def __missing__(self, key: str) -> Past:
        return Past()


def read_history(status: object) -> History:
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    history = History()
    for raw in conditions if isinstance(conditions, list) else ():
        if isinstance(raw, Mapping) and _is_condition(raw):
            history.setdefault(raw["type"], _read(raw))
    return history


def write_conditions(
    judged: Iterable[Judged], history: History, *, generation: int, now: datetime
) -> list[dict[str, Any]]:
    """Write ours in their order, and then what others wrote, as much as there is room for."""
    ours = [_write(one.type, _follow(history[one.type], one, generation, now)) for one in judged]
    types = {one["type"] for one in ours}
    others = [_write(name, past) for name, past in history.items() if name not in types]
    return [*ours, *others][:MOST_CONDITIONS]


def format_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def read_time(raw: object) -> datetime | None:
    if not isinstance(raw, str) or not _TIME.fullmatch(raw):
        return None
    try:
        return datetime.fromisoformat(raw)
    except ValueError:
        return None


def _follow(past: Past, judged: Judged, generation: int, now: datetime) -> Past:
    since = past.since if past.status == judged.status else format_time(now)
    return Past(judged.status, judged.reason.value, shorten(judged.message, LONGEST_MESSAGE), since, generation)


def _is_condition(raw: Mapping[str, Any]) -> bool:
    return (
        _fits(raw.get("type"), _TYPE, 316)
        and raw.get("status") in [*Status]
        and _fits(raw.get("reason"), _REASON, 1024)
        and isinstance(raw.get("message"), str)
        and read_time(raw.get("lastTransitionTime")) is not None
    )


def _fits(raw: object, pattern: re.Pattern[str], longest: int) -> bool:
    return isinstance(raw, str) and len(raw) <= longest and pattern.fullmatch(raw) is not None


def _read(raw: Mapping[str, Any]) -> Past:
    generation = raw.get("observedGeneration")
    known = isinstance(generation, int) and not isinstance(generation, bool) and 0 <= generation < 2**63
    return Past(
        status=raw["status"],
        reason=raw["reason"],
        message=shorten(raw["message"], LONGEST_MESSAGE),
        since=raw["lastTransitionTime"],
        generation=generation if known else None,
    )


def _write(name: str, condition: Past) -> dict[str, Any]:
    generation = {} if condition.generation is None else {"observedGeneration": condition.generation}
    return {
        "type": str(name),
        "status": str(condition.status),
        **generation,
        "lastTransitionTime": condition.since,
        "reason": condition.reason,
        "message": condition.message,
    }
