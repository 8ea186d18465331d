"""From flags to a choice of letters: pure. Misuse says which flag is wrong, before any broker is asked."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from redrive.letters import Choice, chooser, every
from redrive.letters.choosing import EVERYTHING, has_header
from redrive.letters.filters import attempts_between, body_holds, body_searched
from redrive.letters.json_path import BadCondition
from redrive.outcome import DeadReason
from redrive.spec import parse_duration
from redrive.spec.redrive import HeaderMatch, Selection
from redrive_cli.errors import Misuse
from redrive_cli.letter_options import Which

_FINGERPRINT = re.compile(r"[0-9a-f]{1,64}")
_DAYS = re.compile(r"(\d{1,5})d")


def pick(which: Which, *, now: datetime) -> Choice | None:
    """Make a choice of the flags; None when nothing was asked for, which is everything."""
    if which == Which():
        return None
    return every([chooser(_select(which), seen_from=now), *_further(which)])


def _select(which: Which) -> Selection:
    if "" in (which.ids or ()):
        raise Misuse("--id is empty: name a message, as `redrive dead list` shows it")
    if which.fingerprint is not None and not _FINGERPRINT.fullmatch(which.fingerprint):
        raise Misuse("--fingerprint is in the digits 0-9 and a-f: `redrive dead groups` shows them")
    return Selection(
        reason=_read_reason(which.reason),
        error_type=which.error_type,
        fingerprint=which.fingerprint,
        older_than=read_age("--older-than", which.older_than),
        newer_than=read_age("--newer-than", which.newer_than),
        message_ids=tuple(which.ids or ()),
        header=EVERYTHING.header,
    )


def _read_reason(text: str | None) -> DeadReason | None:
    if text is None:
        return None
    known = {str(reason).lower(): reason for reason in DeadReason}
    if text.lower() not in known:
        raise Misuse(f"--reason {text!r} is none: there are {', '.join(DeadReason)}")
    return known[text.lower()]


def _further(which: Which) -> Iterator[Choice]:
    for header in which.header or ():
        name, equals, value = header.partition("=")
        if not name:
            raise Misuse(f"--header {header!r} names no header: write NAME, or NAME=VALUE")
        yield has_header(HeaderMatch(name, value if equals else None))
    if which.min_attempts is not None or which.max_attempts is not None:
        _check_order("--max-attempts", which.min_attempts, which.max_attempts)
        yield attempts_between(which.min_attempts, which.max_attempts)
    for condition in which.body or ():
        try:
            yield body_holds(condition)
        except BadCondition as error:
            raise Misuse(f"--body: {error}") from error
    if which.body_regex == "":
        raise Misuse("--body-regex is empty, and would be found in every body: leave it out")
    if which.body_regex is not None:
        try:
            yield body_searched(which.body_regex)
        except BadCondition as error:
            raise Misuse(f"--body-regex: {error}") from error


def _check_order(flag: str, least: int | None, most: int | None) -> None:
    if least is not None and most is not None and least > most:
        raise Misuse(f"{flag} is {most}, less than {least}, so that no letter could fit: raise it")


def read_age(flag: str, text: str | None) -> timedelta | None:
    """Read a duration as everywhere, and days besides, which people count dead letters in."""
    if text is None:
        return None
    if days := _DAYS.fullmatch(text):
        return timedelta(days=int(days[1]))
    try:
        return parse_duration(text)
    except ValueError as error:
        raise Misuse(f"{flag}: {text!r} is no age: write one such as 90s, 2h, 1h30m or 14d") from error
