"""Reading raw JSON-like objects strictly: a reader takes a raw value and its path, and returns a value or raises.

What it raises is SpecError. `null` means "left out", as it does to the API server. A bool is never a number, though
Python thinks so, and nothing is converted: YAML turns an unquoted 2 into a number, and whoever meant "2" must quote it.
"""

import difflib
import json
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from redrive.errors import SpecError
from redrive.spec.durations import format_duration, parse_duration

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
Reader = Callable[[object, str], T]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Fields:
    """One object with known fields, each read by a reader of its own."""

    def __init__(self, raw: object, path: str, known: Iterable[str]) -> None:
        self._raw = mapping(raw, path)
        self._path = path
        _refuse_unknown(self._raw, path, tuple(known))

    def path(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def has(self, name: str) -> bool:
        return self._raw.get(name) is not None

    def required(self, name: str, reader: Reader[T]) -> T:
        if not self.has(name):
            raise SpecError(self.path(name), "is required")
        return reader(self._raw[name], self.path(name))

    def optional(self, name: str, reader: Reader[T]) -> T | None:
        return reader(self._raw[name], self.path(name)) if self.has(name) else None

    def default(self, name: str, reader: Reader[T], default: T) -> T:
        return reader(self._raw[name], self.path(name)) if self.has(name) else default

    def several(self, name: str, reader: Reader[tuple[T, ...]]) -> tuple[T, ...]:
        """Read a list that is empty when it is left out."""
        return self.default(name, reader, ())

    def nested(self, name: str, reader: Reader[T]) -> T:
        """Read an object whose every field has a default, so that leaving it out is like leaving it empty."""
        return reader(self._raw[name] if self.has(name) else {}, self.path(name))

    def exactly_one(self, *names: str) -> str:
        """Return the only one of these names that is given."""
        given = [name for name in names if self.has(name)]
        if len(given) != 1:
            wanted = f"either {' or '.join(names)}" if len(names) == 2 else f"exactly one of {listing(names)}"
            found = listing(given) if given else "none of them"
            raise SpecError(self._path or "the object", f"set {wanted}, got {found}")
        return given[0]


def _refuse_unknown(raw: Mapping[str, Any], path: str, known: Sequence[str]) -> None:
    for name in raw:
        if not isinstance(name, str):
            raise SpecError(path, f"has the key {show(name)}, which is not text: write it in quotes")
        if name not in known:
            here = f"{path}.{name}" if path else name
            raise SpecError(here, f"is not a field of {path or 'the object'}: {suggest(name, known)}")


def suggest(word: str, known: Sequence[str]) -> str:
    """Name the closest of the known words, or all of them."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"did you mean {by_lower[close[0]]}?" if close else f"there are {listing(known)}"


def listing(words: Sequence[str]) -> str:
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


def show(value: object) -> str:
    """Write a raw value so that it fits into a sentence, whatever it is."""
    try:
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else reprlib.repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number too long to show"
    text = text[:61].encode(errors="backslashreplace").decode()  # a lone surrogate could not be printed
    # JSON leaves some characters as they are that break a line, or that a terminal obeys.
    text = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return text if len(text) <= 60 else f"{text[:57]}..."


def mapping(raw: object, path: str) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise SpecError(path or "the object", f"must be an object with fields, got {show(raw)}")
    return raw


def boolean(raw: object, path: str) -> bool:
    if not isinstance(raw, bool):
        raise SpecError(path, f"must be true or false, without quotes, got {show(raw)}")
    return raw


def whole(raw: object) -> int | None:
    """Return the whole number that this is, if it is one.

    The API server takes 1.0 for one, too, except in a field that a CEL rule reads: there its evaluation fails, whatever
    the rule says. Nobody meets that with kubectl, which sends 1.
    """
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    return int(raw) if isinstance(raw, float) and raw.is_integer() else None


def integer(low: int, high: int) -> Reader[int]:
    def read(raw: object, path: str) -> int:
        value = whole(raw)
        if value is None:
            raise SpecError(path, f"must be a whole number, without quotes, got {show(raw)}")
        if value < low:
            raise SpecError(path, f"must be at least {low}, got {show(raw)}")
        if value > high:
            raise SpecError(path, f"must be at most {high}, got {show(raw)}")
        return value

    return read


def string(raw: object, path: str) -> str:
    if not isinstance(raw, str):
        raise SpecError(path, f"must be a string, got {show(raw)}: write it in quotes")
    # JSON can smuggle in half of a surrogate pair, which nothing could send to a broker.
    if any("\ud800" <= character <= "\udfff" for character in raw):
        raise SpecError(path, "must be valid text, but has half of a surrogate pair")
    return raw


def text(
    low: int, high: int, *, pattern: str = "", says: str = "", in_bytes: bool = False, controls: bool = True
) -> Reader[str]:
    """Read a string of `low` to `high` characters; `says` is the sentence for one that does not fit the pattern.

    AMQP counts names in bytes and has no use for control characters, so names of its things are read with
    `in_bytes=True, controls=False`.
    """
    fits = re.compile(pattern, re.ASCII)

    def read(raw: object, path: str) -> str:
        value = string(raw, path)
        _check_length(value, path, low, high, in_bytes)
        if not controls and _CONTROL.search(value):
            raise SpecError(path, f"must have no control characters, such as line breaks, got {show(value)}")
        if pattern and not fits.fullmatch(value):
            raise SpecError(path, f"{says}, got {show(value)}")
        return value

    return read


def _check_length(value: str, path: str, low: int, high: int, in_bytes: bool) -> None:
    size = len(value.encode()) if in_bytes else len(value)
    unit = "bytes" if in_bytes else "characters"
    if size < low:
        raise SpecError(path, "must not be empty" if size == 0 else f"must have at least {low} {unit}, got {size}")
    if size > high:
        raise SpecError(path, f"must have at most {high} {unit}, got {size}")


def choice(words: type[E]) -> Reader[E]:
    names = [word.value for word in words]

    def read(raw: object, path: str) -> E:
        if raw not in names:
            hint = f"; {suggest(raw, names)}" if isinstance(raw, str) else ""
            raise SpecError(path, f"must be one of {listing(names)}, got {show(raw)}{hint}")
        return words(raw)

    return read


def duration(low: timedelta, high: timedelta) -> Reader[timedelta]:
    bounds = f"must be a duration from {format_duration(low)} to {format_duration(high)}, such as 500ms, 30s or 1h30m"

    def read(raw: object, path: str) -> timedelta:
        if not isinstance(raw, str):
            raise SpecError(path, f"{bounds}, got {show(raw)}: write it with its unit")
        try:
            value = parse_duration(raw)
        except ValueError:
            raise SpecError(path, f"{bounds}, got {show(raw)}") from None
        if not low <= value <= high:
            raise SpecError(path, f"{bounds}, got {raw}")
        return value

    return read


def items(reader: Reader[T], *, at_least: int = 0, at_most: int, unique: bool = False) -> Reader[tuple[T, ...]]:
    def read(raw: object, path: str) -> tuple[T, ...]:
        if isinstance(raw, str | bytes) or not isinstance(raw, Sequence):
            raise SpecError(path, f"must be a list, got {show(raw)}")
        if not at_least <= len(raw) <= at_most:
            bound = f"at least {at_least}" if len(raw) < at_least else f"at most {at_most}"
            raise SpecError(path, f"must have {bound} items, got {len(raw)}")
        values = tuple(reader(item, f"{path}[{index}]") for index, item in enumerate(raw))
        if unique:
            _refuse_twice(values, path)
        return values

    return read


def _refuse_twice(values: Sequence[object], path: str) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise SpecError(f"{path}[{index}]", f"must be there only once: {show(value)} is a duplicate")
