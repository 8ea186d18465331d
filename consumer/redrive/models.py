"""Says what is wrong with a body that is not as its pydantic model says, and nothing of what is in it.

What is wrong is told in logs, and a body may hold anything. Where a fault is, is told in words of the
model alone. Keys of a table, and fields that should not be there, are the body's. So are parts of some of pydantic's
sentences.

Nothing else of a worker knows pydantic, which takes four megabytes: this module is loaded where there is a model.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TypeGuard

import pydantic

from redrive.clip import clip_head
from redrive.raised import LONGEST_TEXT

# A body can hold a fault for each of its bytes, and listing them takes memory.
MOST_FAULTS = 100

# Kinds of faults whose sentences quote the body.
_QUOTING = frozenset({"union_tag_invalid", "uuid_parsing", "bytes_invalid_encoding", "timezone_offset"})
# How pydantic quotes it, where a validator of the user's checks a part of a body with a model of its own.
_QUOTED = "input_value="

_HIDDEN = "#"
_OF_ANY = frozenset({"[key]", "__root__"})


def is_model(kind: type) -> TypeGuard[type[pydantic.BaseModel]]:
    return issubclass(kind, pydantic.BaseModel)


def explain(model: type[pydantic.BaseModel], error: BaseException) -> str | None:
    """Say what is wrong with which field, and not what was there: values would also tell equal faults apart.

    None where it is not pydantic that has found it.
    """
    if not isinstance(error, pydantic.ValidationError):
        return None
    if error.error_count() > MOST_FAULTS:
        return f"the body has more than {MOST_FAULTS} faults as {error.title}"
    words = _list_words(model)
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    listed = "; ".join(f"{_place(fault['loc'], words)}: {_sentence(fault['type'], fault['msg'])}" for fault in faults)
    return clip_head(listed, LONGEST_TEXT)


@cache
def _list_words(model: type[pydantic.BaseModel]) -> frozenset[str]:
    """List every word that the model's author has written: names of fields, aliases, tags, types."""
    try:
        return frozenset(_walk(model.__pydantic_core_schema__)) | _OF_ANY
    except Exception:  # a model may put anything there; then nothing is told but what is wrong
        return _OF_ANY


def _place(parts: tuple[int | str, ...], words: frozenset[str]) -> str:
    return ".".join(str(part) if isinstance(part, int) or part in words else _HIDDEN for part in parts) or "the body"


def _sentence(kind: str, text: str) -> str:
    return kind if kind in _QUOTING or _QUOTED in text else text


def _walk(schema: object) -> Iterator[str]:
    if isinstance(schema, str):
        yield schema
    elif isinstance(schema, type):
        yield schema.__name__
    elif isinstance(schema, Mapping):
        for key, value in schema.items():
            yield from _walk(key)
            yield from _walk(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from _walk(value)
