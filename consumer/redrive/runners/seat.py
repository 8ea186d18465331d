"""One child as the worker sees it: what it was sent, what it answered, and how it is ended.

The first job of a seat is running, or is the next to run; the others were sent ahead and wait in the channel. A child
answers in the order in which it was sent jobs, so when it is dead and all is heard and taken back, at most one job is
left: the one that was running.
"""

import os
import signal
from contextlib import suppress
from math import inf

from redrive.outcome import Result, Succeeded
from redrive.quickly import quickly
from redrive.runners import Ended, Job
from redrive.runners.channel import ANSWER, LARGEST_ANSWER, UNTAKEN, Channel
from redrive.runners.lineage import kill_family
from redrive.runners.parcel import SUCCEEDED, unpack_result

_SUCCESS = Succeeded()
_ended = quickly(Ended)

# One for all seats: what is heard is read at once.
_heard = bytearray(LARGEST_ANSWER)


class Seat:
    """A child, from before its birth until it is buried.

    `jobs` are those without an answer, by the numbers that they were sent with. `began`: when the first of them did, or
    rather when the worker learnt that it could. `answered`: it ever was. `leaving`: it is sent nothing more.
    `condemned_at`: when its first job was told to end. `ended_at`: when the child was killed. `verdict`: what has come
    of its first job if the child ends now, where that is known. `untaken`: the number of a job that the child could not
    take; it has not begun, and the child is about to go.
    """

    __slots__ = (
        "answered",
        "began",
        "channel",
        "condemned_at",
        "ended_at",
        "garbled",
        "jobs",
        "leaving",
        "newborn_size",
        "next",
        "number",
        "pid",
        "runs_left",
        "untaken",
        "verdict",
    )

    def __init__(self, number: int, *, runs: int) -> None:
        self.number = number
        self.channel = Channel()
        self.pid = 0
        self.jobs: dict[int, Job] = {}
        self.next = 0
        self.answered = False
        self.began = 0.0
        self.runs_left = runs
        self.leaving = False
        self.garbled = False
        self.untaken: int | None = None
        self.condemned_at: float | None = None
        self.ended_at: float | None = None
        self.verdict: Result | None = None
        self.newborn_size = 0

    def send(self, job: Job, head: bytes, now: float) -> bool:
        """Send a job; False when there is no room for it now. ConnectionError: there will never be, with this one."""
        number = self.next
        if not self.channel.send(number, head, job.message.body):
            return False
        if not self.jobs:
            self.began = now
        self.jobs[number] = job
        self.next = number + 1
        self.runs_left -= 1
        return True

    def hear(self, now: float) -> list[Ended]:
        """Take all answers that are there. `garbled` when what came makes no sense: it is to be ended."""
        ended: list[Ended] = []
        self.channel.answers.hush()  # before listening: what is answered after that rings anew
        hear, jobs = self.channel.hear, self.jobs
        try:
            while length := hear(_heard):
                number, seconds, kind = ANSWER.unpack_from(_heard)
                # Of what is shorter than an answer, the rest would be that of the answer before.
                if length < ANSWER.size or not 0.0 <= seconds < inf or number != next(iter(jobs)):
                    raise ValueError(f"no answer to a job that runs: {length} bytes, job {number}")  # noqa: TRY301
                if kind == UNTAKEN:
                    self.untaken = number
                    break
                result = _SUCCESS if kind == SUCCEEDED else unpack_result(kind, bytes(_heard[ANSWER.size : length]))
                ended.append(_ended(jobs.pop(number), result, seconds))
        except Exception:  # what a handler writes to a descriptor that is not its own may be anything
            self.garbled = True
        if ended:
            self.began, self.answered = now, True
            if self.ended_at is None:
                self.condemned_at, self.verdict = None, None
        return ended

    def take_back(self, now: float) -> list[Job]:
        """Have again what has not begun, in its order.

        The child may have received a job meanwhile whose predecessors were taken back: that one begins now.
        """
        first = next(iter(self.jobs), None)
        back = [self.jobs.pop(number) for number in self.channel.take_back()]
        if first not in self.jobs:
            self.began = now
        return back

    def take_untaken(self) -> list[Job]:
        """Have again what the child had received and could not take, once it is gone."""
        return [] if self.untaken is None else [self.jobs.pop(self.untaken)]

    def condemn(self, now: float, verdict: Result) -> None:
        """Tell the child to end its first job, which raises in the handler. Nothing may wait behind it."""
        self.condemned_at, self.verdict = now, verdict
        with suppress(OSError):
            self.channel.condemn(next(iter(self.jobs)))
            os.kill(self.pid, signal.SIGTERM)

    def end(self, now: float, verdict: Result | None = None) -> None:
        """Kill the child and what it has started. It counts as it did the first time."""
        if self.ended_at is None:
            self.ended_at, self.verdict = now, verdict
        kill_family(self.pid)
