"""Header values as JSON that keeps their types, so that a backup is what it was.

JSON's own texts, integers, booleans, null, arrays and objects are written as they are. What JSON would lose or change
is an object with one key that begins with `$`: `$float`, `$decimal`, `$bytes` (base64), `$time`, and `$table` for a
table whose names could be mistaken for one of these, or are no texts.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from redrive.field_tables import DEEPEST


class BadValue(ValueError):
    """Why a value cannot be read, as a sentence."""


def write_value(value: object) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Write a value of a header. What no header can hold raises TypeError."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return {"$float": repr(value)}
        case bytes():
            return {"$bytes": b64encode(value).decode()}
        case Decimal():
            return {"$decimal": str(value)}
        case datetime():
            return {"$time": value.isoformat()}
        case list():
            return [write_value(each) for each in value]
        case dict():
            return _write_table(value)
        case _:
            raise TypeError(f"no header has a value of type {type(value).__name__}")


def read_value(raw: object, *, depth: int = 0) -> object:
    """Read what `write_value` wrote; BadValue says what is wrong."""
    if depth > DEEPEST:
        raise BadValue("it nests too deeply")
    match raw:
        case None | bool() | str() | int():
            return raw
        case list():
            return [read_value(each, depth=depth + 1) for each in raw]
        case dict():
            return _read_object(raw, depth)
        case _:
            raise BadValue(f'{raw!r} is a number with a fraction: write {{"$float": "{raw!r}"}}')


def _write_table(table: dict[object, object]) -> object:
    if all(isinstance(name, str) and not name.startswith("$") for name in table):
        return {name: write_value(value) for name, value in table.items()}
    return {"$table": [[write_value(name), write_value(value)] for name, value in table.items()]}


def _read_object(raw: dict[str, object], depth: int) -> object:
    marks = [name for name in raw if name.startswith("$")]
    if not marks:
        return {name: read_value(value, depth=depth + 1) for name, value in raw.items()}
    if len(raw) > 1:
        raise BadValue(f"an object with {marks[0]!r} has no other keys")
    [(mark, value)] = raw.items()
    if mark == "$table" and isinstance(value, list):
        return dict(_read_rows(value, depth))
    if mark not in _READERS or not isinstance(value, str):
        raise BadValue(f"{mark!r} is not known here: there are {', '.join(_READERS)} with a text, and $table")
    try:
        return _READERS[mark](value)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise BadValue(f"{mark!r} has {value[:60]!r}, which is none") from error


def _read_rows(rows: Iterable[object], depth: int) -> Iterable[tuple[str | bytes, object]]:
    for row in rows:
        if not isinstance(row, list) or len(row) != 2:
            raise BadValue("a `$table` is a list of pairs of name and value")
        name = read_value(row[0], depth=depth + 1)
        if not isinstance(name, str | bytes):
            raise BadValue("a name in a `$table` is a text or `$bytes`")
        yield name, read_value(row[1], depth=depth + 1)


def _read_time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


_READERS: dict[str, Callable[[str], object]] = {
    "$float": float,
    "$decimal": Decimal,
    "$bytes": lambda text: b64decode(text, validate=True),
    "$time": _read_time,
}
