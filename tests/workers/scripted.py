"""A handler that does what its message says, attempt by attempt, and notes every run before it does.

The body is JSON: {"do": ["fail", "ok"]}: the n-th attempt does the n-th, and the last repeats. Runs are appended to the
file that LEDGER names, one line each, so that also those of a process that died are there.
"""

import asyncio
import os
import re
import signal
import time
from pathlib import Path

from redrive import Message, Reject, Retry, Snooze


class Down(Exception):
    pass


def handle(body: dict, message: Message) -> None:
    what = _note(body, message)
    if what.startswith("sleep:"):
        time.sleep(float(what.removeprefix("sleep:")))
    else:
        _act(what)


async def handle_async(body: dict, message: Message) -> None:
    what = _note(body, message)
    if what.startswith("sleep:"):
        await asyncio.sleep(float(what.removeprefix("sleep:")))
    else:
        _act(what)


def _note(body: dict, message: Message) -> str:
    steps = body["do"]
    what = steps[min(message.attempt, len(steps)) - 1]
    line = f"{message.id} {message.attempt} {what}\n".encode()
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, line)
    os.close(ledger)
    return what


def _act(what: str) -> None:
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
            # As when the kernel ends a whole container: the worker, its zygote and every child, in no order.
            os.kill(int(Path(os.environ["WORKER_PID_FILE"]).read_text()), signal.SIGKILL)
            time.sleep(60)
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
