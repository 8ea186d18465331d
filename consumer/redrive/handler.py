"""A user's handler: found by its name, understood by its signature, called, and its end told as a Result.

The annotation of the first parameter says what the body becomes: bytes (also without an annotation), str, dict (JSON)
or a pydantic model. A body that is not that is Unreadable, and the handler is not called. The second parameter, the
Message, may be left out.

It is the user's code, so anything may happen in it, and whatever does is a value here: a worker that died of it would
run the same message for ever. What a handler sets in a context variable is gone when it ends. The event loop of `async
def` handlers stays, with whatever tasks they left in it, so that they can share a client from message to message.
"""

import asyncio
import functools
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from redrive.errors import RedriveError
from redrive.message import Message
from redrive.outcome import Failed, Result, Succeeded, Unreadable
from redrive.raised import describe, result_of, trace_of

Parse = Callable[[bytes], Any]
Explain = Callable[[BaseException], str | None]

_SUCCEEDED = Succeeded()


class HandlerError(RedriveError):
    """A handler that cannot be used; the text says what to change."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that can be called with a message."""

    name: str
    function: Callable[..., Any]
    parse: Parse
    takes_message: bool
    is_async: bool
    explain: Explain | None = None  # what is wrong with a body, by what `parse` has raised, where that is known


def load_handler(name: str) -> Handler:
    """Import `module:function`; HandlerError says in one sentence why that cannot be."""
    module_name, _, path = name.partition(":")
    parent: Any = None
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            parent, found = found, getattr(found, part)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the module does when it is imported
        raise HandlerError(f"the handler {name} cannot be imported: {_problem(error)}{_place(error)}") from error
    if isinstance(parent, type) and inspect.isfunction(found) and not _is_static(parent, path):
        owner = path.rpartition(".")[0]
        raise HandlerError(
            f"the handler {name} is a method, and there is no {owner} to call it on: make it a staticmethod, "
            f"or make one, such as handler = {owner}(), and name its method"
        )
    return read_handler(found, name)


