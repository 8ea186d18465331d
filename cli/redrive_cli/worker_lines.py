"""What a worker prints, line by line: its own log, which is JSON, and whatever its handler prints.

Both come by one pipe. The worker's lines are whole, but they may stand behind the beginning of a handler's that was
not finished yet; they are told apart by how they begin. A line that is nobody's is the handler's: nothing is dropped,
and nothing is taken for granted of a line but its time and its event.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

_BEGINNING = '{"time": "'
_DECODER = json.JSONDecoder()

# What becomes of a message, by the names that a worker's log has for it.
OUTCOMES = ("done", "retry", "snooze", "dead")


@dataclass(frozen=True, slots=True)
class Printed:
    """A line of the handler's, or of anything else that writes there."""

    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """A line of the worker's log. `raw` is the line as it came, `facts` all of it but time, level and event."""

    time: datetime | None
    event: str
    level: str = "info"
    facts: Mapping[str, Any] = field(default_factory=dict)
    raw: str = ""

    @property
    def id(self) -> str:
        return self.text("id")

    @property
    def is_outcome(self) -> bool:
        return self.event in OUTCOMES and bool(self.id)

    def text(self, name: str) -> str:
        """Return a fact as text; empty when it is not there."""
        fact = self.facts.get(name)
        return "" if fact is None else str(fact)

    def number(self, name: str) -> float | None:
        fact = self.facts.get(name)
        return fact if isinstance(fact, int | float) and not isinstance(fact, bool) else None


class Lines:
    """Makes lines of what comes in pieces."""

    # A handler may print megabytes without a line break; that is shown in parts.
    LONGEST = 1_048_576

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[str]:
        *whole, self._rest = (self._rest + piece).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
        if len(self._rest) > self.LONGEST:
            yield from self.end()

    def end(self) -> Iterator[str]:
        rest, self._rest = self._rest, b""
        if rest:
            yield rest.decode(errors="replace")


def read_line(line: str) -> Iterator[Printed | Told]:
    """Read one line; a worker's line in the middle of a handler's is taken out of it."""
    at = line.find(_BEGINNING)
    while at >= 0:
        told, end = _read_told(line, at)
        if told is not None:
            if at:
                yield Printed(line[:at])
            yield told
            line, at = line[end:], -1
            if not line:
                return
        at = line.find(_BEGINNING, at + 1)
    yield Printed(line)


def _read_told(line: str, at: int) -> tuple[Told | None, int]:
    try:
        facts, end = _DECODER.raw_decode(line, at)
    except (ValueError, RecursionError):
        return None, at
    event = facts.get("event")
    if not isinstance(event, str):
        return None, at
    rest = {name: fact for name, fact in facts.items() if name not in ("time", "level", "event")}
    return Told(_read_time(facts["time"]), event, str(facts.get("level", "info")), rest, line[at:end]), end


def _read_time(text: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
