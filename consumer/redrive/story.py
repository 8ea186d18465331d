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
    number, text, time = read.number, read.text, read.time
    return _story(
        attempt=number(ATTEMPT, HIGHEST_COUNT, 1) or 1,
        # What most retried messages do not have is not even asked for.
        suspect=SUSPECT in headers and read.flag(SUSPECT),
        crashes=(CRASHES in headers and number(CRASHES, HIGHEST_COUNT)) or 0,
        snoozes=(SNOOZES in headers and number(SNOOZES, HIGHEST_COUNT)) or 0,
        redrives=(REDRIVES in headers and number(REDRIVES, HIGHEST_COUNT)) or 0,
        first_attempt_at=time(FIRST_ATTEMPT_AT),
        origin_exchange=text(ORIGIN_EXCHANGE),
        origin_routing_key=text(ORIGIN_ROUTING_KEY),
        due_at=time(DUE_AT),
        expires_at=time(EXPIRES_AT) if EXPIRES_AT in headers else None,
        priority=number(PRIORITY, 255) if PRIORITY in headers else None,
        error_type=text(ERROR_TYPE),
        error=text(ERROR, LONGEST_ERROR),
        clamped=tuple(read.clamped),
    )


def write_story(story: Story) -> dict[str, object]:
    """Write what is known; a count of none is left out."""
    headers: dict[str, object] = {ATTEMPT: story.attempt}
    if story.suspect:
        headers[SUSPECT] = True
    if story.crashes or story.snoozes or story.redrives:
        counts = (CRASHES, story.crashes), (SNOOZES, story.snoozes), (REDRIVES, story.redrives)
        headers |= {name: min(count, HIGHEST_COUNT) for name, count in counts if count}
    # One by one: with a loop over the others, each retry takes half as long again to write.
    if story.first_attempt_at is not None:
        headers[FIRST_ATTEMPT_AT] = write_time(story.first_attempt_at)
    if story.due_at is not None:
        headers[DUE_AT] = write_time(story.due_at)
    if story.expires_at is not None:
        headers[EXPIRES_AT] = write_time(story.expires_at)
    if story.origin_exchange is not None:
        headers[ORIGIN_EXCHANGE] = clip_head(story.origin_exchange, LONGEST_SHORT)
    if story.origin_routing_key is not None:
        headers[ORIGIN_ROUTING_KEY] = clip_head(story.origin_routing_key, LONGEST_SHORT)
    if story.error_type is not None:
        headers[ERROR_TYPE] = clip_head(story.error_type, LONGEST_SHORT)
    if story.error is not None:
        headers[ERROR] = clip_head(story.error, LONGEST_ERROR)
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

    def number(self, name: str, high: int, low: int = 0) -> int | None:
        value = self._headers.get(name)
        if value is None:
            return None
        if type(value) is int or (isinstance(value, int) and not isinstance(value, bool)):
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
        return clipped if clipped is value or clipped == value else self._clamp(name, clipped)

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
