"""A handler that does what its message says, attempt by attempt, and notes every run before it does.

The body is JSON: {"do": ["fail", "ok"]}: the n-th attempt does the n-th, and the last repeats. "held, fail" waits for a
file `fail-released` beside the ledger before it does so; "sleep:2" succeeds after so long, "loop:2" lets nobody in
meanwhile. Runs are appended to the file that LEDGER names, one line each, so that also those of a process that died are
there.
"""

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from descent import descendants

from redrive import Message, Reject, Retry, Snooze


class Down(Exception):
    pass


def handle(body: dict, message: Message) -> None:
    what, pauses = _read(_note(body, message))
    for seconds in pauses:
        time.sleep(seconds)
    _act(what)


async def handle_async(body: dict, message: Message) -> None:
    what, pauses = _read(_note(body, message))
    for seconds in pauses:
        await asyncio.sleep(seconds)
    _act(what)


def _read(what: str) -> tuple[str, Iterator[float]]:
    """Say what to do at last, and how long to sleep before it, again and again."""
    if what.startswith("sleep:"):
        return "ok", iter([float(what.removeprefix("sleep:"))])
    if what.startswith("held, "):
        what = what.removeprefix("held, ")
        return what, _until(Path(os.environ["LEDGER"]).with_name(f"{what}-released"))
    return what, iter(())


def _until(released: Path) -> Iterator[float]:
    while not released.exists():
        yield 0.1


def _note(body: dict, message: Message) -> str:
    steps = body["do"]
    what = steps[min(message.attempt, len(steps)) - 1]
    line = f"{message.id} {message.attempt} {what}\n".encode()
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, line)
    os.close(ledger)
    return what


def _act(what: str) -> None:
    if what.startswith("loop:"):
        deadline = time.monotonic() + float(what.removeprefix("loop:"))
        while time.monotonic() < deadline:
            pass
        return
    match what:
        case "ok":
            return
        case "fail":
            raise Down("no answer")
        case "reject":
            raise Reject("never")
        case "snooze":
            raise Snooze(delay=0.25)
        case "retry":
            raise Retry("please", delay=0.25)
        case "exit":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill all":
            # As when the kernel ends a whole container: the worker, its zygote and every child, all in a moment.
            worker = int(Path(os.environ["WORKER_PID_FILE"]).read_text())
            others = {worker, *descendants(worker)} - {os.getpid()}
            for pid in [*others, os.getpid()]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        case "tell":
            Path(os.environ["LEDGER"]).with_name("told").touch()
        case "loop":
            while True:
                pass
        case "keep":
            re.match(r"(a+)+$", "a" * 60 + "b")  # keeps the interpreter for longer than anybody lives
        case "eat":
            hoard = []
            while True:
                hoard.append(b"x" * 1_000_000)
        case _:
            raise ValueError(f"nobody knows how to {what}")
