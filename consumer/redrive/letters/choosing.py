"""Which letters a selection means: pure, and the same for an object in the cluster and for flags.

Ages are seen from a moment that is given, not from now. A letter whose end has no time is of no known age: it fits
`older_than` zero, which is everything, and no other age.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from redrive.letters.letter import Letter
from redrive.properties import as_text
from redrive.spec.redrive import HeaderMatch, Selection
from redrive.story import write_time

Choice = Callable[[Letter], bool]

EVERYTHING = Selection(None, None, None, None, None, (), None)

_ZERO = timedelta(0)
_MISSING = object()


def fits(selection: Selection, letter: Letter, *, seen_from: datetime) -> bool:
    """Say whether a letter fits everything that is asked of it."""
    return chooser(selection, seen_from=seen_from)(letter)


def chooser(selection: Selection, *, seen_from: datetime) -> Choice:
    """Make a choice of a selection, which asks a letter only for what is selected by."""
    return every(_conditions(selection, seen_from))


def every(choices: Iterable[Choice]) -> Choice:
    """Choose what each of these chooses; none of them: everything."""
    asked = tuple(choices)
    return asked[0] if len(asked) == 1 else lambda letter: all(choice(letter) for choice in asked)


def died_until(moment: datetime) -> Choice:
    """Choose what had died by then. What has no time was put there by hand, and nobody can say."""
    return lambda letter: not letter.died_after(moment)


def _conditions(selection: Selection, seen_from: datetime) -> Iterable[Choice]:
    reason, error_type, fingerprint = selection.reason, selection.error_type, selection.fingerprint
    if selection.message_ids:
        ids = frozenset(selection.message_ids)
        yield lambda letter: letter.id in ids
    if reason is not None:
        yield lambda letter: letter.reason is reason
    if error_type is not None:
        yield lambda letter: letter.error_type == error_type
    if fingerprint is not None:
        yield lambda letter: letter.fingerprint == fingerprint
    if selection.older_than is not None:
        yield _older_than(selection.older_than, seen_from)
    if selection.newer_than is not None:
        yield _newer_than(selection.newer_than, seen_from)
    if selection.header is not None:
        yield has_header(selection.header)


def _older_than(age: timedelta, seen_from: datetime) -> Choice:
    latest = seen_from - age
    return lambda letter: age == _ZERO if letter.dead_at is None else letter.dead_at <= latest


def _newer_than(age: timedelta, seen_from: datetime) -> Choice:
    earliest = seen_from - age
    return lambda letter: letter.dead_at is not None and letter.dead_at >= earliest


def has_header(match: HeaderMatch) -> Choice:
    def choose(letter: Letter) -> bool:
        found = letter.headers.get(match.name, _MISSING)
        return found is not _MISSING and (match.value is None or say_value(found) == match.value)

    return choose


def say_value(value: object) -> str:
    """Write the value of a header as a person would, to be compared with what one typed."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return value
        case datetime():
            return write_time(value)
        case _:
            return as_text(value)
