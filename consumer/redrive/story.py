"""What a message's headers tell about its past, and the headers that tell it.

Headers come from outside: anybody may publish to the queue. A value of the wrong type or beyond all sense is replaced
by the nearest that makes sense, its name is kept in `clamped`, and nothing ever raises.

Times are RFC 3339 text in UTC with milliseconds: AMQP's own timestamps have whole seconds, and text can be read in the
management UI. When reading, an AMQP timestamp and any other ISO 8601 form are understood too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from redrive.clip import clip_head
from redrive.properties import LONGEST_SHORT
from redrive.quickly import quickly

T = TypeVar("T")

ATTEMPT = "redrive-attempt"
SUSPECT = "redrive-suspect"
CRASHES = "redrive-crashes"
SNOOZES = "redrive-snoozes"
REDRIVES = "redrive-redrives"
FIRST_ATTEMPT_AT = "redrive-first-attempt-at"
ORIGIN_EXCHANGE = "redrive-origin-exchange"
ORIGIN_ROUTING_KEY = "redrive-origin-routing-key"
DUE_AT = "redrive-due-at"
EXPIRES_AT = "redrive-expires-at"
PRIORITY = "redrive-priority"
ERROR_TYPE = "redrive-error-type"
ERROR = "redrive-error"

STORY_HEADERS = frozenset(
    {
        ATTEMPT,
        SUSPECT,
        CRASHES,
        SNOOZES,
        REDRIVES,
        FIRST_ATTEMPT_AT,
        ORIGIN_EXCHANGE,
        ORIGIN_ROUTING_KEY,
        DUE_AT,
        EXPIRES_AT,
        PRIORITY,
        ERROR_TYPE,
        ERROR,
    }
)

LONGEST_ERROR = 1024  # bytes
HIGHEST_COUNT = 1_000_000  # beyond every limit that a policy can set, and small enough to add to
SENSIBLE_YEARS = range(2000, 2200)


@dataclass(frozen=True, slots=True)
class Story:
    """A message's past. The default is that of one which has none."""

    attempt: int = 1
    suspect: bool = False
    crashes: int = 0
    snoozes: int = 0
    redrives: int = 0
    first_attempt_at: datetime | None = None
    origin_exchange: str | None = None
    origin_routing_key: str | None = None
    due_at: datetime | None = None
    expires_at: datetime | None = None
    priority: int | None = None
    error_type: str | None = None
    error: str | None = None
    clamped: tuple[str, ...] = ()


FRESH = Story()
_story = quickly(Story)


def read_story(headers: Mapping[str, object]) -> Story:
    if STORY_HEADERS.isdisjoint(headers):
        return FRESH  # nearly every message, so nothing else is looked at
    read = HeaderReader(headers)
    return _story(
        attempt=read.number(ATTEMPT, low=1, high=HIGHEST_COUNT) or 1,
        suspect=read.flag(SUSPECT),
        crashes=read.number(CRASHES, high=HIGHEST_COUNT) or 0,
        snoozes=read.number(SNOOZES, high=HIGHEST_COUNT) or 0,
        redrives=read.number(REDRIVES, high=HIGHEST_COUNT) or 0,
        first_attempt_at=read.time(FIRST_ATTEMPT_AT),
        origin_exchange=read.text(ORIGIN_EXCHANGE),
        origin_routing_key=read.text(ORIGIN_ROUTING_KEY),
        due_at=read.time(DUE_AT),
        expires_at=read.time(EXPIRES_AT),
        priority=read.number(PRIORITY, high=255),
        error_type=read.text(ERROR_TYPE),
        error=read.text(ERROR, LONGEST_ERROR),
        clamped=tuple(read.clamped),
    )


def write_story(story: Story) -> dict[str, object]:
    """Write what is known; a count of none is left out."""
    headers: dict[str, object] = {ATTEMPT: story.attempt}
    if story.suspect:
        headers[SUSPECT] = True
    for name, count in ((CRASHES, story.crashes), (SNOOZES, story.snoozes), (REDRIVES, story.redrives)):
        if count:
            headers[name] = min(count, HIGHEST_COUNT)
    times = ((FIRST_ATTEMPT_AT, story.first_attempt_at), (DUE_AT, story.due_at), (EXPIRES_AT, story.expires_at))
    for name, time in times:
        if time is not None:
            headers[name] = write_time(time)
    texts = (
        (ORIGIN_EXCHANGE, story.origin_exchange, LONGEST_SHORT),
        (ORIGIN_ROUTING_KEY, story.origin_routing_key, LONGEST_SHORT),
        (ERROR_TYPE, story.error_type, LONGEST_SHORT),
        (ERROR, story.error, LONGEST_ERROR),
    )
    for name, text, limit in texts:
        if text is not None:
            headers[name] = clip_head(text, limit)
    if story.priority is not None:
        headers[PRIORITY] = story.priority
    return headers


def begin_anew(story: Story) -> Story:
    """Forget all but where the message came from: it was put back on purpose, to be run like a new one."""
    return Story(
        redrives=story.redrives + 1,
        origin_exchange=story.origin_exchange,
        origin_routing_key=story.origin_routing_key,
        priority=story.priority,
        clamped=story.clamped,
    )


def write_time(time: datetime) -> str:
    """Write a time; most are of a second that was written a moment ago."""
    utc = time if time.tzinfo is UTC else time.astimezone(UTC)
    second = _write_second(utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second)
    return second + _MILLIS[utc.microsecond // 1000]


@lru_cache(maxsize=256)
def _write_second(year: int, month: int, day: int, hour: int, minute: int, second: int) -> str:
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}"


_MILLIS = [f".{millis:03d}Z" for millis in range(1000)]


class HeaderReader:
    """Reads headers one by one and remembers the names of those that made no sense."""

    def __init__(self, headers: Mapping[str, object]) -> None:
        self._headers = headers
        self.clamped: list[str] = []

    def number(self, name: str, *, low: int = 0, high: int) -> int | None:
        value = self._headers.get(name)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool):
            return value if low <= value <= high else self._clamp(name, max(low, min(value, high)))
        return self._clamp(name, None)

    def flag(self, name: str) -> bool:
        value = self._headers.get(name)
        if value is None:
            return False
        return value if isinstance(value, bool) else self._clamp(name, False)

    def text(self, name: str, limit: int = LONGEST_SHORT, clip: Callable[[str, int], str] = clip_head) -> str | None:
        value = self._headers.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            return self._clamp(name, None)
        clipped = clip(value, limit)
        return clipped if clipped == value else self._clamp(name, clipped)

    def time(self, name: str) -> datetime | None:
        value = self._headers.get(name)
        if value is None:
            return None
        time = read_time(value)
        return self._clamp(name, None) if time is None else time

    def _clamp(self, name: str, instead: T) -> T:
        self.clamped.append(name)
        return instead


def read_time(value: object) -> datetime | None:
    """Read a time, which is UTC unless it says otherwise; None for what is none, or not of this age."""
    if isinstance(value, str) and len(value) <= 40:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    time = value
    if value.tzinfo is not UTC:  # as ours always is
        try:
            time = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        except OverflowError:
            return None
    return time if time.year in SENSIBLE_YEARS else None
