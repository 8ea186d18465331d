"""A handler that does what its message says, and notes every call in a journal: the file that ERRANDS names.

The body is JSON, `{"do": ["fail", "ok"]}`: the first call does the first, the second the next, and the last repeats.
Calls are told apart by the header `name`, which every message of the suite has.
"""

import base64
import os
import pickle
import time
from pathlib import Path

import pydantic

from redrive import Message, Reject, Retry, Snooze


class Errand(pydantic.BaseModel):
    do: list[str]


class Broken(Exception):
    """No rule speaks of it."""


class Declined(Exception):
    """The rules have it parked."""


class Busy(Exception):
    """The rules have it wait longer."""


def handle(errand: Errand, message: Message) -> None:
    _do(errand.do, message)


def handle_bytes(_body: bytes, message: Message) -> None:
    """Take any body: what to do is in a header."""
    _do(str(message.headers["do"]).split(), message)


def _do(steps: list[str], message: Message) -> None:
    name = message.headers["name"]
    before = sum(line["name"] == name for line in read_journal() if "message" in line)
    note(name=name, message=message, at=time.monotonic())
    act(steps[min(before, len(steps) - 1)])
    note(name=name, done_at=time.monotonic())


def act(step: str) -> None:
    match step:
        case "ok":
            return
        case "fail":
            raise Broken("no answer from 10.0.0.7")
        case "decline":
            raise Declined("the card is not good")
        case "busy":
            raise Busy("come back later")
        case "reject":
            raise Reject("never")
        case "snooze":
            raise Snooze(delay=0.25)
        case "snooze-long":
            raise Snooze(delay=1)
        case "retry-late":
            raise Retry("in an hour", delay=3600)
        case "linger":
            pause(0.2)
        case "hold":
            hold()
        case "die":
            die()
        case _:
            raise ValueError(f"nobody knows how to {step}")


def pause(seconds: float) -> None:
    time.sleep(seconds)


def die() -> None:
    os._exit(9)


def hold() -> None:
    """Take until the test says that it is enough."""
    deadline = time.monotonic() + 60
    while not release_file(Path(os.environ["ERRANDS"])).exists():
        if time.monotonic() > deadline:
            raise TimeoutError("nobody let go of it")
        time.sleep(0.02)


def release_file(journal: Path) -> Path:
    return journal.with_suffix(".release")


def note(**facts: object) -> None:
    """Append a line, at once and whole: several processes write here."""
    line = base64.b64encode(pickle.dumps(facts)) + b"\n"
    journal = os.open(os.environ["ERRANDS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(journal, line)
    os.close(journal)


def read_journal(path: Path | None = None) -> list[dict]:
    """Read the lines that are whole: a reader may see a part of one that is being written."""
    journal = path or Path(os.environ["ERRANDS"])
    whole, _, _ = journal.read_bytes().rpartition(b"\n") if journal.exists() else (b"", b"", b"")
    return [pickle.loads(base64.b64decode(line)) for line in whole.splitlines()]  # noqa: S301 - written by ourselves
