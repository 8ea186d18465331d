"""Since when something has been so that a person may be called for, as the status keeps it over restarts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from redrive.spec.alarms import Alarms
from redrive_operator.history import format_time, read_time
from redrive_operator.observation import MessagesSeen

ABOVE, DEAD = "aboveSince", "deadSince"


@dataclass(frozen=True, slots=True)
class Lasting:
    """Since when the queue is above the threshold of its alarm, and there are dead letters. None: that is not so."""

    above: datetime | None = None
    dead: datetime | None = None


def read_lasting(status: Mapping[str, Any]) -> Lasting:
    messages = status.get("messages") or {}
    return Lasting(read_time(messages.get(ABOVE)), read_time(messages.get(DEAD)))


def note_lasting(
    messages: MessagesSeen, alarms: Alarms, kept: Mapping[str, Any], now: datetime
) -> dict[str, str | None]:
    """Say since when, by the counts of now; what was not counted is as it was."""
    above = alarms.queue_size.above if alarms.queue_size.enabled else None
    return {
        ABOVE: None if above is None else _since(messages.ready, above, kept.get(ABOVE), now),
        DEAD: _since(messages.dead, 0, kept.get(DEAD), now),
    }


def _since(count: int | None, above: int, kept: str | None, now: datetime) -> str | None:
    if count is None:
        return kept
    return (kept or format_time(now)) if count > above else None
