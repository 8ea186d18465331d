"""What a worker tells people: one JSON object a line, on its standard output.

Every line has `time`, `level` and `event`; what else it has follows from the event. Never in it: a body, a header's
value, a password. Of an error there is the beginning, in one line.

The line of a message that is done is written for every message, so it is put together by hand, and goes out with many
others. Trouble that repeats itself is told once a second, with how often it was not. At `warning` only trouble is told,
and dead letters.
"""

import logging
import re
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring
from math import isfinite
from typing import assert_never

from redrive.clip import clip_tail
from redrive.fingerprint import fingerprint
from redrive.letter import LONGEST_TRACE
from redrive.message import Message
from redrive.outcome import DeadLetter, Done, RetryLater, type_names
from redrive.settle import Disposal, GiveBack, Suspect
from redrive.stdout import Stdout
from redrive.story import write_time

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

LONGEST_ERROR = 200  # characters; the headers of a dead letter have more
LONGEST_SAID = 2000  # characters of what was told to Python's logging
REPEAT_SECONDS = 1.0
MOST_TROUBLES = 100  # kinds of trouble that are told apart at one time
EXIT_PATIENCE = 1.0  # seconds that the end of a worker waits for who reads its last lines

Fact = str | int | float | None


class Log:
    """Writes the lines. `flush` it when there is time, several times a second; `close` it at the end."""

    def __init__(
        self,
        out: Stdout | None = None,
        *,
        level: str = "info",
        clock: Callable[[], float] = time.time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = out or Stdout()
        self._level = LEVELS[level]
        self._tells_all = self._level <= logging.INFO
        self._clock = clock
        self._now = now
        self._second = (0, "")
        self._stamp = (0, "")
        self._troubles: dict[tuple[str, str], _Trouble] = {}

    @property
    def level(self) -> int:
        """The least level that is told, as Python's logging counts them."""
        return self._level

    def done(self, message: Message, seconds: float) -> None:
        """Tell of a success. A few microseconds: it is done for every message."""
        if self._tells_all:
            self._out.add(
                f'{{"time": "{self._time()}", "level": "info", "event": "done", "id": {quote(message.id)}, '
                f'"attempt": {message.attempt}, "seconds": {seconds:.6f}}}\n'
            )

    def settled(
        self, message: Message, disposal: Disposal, *, seconds: float | None = None, due_at: datetime | None = None
    ) -> None:
        """Tell what became of a message. `seconds` that it ran; `due_at` is when the ladder lets a retry go."""
        match disposal:
            case Done():
                self.done(message, seconds or 0.0)
            case RetryLater():
                self._retried(message, disposal, seconds, due_at)
            case DeadLetter():
                self._tell_of(message, "warning", "dead", seconds, **_describe_death(disposal))
            case Suspect():
                self._tell_of(message, "info", "suspect", seconds)
            case GiveBack():
                self._tell_of(message, "info", "given-back", seconds)
            case _:
                assert_never(disposal)

    def debug(self, event: str, **facts: Fact) -> None:
        self.tell("debug", event, facts)

    def info(self, event: str, **facts: Fact) -> None:
        self.tell("info", event, facts)

    def warning(self, event: str, reason: str = "", **facts: Fact) -> None:
        """Tell of trouble that may pass; of the same event for the same reason once a second."""
        self._tell_of_trouble("warning", event, reason, facts)

    def error(self, event: str, reason: str = "", **facts: Fact) -> None:
        """Tell of trouble that somebody must look at; of the same event for the same reason once a second."""
        self._tell_of_trouble("error", event, reason, facts)

    def tell(self, level: str, event: str, facts: Mapping[str, Fact]) -> None:
        """Write a line, if its level is told; facts that are None are left out. From any thread."""
        if LEVELS[level] >= self._level:
            more = "".join(f', "{name}": {write(fact)}' for name, fact in facts.items() if fact is not None)
            self._out.add(f'{{"time": "{self._time()}", "level": "{level}", "event": {quote(event)}{more}}}\n')

    def flush(self) -> None:
        """Write what waits, and what was left out of trouble that is over."""
        self._end_troubles(self._now() - REPEAT_SECONDS)
        if self._out.flush() and (dropped := self._out.take_dropped()):
            self.tell("warning", "dropped", {"lines": dropped})

    def close(self) -> None:
        """Write everything, with a little patience."""
        self._end_troubles(self._now())
        self._out.flush(EXIT_PATIENCE)

    def _retried(self, message: Message, outcome: RetryLater, seconds: float | None, due_at: datetime | None) -> None:
        """Tell of a retry or a snooze, put together by hand too: when something is down, that is every message."""
        if self._tells_all:
            due = "" if due_at is None else f', "dueAt": "{write_time(due_at)}"'
            cause = outcome.cause
            why = "" if cause is None else _write_cause(cause.error_type[:_LONGEST_READ], cause.error[:_LONGEST_READ])
            ran = "" if seconds is None else f', "seconds": {seconds:.6f}'
            self._out.add(
                f'{{"time": "{self._time()}", "level": "info", "event": "{"snooze" if outcome.snoozed else "retry"}", '
                f'"id": {quote(message.id)}, "attempt": {message.attempt}, '
                f'"delaySeconds": {outcome.delay.total_seconds()}{due}{why}{ran}}}\n'
            )

    def _tell_of(self, message: Message, level: str, event: str, seconds: float | None, **facts: Fact) -> None:
        ran = None if seconds is None else round(seconds, 6)
        self.tell(level, event, {"id": message.id, "attempt": message.attempt, **facts, "seconds": ran})

    def _tell_of_trouble(self, level: str, event: str, reason: str, facts: Mapping[str, Fact]) -> None:
        now = self._now()
        told = {"reason": reason or None, **facts}
        last = self._troubles.get((event, reason))
        if last is not None and now < last.told_at + REPEAT_SECONDS:
            last.repeated, last.facts = last.repeated + 1, told
            return
        if len(self._troubles) >= MOST_TROUBLES:
            self._end_troubles(now)
        self._troubles[event, reason] = _Trouble(level, now, told)
        self.tell(level, event, {**told, "repeated": (last and last.repeated) or None})
        self._out.flush()  # it may be the last thing that this worker says

    def _end_troubles(self, before: float) -> None:
        """Forget trouble that was told before that time, and tell what was left out of it."""
        for (event, reason), trouble in list(self._troubles.items()):
            if trouble.told_at <= before:
                self._troubles.pop((event, reason), None)
                if trouble.repeated:
                    self.tell(trouble.level, event, {**trouble.facts, "repeated": trouble.repeated})

    def _time(self) -> str:
        """Write the time, which is mostly that of the line before; pairs, for threads must not see half of one."""
        millis = int(self._clock() * 1000)
        known, stamp = self._stamp
        if known != millis:
            stamp = f"{self._whole_second(millis // 1000)}.{millis % 1000:03d}Z"
            self._stamp = (millis, stamp)
        return stamp

    def _whole_second(self, second: int) -> str:
        known, text = self._second
        if known != second:
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = (second, text)
        return text


@dataclass(slots=True)
class _Trouble:
    """Trouble that was told a moment ago, how often it was there again, and what it was then."""

    level: str
    told_at: float
    facts: Mapping[str, Fact]
    repeated: int = 0


def _describe_death(outcome: DeadLetter) -> dict[str, Fact]:
    cause = outcome.cause
    return {
        "reason": outcome.reason.value,
        "errorType": one_line(cause.error_type) or None,
        "error": one_line(cause.error) or None,
        "fingerprint": fingerprint(cause),
    }


@lru_cache(maxsize=256)
def _write_cause(kind: str, error: str) -> str:
    """Write what went wrong, which is often what went wrong with the message before."""
    kind, error = one_line(kind), one_line(error)
    return (f', "errorType": {quote(kind)}' if kind else "") + (f', "error": {quote(error)}' if error else "")


def one_line(text: str, limit: int = LONGEST_ERROR) -> str:
    """Make one line of the beginning of a text."""
    return " ".join(text[: 4 * limit].split())[:limit]


_LONGEST_READ = 4 * LONGEST_ERROR


# JSON leaves these as they are, but some readers take one for the end of a line, terminals for a command, and UTF-8
# has no bytes for the last.
_UNFIT = re.compile("[\x80-\x9f\u2028\u2029\ud800-\udfff]")


def quote(text: str) -> str:
    quoted = encode_basestring(text)
    return quoted if quoted.isascii() else _UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def write(fact: Fact) -> str:
    if isinstance(fact, bool):
        return "true" if fact else "false"
    if isinstance(fact, int) or (isinstance(fact, float) and isfinite(fact)):
        return str(fact)
    return quote(str(fact))


class _FromLogging(logging.Handler):
    """Tells what Python's own logging is told. Pika's view of a lost connection is for who looks for a bug in it."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        level = "debug" if record.name.partition(".")[0] == "pika" else _level_name(record.levelno)
        if LEVELS[level] >= self._log.level:
            self._log.tell(level, "log", _describe_record(record))


def route_logging(log: Log) -> Callable[[], None]:
    """Have what is told to Python's logging in this process told as lines: warnings, and what loggers were set to.

    Gives a function that undoes it.
    """
    root, pika, handler = logging.getLogger(), logging.getLogger("pika"), _FromLogging(log)
    before = root.level, pika.level
    root.addHandler(handler)
    root.setLevel(max(logging.WARNING, log.level))
    # What happens to our connections we tell ourselves, and pika tells it several times over.
    pika.setLevel(logging.WARNING if log.level <= logging.DEBUG else logging.CRITICAL + 1)

    def undo() -> None:
        root.removeHandler(handler)
        for logger, level in zip((root, pika), before, strict=True):
            logger.setLevel(level)

    return undo


def _level_name(number: int) -> str:
    return next((name for name in reversed(LEVELS) if number >= LEVELS[name]), "debug")


def _describe_record(record: logging.LogRecord) -> dict[str, Fact]:
    try:
        said = record.getMessage()
    except Exception:  # the arguments are not those that the text wants, or cannot say what they are
        said = record.msg if isinstance(record.msg, str) else f"a {type(record.msg).__name__}"
    facts: dict[str, Fact] = {"logger": record.name, "message": said[:LONGEST_SAID]}
    error = record.exc_info and record.exc_info[1]
    if not error:
        return facts
    trace = clip_tail("".join(traceback.format_exception(error)), LONGEST_TRACE)
    return {**facts, "errorType": type_names(type(error))[0], "trace": trace}
