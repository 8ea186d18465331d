"""A user's handler: found by its name, understood by its signature, called, and its end told as a Result.

The annotation of the first parameter says what the body becomes: bytes (also without an annotation), str, dict (JSON)
or a pydantic model. A body that is not that is Unreadable, and the handler is not called. The second parameter, the
Message, may be left out.
"""

import asyncio
import importlib
import inspect
import json
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

import pydantic

from redrive.errors import RedriveError
from redrive.message import Message
from redrive.outcome import Failed, Rejected, Result, Snoozed, Succeeded, Unreadable, type_names
from redrive.signals import Reject, Retry, Snooze

Parse = Callable[[bytes], Any]


class HandlerError(RedriveError):
    """A handler that cannot be used; the text says what to change."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that can be called with a message."""

    function: Callable[..., Any]
    parse: Parse
    takes_message: bool


def load_handler(name: str) -> Handler:
    """Import `module:function`; HandlerError says in one sentence why that cannot be."""
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:  # whatever the user's module raises while it is imported
        raise HandlerError(f"the handler {name} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise HandlerError(f"the handler {name} is not a function: name one that takes (body) or (body, message)")
    return _understand(found, name)


def run_handler(handler: Handler, message: Message) -> Result:
    """Call the handler; never raises for what it did."""
    try:
        body = handler.parse(message.body)
    except (ValueError, RecursionError) as error:
        return Unreadable(_first_line(error), traceback.format_exc())
    try:
        result = handler.function(body, message) if handler.takes_message else handler.function(body)
        if inspect.isawaitable(result):
            asyncio.run(_finish(result))
    except Exception as error:
        return _result_of(error)
    return Succeeded()


async def _finish(awaitable: Any) -> None:  # noqa: ANN401 - whatever the handler returned
    await awaitable


def _result_of(error: Exception) -> Result:
    trace = "".join(traceback.format_exception(error))
    match error:
        case Retry():
            return Failed(str(error), error_types=("redrive.Retry",), trace=trace, asked_delay=error.delay)
        case Snooze():
            return Snoozed(error.delay)
        case Reject():
            return Rejected(str(error), trace)
        case _:
            return Failed(str(error), error_types=type_names(type(error)), trace=trace)


def _understand(function: Callable[..., Any], name: str) -> Handler:
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) not in (1, 2):
        raise HandlerError(f"the handler {name} must take (body) or (body, message), not {len(positional)} parameters")
    kind = _annotation(function, positional[0], name)
    return Handler(function, _parser_for(kind, name), takes_message=len(positional) == 2)


def _annotation(function: Callable[..., Any], body: inspect.Parameter, name: str) -> Any:  # noqa: ANN401
    try:
        return get_type_hints(function).get(body.name, bytes)
    except NameError as error:
        raise HandlerError(f"the handler {name} has an annotation that cannot be found: {error}") from error


def _parser_for(kind: Any, name: str) -> Parse:  # noqa: ANN401 - whatever stands in an annotation
    if kind is bytes:
        return bytes
    if kind is str:
        return bytes.decode
    if kind is dict or getattr(kind, "__origin__", None) is dict:
        return _parse_object
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return kind.model_validate_json
    raise HandlerError(
        f"the handler {name} wants a {kind!r}: annotate its body as bytes, str, dict or a pydantic model"
    )


def _parse_object(body: bytes) -> dict[str, Any]:
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"the body is JSON, but not an object: it is {type(value).__name__}")  # noqa: TRY004
    return value


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
