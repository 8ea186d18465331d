"""A handler that does what its message says, and notes the beginning and the end of every run, each in one write.

The body is JSON: {"do": ["snooze", "fail", "ok"]}: the n-th attempt or snooze does the n-th, the last repeats. Notes
are appended to the file that LEDGER names, or told to the server whose URL it is. A run begins when its note has been
taken: so none is missing in the ledger, whoever is killed. A run that was killed has no end.
"""

import json
import os
import signal
import time
import urllib.request
from http.client import HTTPException
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
            "failed_by": message.headers.get("redrive-error-type"),
            "error": message.headers.get("redrive-error"),
        }
    )
    try:
        _act(what, suspect)
    finally:
        _note({"run": run})


def _note(facts: dict) -> None:
    line = json.dumps({**facts, "at": _now(), "pid": os.getpid()}).encode() + b"\n"
    if os.environ["LEDGER"].startswith("http://"):
        _tell(line)
        return
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, line)
    os.close(ledger)


def _now() -> float:
    """Tell the time of whoever reads the notes, also where that of this process was put forward or back."""
    began = os.environ.get("LEDGER_BEGAN")
    return time.time() if began is None else time.monotonic() + float(began)


def _tell(line: bytes) -> None:
    """Tell the server until it has heard; one that hears a note twice keeps it once."""
    while True:
        try:
            urllib.request.urlopen(os.environ["LEDGER"], data=line, timeout=3).close()  # noqa: S310 - ours
            return
        except (OSError, HTTPException):
            time.sleep(0.2)


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
        case ["eat once"] if not suspect:
            eaten = []
            while True:
                eaten.append(bytearray(os.urandom(1 << 20)) * 16)
        case ["eat once"]:
            return
        case ["hang"]:
            while True:
                pass
        case _:
            raise ValueError(f"nobody knows how to {what}")
