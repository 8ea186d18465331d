"""Options that several commands share, as dataclasses: each field is an option of its own to whoever types it.

A command takes such a dataclass as one parameter. `flattened` shows typer its fields instead, and puts them together
again when the command is called.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def flattened(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command of one whose parameters may be dataclasses of options."""
    hints = get_type_hints(command, include_extras=True)
    hints.pop("return", None)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    shown: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            shown += _fields_of(groups[name])
        else:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))

    def call(**given: Any) -> None:  # noqa: ANN401 - what was typed
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # which `inspect` honours
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return call


def _fields_of(group: Any) -> list[inspect.Parameter]:  # noqa: ANN401 - a class of options
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(group)
    ]
