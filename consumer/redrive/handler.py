"""A user's handler: found by its name, understood by its signature, called, and its end told as a Result.

The annotation of the first parameter says what the body becomes: bytes (also without an annotation), str, dict (JSON)
or a pydantic model. A body that is not that is Unreadable, and the handler is not called. The second parameter, the
Message, may be left out.

It is the user's code, so anything may happen in it, and whatever does is a value here: a worker that died of it would
run the same message for ever.
"""

import asyncio
import importlib
import inspect
import json
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pydantic

from redrive.errors import RedriveError
from redrive.message import Message
from redrive.outcome import Failed, Rejected, Result, Snoozed, Succeeded, Unreadable, type_names
from redrive.signals import Reject, Retry, Snooze

Parse = Callable[[bytes], Any]

# What ends a program or a task is, inside a handler, just another way to fail.
_ANYTHING = (Exception, SystemExit, asyncio.CancelledError)


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
    except _ANYTHING as error:
        problem = f"{type(error).__name__}: {_describe(error)}".splitlines()[0]
        raise HandlerError(f"the handler {name} cannot be imported: {problem}") from error
    if not callable(found) or isinstance(found, type):
        raise HandlerError(f"the handler {name} is not a function: name one that takes (body) or (body, message)")
    if inspect.isgeneratorfunction(found) or inspect.isasyncgenfunction(found):
        raise HandlerError(f"the handler {name} is a generator, which would never be run: let it return, not yield")
    return _understand(found, name)


def run_handler(handler: Handler, message: Message) -> Result:
    """Call the handler; never raises for what it did."""
    try:
        body = handler.parse(message.body)
    except pydantic.ValidationError as error:
        return Unreadable(_list_errors(error))
    except Exception as error:  # a validator of the user's may raise anything
        return Unreadable(f"{type(error).__name__}: {_describe(error)}", traceback.format_exc())
    try:
        return _finish(handler.function(body, message) if handler.takes_message else handler.function(body))
    except _ANYTHING as error:
        return _result_of(error)


def _finish(returned: object) -> Result:
    if inspect.isawaitable(returned):
        asyncio.run(_wait_for(returned))
    elif inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        return Failed("the handler returned a generator, whose body was not run", error_types=("TypeError",))
    return Succeeded()


async def _wait_for(awaitable: Any) -> None:  # noqa: ANN401 - whatever the handler returned
    await awaitable


def _result_of(error: BaseException) -> Result:
    said = _describe(error)
    trace = "".join(traceback.format_exception(error))
    match error:
        case Retry():
            return Failed(said, error_types=("redrive.Retry",), trace=trace, asked_delay=error.delay)
        case Snooze():
            return Snoozed(error.delay)
        case Reject():
            return Rejected(said, trace)
        case _:
            return Failed(said, error_types=type_names(type(error)), trace=trace)


def _understand(function: Callable[..., Any], name: str) -> Handler:
    try:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    except Exception as error:  # an annotation is evaluated, and may be any expression
        problem = f"{type(error).__name__}: {_describe(error)}"
        raise HandlerError(f"the signature of the handler {name} cannot be read: {problem}") from error
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if len(positional) not in (1, 2) or required:
        raise HandlerError(f"the handler {name} must take (body) or (body, message), and nothing else")
    kind = positional[0].annotation
    parse = _parser_for(bytes if kind is inspect.Parameter.empty else kind, name)
    return Handler(function, parse, takes_message=len(positional) == 2)


def _parser_for(kind: Any, name: str) -> Parse:  # noqa: ANN401 - whatever stands in an annotation
    if kind is bytes:
        return bytes
    if kind is str:
        return bytes.decode
    if kind is dict or getattr(kind, "__origin__", None) is dict:
        return _parse_object
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return kind.model_validate_json
    problem = f"the handler {name} wants a {kind!r}"
    raise HandlerError(f"{problem}: annotate its body as bytes, str, dict or a pydantic model")


def _parse_object(body: bytes) -> dict[str, Any]:
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"the body is JSON, but not an object: it is {type(value).__name__}")  # noqa: TRY004
    return value


def _list_errors(error: pydantic.ValidationError) -> str:
    """Say what is wrong with which field, and not what was there: values would tell equal faults apart."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}" for fault in faults)


def _describe(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # the user's own __str__
        return f"a {type(error).__name__} that cannot say what it is"
