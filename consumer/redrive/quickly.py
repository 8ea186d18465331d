"""Makes frozen values quickly, where one is made for every message.

A frozen dataclass sets each of its fields by a call, because its own guard stands in the way: it takes three times as
long to make as one that anybody may change. So it is made as one of those, with the same fields in the same places, and
given its class, and with that its guard, when it is filled.
"""

from dataclasses import field, fields, make_dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")


def quickly(cls: type[T]) -> type[T]:
    """Give what makes values of a frozen dataclass with slots that has no bases: call it as you would the class."""

    def close(value: Any) -> None:  # noqa: ANN401 - a value that is not yet what it is to be
        value.__class__ = cls

    same = [
        (each.name, object, field(default=each.default, default_factory=each.default_factory, kw_only=each.kw_only))
        for each in fields(cast("Any", cls))
    ]
    return cast("type[T]", make_dataclass(cls.__name__, same, namespace={"__post_init__": close}, slots=True))
