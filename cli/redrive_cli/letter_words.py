"""Letters as words and as JSON: pure, so that tables, programs and tests read the same."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from redrive.letters import Group, Letter, Progress
from redrive.letters.choosing import say_value
from redrive.letters.codec import write_line
from redrive.story import write_time
from redrive_cli.wording import clean, say_age

Fact = tuple[str, str]

LONGEST_BODY = 16_384
_HEX_WIDTH = 16


def letter_json(letter: Letter) -> dict[str, Any]:
    """What programs get of a letter in a list."""
    return {
        "id": letter.id,
        "reason": letter.reason and str(letter.reason),
        "deadAt": _time(letter.dead_at),
        "attempts": letter.attempts,
        "redrives": letter.redrives,
        "errorType": letter.error_type,
        "error": letter.error,
        "fingerprint": letter.fingerprint,
        "pod": letter.pod,
        "bytes": len(letter.body),
    }


def whole_json(letter: Letter) -> dict[str, Any]:
    """All of it; headers and body are as in an export."""
    return {**letter_json(letter), "trace": letter.trace, "message": json.loads(write_line(letter.delivery))}


def group_json(group: Group) -> dict[str, Any]:
    return {
        "count": group.count,
        "fingerprint": group.kind.fingerprint,
        "reason": group.kind.reason and str(group.kind.reason),
        "errorType": group.kind.error_type,
        "oldest": _time(group.oldest),
        "newest": _time(group.newest),
        "example": {"id": group.example_id, "error": group.example_error},
    }


def progress_json(progress: Progress, *, dry_run: bool) -> dict[str, Any]:
    return {
        "total": progress.total,
        "seen": progress.seen,
        "chosen": progress.chosen,
        "moved": progress.moved,
        "redrivenTooOften": progress.too_often,
        "refused": progress.refused,
        "unseen": progress.unseen,
        "stopped": progress.stopped,
        "dryRun": dry_run,
    }


def say_error(error_type: str | None, error: str | None) -> str:
    """Say what went wrong in one line: the last word of the type is what people know it by."""
    short = (error_type or "").rsplit(".", 1)[-1]
    return clean(": ".join(filter(None, (short, error or "")))) or "-"


def say_since(moment: datetime | None, now: datetime) -> str:
    return "?" if moment is None else say_age(now - moment)


def say_story(letter: Letter, now: datetime) -> Iterator[Fact]:
    """Tell what became of a message, fact by fact."""
    story = letter.message.story
    yield "id", letter.id or "none: its publisher gave it none"
    yield "died", _say_moment(letter.dead_at, now)
    yield "reason", str(letter.reason or "unknown: neither Redrive nor the broker parked it")
    yield "attempts", str(letter.attempts)
    if letter.redrives:
        yield "redrives", f"put back {letter.redrives}× before, and died again"
    if story.crashes:
        yield "crashes", str(story.crashes)
    if story.snoozes:
        yield "snoozes", str(story.snoozes)
    if story.first_attempt_at:
        yield "first try", _say_moment(story.first_attempt_at, now)
    if story.origin_exchange is not None:
        yield "origin", f"exchange {story.origin_exchange!r}, routing key {story.origin_routing_key or ''!r}"
    if letter.pod:
        yield "pod", letter.pod
    if letter.fingerprint:
        yield "group", letter.fingerprint
    if letter.error_type:
        yield "error", letter.error_type
    if letter.error:
        yield "", letter.error
    clamped = (*story.clamped, *letter.death.clamped)
    if clamped:
        yield "nonsense", f"left out, or cut: {', '.join(dict.fromkeys(clamped))}"


def say_properties(letter: Letter) -> Iterator[Fact]:
    for name in letter.properties.__slots__:
        value = getattr(letter.properties, name)
        if name != "headers" and value is not None:
            yield name, str(value)


def say_headers(headers: Mapping[str, object]) -> Iterator[Fact]:
    """Show every header but those that the story told already."""
    for name, value in sorted(headers.items()):
        if not name.startswith("redrive-"):
            yield name, say_value(value)


def say_body(body: bytes) -> tuple[str, list[str]]:
    """Say what kind of body it is, and its lines: JSON in a readable form, text, or bytes in hexadecimal."""
    cut = "" if len(body) <= LONGEST_BODY else f", of which the first {LONGEST_BODY:,} are shown"
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return f"binary, {len(body):,} bytes{cut}", list(_hex(body[:LONGEST_BODY]))
    try:
        pretty = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return f"text, {len(body):,} bytes{cut}", _clean_lines(text[:LONGEST_BODY])
    return f"JSON, {len(body):,} bytes", _clean_lines(pretty)


def _clean_lines(text: str) -> list[str]:
    return [clean(line) for line in text.split("\n")]


def _hex(body: bytes) -> Iterator[str]:
    for start in range(0, len(body), _HEX_WIDTH):
        row = body[start : start + _HEX_WIDTH]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{start:08x}  {row.hex(' '):<{3 * _HEX_WIDTH - 1}}  {text}"


def _say_moment(moment: datetime | None, now: datetime) -> str:
    return "unknown" if moment is None else f"{write_time(moment)}, {say_age(now - moment)} ago"


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else write_time(moment)
