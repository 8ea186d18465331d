"""Ways of running a handler for a message; one file, one way. This page is what they and the loop agree on.

A runner does its work outside of the thread of the I/O loop, so that no handler holds up a heartbeat, and tells what
came of it as a `Result`: it decides nothing, and raises nothing for what a handler did. It is handed more messages than
it runs at once, so that a fast handler never waits for the loop; what has not begun can be taken back.

All methods are called in the thread of the loop, and `report` is called there too.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from redrive.message import Message
from redrive.outcome import Result


@dataclass(slots=True, eq=False)
class Job:
    """One try of one message. `alone`: nothing else is in flight in this pod while it runs.

    `header` are the message's properties as they came over the wire, which is how another process is given them.
    """

    message: Message
    alone: bool = False
    header: bytes = b""


@dataclass(frozen=True, slots=True)
class Ended:
    """A try that is over, and how many seconds the handler ran."""

    job: Job
    result: Result
    seconds: float


Report = Callable[[list[Ended]], None]


class Runner(Protocol):
    """Runs up to its concurrency of jobs at once, in the order in which they came."""

    def start(self, report: Report, fail: Callable[[str], None]) -> None:
        """Begin. HandlerError says why this handler can never run. `fail` says that this process must be replaced:

        a handler does not end though its time is over, and only the end of the process will end it. Its job is
        reported first.
        """

    def submit(self, jobs: Iterable[Job]) -> None: ...

    def withdraw(self) -> list[Job]:
        """Take back what has not begun. What a runner has no safe hold of any more may stay, and is run."""

    def stop(self) -> None:
        """End whatever runs, at once, and leave no process, thread or file behind. Nothing is reported any more."""
