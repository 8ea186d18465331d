"""A handler that does what its message says, and notes the beginning and the end of every run, each in one write.

The body is JSON: {"do": ["snooze", "fail", "ok"]}: the n-th attempt or snooze does the n-th, the last repeats. Notes
are appended to the file that LEDGER names. A run that was killed has no end.
"""

import json
import os
import signal
import time
from uuid import uuid4

from redrive import Message, Reject, Snooze


class Down(Exception):
    pass


def handle(body: dict, message: Message) -> None:
    steps = body["do"]
    snoozes = int(message.headers.get("redrive-snoozes", 0))
    suspect = bool(message.headers.get("redrive-suspect", False))
    what = steps[min(message.attempt + snoozes, len(steps)) - 1]
    run = uuid4().hex
    _note(
        {
            "run": run,
            "id": message.id,
            "attempt": message.attempt,
            "snoozes": snoozes,
            "suspect": suspect,
            "what": what,
        }
    )
    try:
        _act(what, suspect)
    finally:
        _note({"run": run})


def _note(facts: dict) -> None:
    line = json.dumps({**facts, "at": time.time(), "pid": os.getpid()}).encode() + b"\n"
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, line)
    os.close(ledger)


def _act(what: str, suspect: bool) -> None:
    match what.split(":"):
        case ["ok"]:
            return
        case ["sleep", seconds]:
            time.sleep(float(seconds))
        case ["fail"]:
            raise Down("no answer")
        case ["reject"]:
            raise Reject("never")
        case ["snooze"]:
            raise Snooze(delay=0.25)
        case ["die"]:
            os.kill(os.getpid(), signal.SIGKILL)
        case ["die once"] if not suspect:
            os.kill(os.getpid(), signal.SIGKILL)
        case ["die once"]:
            return
        case ["hang"]:
            while True:
                pass
        case _:
            raise ValueError(f"nobody knows how to {what}")
