"""Commands whose help says of a flag what it does, and not that it is a `<bool>`: nobody types one."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - the library keeps its own types to itself
        return _plain(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        return _plain(super().get_params(ctx))


class Commands(typer.Typer):
    """Commands, as typer has them."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(cls=_Group, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Any:  # noqa: ANN401
        return super().command(name, cls=_Command, **settings)


def _plain(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_bool_flag", False) and param.metavar is None:
            param.metavar = ""
    return params
