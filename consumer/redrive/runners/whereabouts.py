"""Where a handler is at this moment, written like the trace of an exception.

An async handler that waits is not where a signal finds the process, in the event loop: it is where its tasks wait.
"""

import asyncio
import traceback
from collections.abc import Iterable, Iterator
from itertools import takewhile
from types import CodeType, FrameType
from typing import Any

_MOST_TASKS = 8

_Place = tuple[FrameType, int]


def describe_work(frame: FrameType | None, *, below: CodeType) -> str:
    """Write where the work is, from the call of `below` down; never empty, and never raises.

    For a signal handler: what it raised would be taken for the handler's own.
    """
    try:
        return "".join(_write(stack) for stack in _waiting_stacks() or [_calling_stack(frame, below)])
    except Exception:
        return "where it was cannot be told\n"


def _write(stack: Iterable[_Place]) -> str:
    lines = traceback.StackSummary.extract(iter(stack)).format()
    return "".join(["Traceback (most recent call last):\n", *lines, "redrive.TimedOut\n"])


def _calling_stack(frame: FrameType | None, below: CodeType) -> list[_Place]:
    inwards = takewhile(lambda place: place[0].f_code is not below, traceback.walk_stack(frame))
    return list(inwards)[::-1]


def _waiting_stacks() -> list[list[_Place]]:
    """Follow each task to what it waits for; none when a task is being run, or there is no event loop."""
    loop = asyncio._get_running_loop()
    if loop is None or asyncio.current_task(loop):
        return []
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: (len(task.get_name()), task.get_name()))
    return [list(_await_chain(task.get_coro())) for task in tasks[:_MOST_TASKS]]


def _await_chain(awaited: Any) -> Iterator[_Place]:  # noqa: ANN401 - coroutines and all that they may wait for
    while awaited is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(awaited, f"{kind}_frame")), None)
        frame = getattr(awaited, f"{kind}_frame", None)
        if frame is None:
            return
        yield frame, frame.f_lineno
        awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