def read_handler(function: object, name: str) -> Handler:
    """Understand a function by its signature; HandlerError says what to change."""
    if not callable(function) or isinstance(function, type):
        raise HandlerError(f"the handler {name} is not a function: name one that takes (body) or (body, message)")
    inner = _innermost(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise HandlerError(f"the handler {name} is a generator, which would never be run: let it return, not yield")
    body, message = _parameters(function, name)
    parse, explain = _parser_for(body.annotation, name)
    return Handler(
        name=name,
        function=function,
        parse=parse,
        explain=explain,
        takes_message=message is not None,
        is_async=inspect.iscoroutinefunction(inner),
    )


class Awaiting:
    """The event loop of the `async def` handlers of one thread, from message to message. `close` it at the end."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, awaitable: Awaitable[object], context: Context) -> Result:
        self._runner = self._runner or asyncio.Runner()
        pid = os.getpid()
        try:
            return self._runner.run(finish(awaitable), context=context)
        except BaseException as error:  # raised by a task that the handler had made, past it and through the loop
            end_copy(pid, error)
            self.close()
            return result_of(error)

    def close(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()


def run_handler(handler: Handler, message: Message, awaiting: Awaiting | None = None) -> Result:
    """Call the handler; never raises for what it did. Whoever runs many gives a loop to await them in."""
    context = copy_context()
    came = context.run(call_handler, handler, message)
    if isinstance(came, Result):
        return came
    if awaiting is not None:
        return awaiting.run(came, context)
    with closing(Awaiting()) as own:
        return own.run(came, context)


def call_handler(handler: Handler, message: Message) -> Result | Awaitable[object]:
    """Call the handler and say what came of it, or, where it is to be awaited, give what is to be awaited."""
    try:
        body = handler.parse(message.body)
    except MemoryError as error:
        return result_of(error)  # another time there may be more
    except BaseException as error:  # a validator of the user's may raise anything
        if handler.explain is not None and (fault := handler.explain(error)) is not None:
            return Unreadable(fault)
        return Unreadable(f"{type(error).__name__}: {describe(error)}", trace_of(error))
    pid = os.getpid()
    try:
        returned = handler.function(body, message) if handler.takes_message else handler.function(body)
    except BaseException as error:  # what ends a program or a task is, inside a handler, just another way to fail
        end_copy(pid, error)
        return result_of(error)
    end_copy(pid)
    return _SUCCEEDED if returned is None else _judge(returned)


async def finish(awaitable: Awaitable[object]) -> Result:
    """Await what a handler gave; never raises for what it did."""
    pid = os.getpid()
    try:
        await awaitable
    except BaseException as error:
        end_copy(pid, error)
        return result_of(error)
    end_copy(pid)
    return _SUCCEEDED


def end_copy(pid: int, error: BaseException | None = None) -> None:
    """End this process, as the error says, unless it is the one of that number.

    A handler that forks, and whose copy returns or exits, comes out of its call twice. The copy has our queues and our
    connections, and would do all that we do a second time.
    """
    if os.getpid() != pid:
        flush_streams()
        os._exit(0 if error is None else _exit_code(error))


def flush_streams() -> None:
    """Write out what was printed and is still held back: nobody does it at the end of a process that just leaves."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # it may be closed, or be anything that a module has put there
            stream.flush()


def _exit_code(error: BaseException) -> int:
    code = error.code if isinstance(error, SystemExit) else 1
    return code & 0xFF if isinstance(code, int) else int(code is not None)


def _judge(returned: object) -> Result | Awaitable[object]:
    if inspect.isawaitable(returned):
        return returned
    if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        return Failed("the handler returned a generator, whose body was not run", error_types=("TypeError",))
    return _SUCCEEDED


def _problem(error: BaseException) -> str:
    return f"{type(error).__name__}: {describe(error)}".splitlines()[0]


def _place(error: BaseException) -> str:
    """Say in which line of the user's code an import failed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    outside = [frame for frame in frames if Path(frame.filename) != Path(__file__)]
    return f" ({outside[-1].filename}, line {outside[-1].lineno})" if outside else ""


def _is_static(owner: type, path: str) -> bool:
    return isinstance(inspect.getattr_static(owner, path.rpartition(".")[2]), staticmethod)


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Find the function behind partials, decorators and objects that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    return function if inspect.isroutine(function) else inspect.unwrap(type(function).__call__)


def _parameters(function: Callable[..., Any], name: str) -> tuple[inspect.Parameter, inspect.Parameter | None]:
    """Find the body's parameter and the message's; others may be there as long as they have defaults."""
    try:
        parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    except Exception as error:  # an annotation is evaluated, and may be any expression
        advice = ": import it at run time too, not only for a type checker" if isinstance(error, NameError) else ""
        raise HandlerError(f"the signature of the handler {name} cannot be read: {_problem(error)}{advice}") from error
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if not positional and variadic:
        problem = f"the handler {name} takes *args, which do not say what its body is"
        raise HandlerError(f"{problem}: name its parameters, or use functools.wraps in its decorator")
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not positional or any(p not in positional[:2] for p in required):
        raise HandlerError(
            f"the handler {name} must take (body) or (body, message), and nothing else without a default"
        )
    message = positional[1] if len(positional) > 1 and _is_for_message(positional[1], name) else None
    return positional[0], message


def _is_for_message(parameter: inspect.Parameter, name: str) -> bool:
    """Say whether the message goes there. A parameter with a default is the user's own, unless it asks for it."""
    annotation, optional = parameter.annotation, parameter.default is not parameter.empty
    if any(kind is Message for kind in (annotation, *get_args(annotation))):
        return True
    if annotation is Any or annotation is parameter.empty:
        return not optional or parameter.name == "message"
    if optional:
        return False
    problem = f"the second parameter of the handler {name}, {parameter.name}, is given the message"
    raise HandlerError(f"{problem}: annotate it as redrive.Message, or leave it out")


def _kind_of(annotation: Any) -> Any:  # noqa: ANN401 - whatever stands in an annotation
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _parser_for(annotation: Any, name: str) -> tuple[Parse, Explain | None]:  # noqa: ANN401
    kind = _kind_of(annotation)
    if kind is bytes or kind is inspect.Parameter.empty:
        return bytes, None
    if kind is str:
        return bytes.decode, None
    if kind is dict or get_origin(kind) is dict:
        return _parse_object, None
    if "pydantic" in sys.modules and isinstance(kind, type):  # who has a model has it; it takes four megabytes
        from redrive import models

        if models.is_model(kind):
            return kind.model_validate_json, functools.partial(models.explain, kind)
    problem = f"the handler {name} wants a {kind!r}"
    raise HandlerError(f"{problem}: annotate its body as bytes, str, dict or a pydantic model")


def _parse_object(body: bytes) -> dict[str, Any]:
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"the body is JSON, but not an object: it is {type(value).__name__}")  # noqa: TRY004
    return value
