"""The children of one worker: hired, fed, heard, replaced, and accounted for when they are gone.

There is a seat for each as long as it can be given jobs. One that is to go is replaced at once, and gets some time to
leave by itself. When a child is gone, each of its jobs is known to be one of three: answered; not begun, and put back
among those that wait; or the one that was running, of which the death is told.
"""

import itertools
import random
import signal
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from redrive.memory import Memory
from redrive.outcome import Result
from redrive.runners import Ended, Job, Report
from redrive.runners.crew import Crew
from redrive.runners.lineage import kill_families
from redrive.runners.nursery import Nursery
from redrive.runners.seat import Seat
from redrive.runners.verdicts import describe_exit, judge_end, unheard
from redrive.runtime.ports import Loop, Timer

LEAVE = 5.0  # seconds for a child to go by itself

# Children that die before they have done anything, or cannot be made, are replaced after pauses that double.
SHORTEST_PAUSE = 0.05  # seconds
LONGEST_PAUSE = 10.0
MOST_MISFORTUNES = 12  # one after the other, with no child that has ever done anything

# After a kill of the kernel's for want of memory, other deaths by SIGKILL are for a while put down to the same.
OUT_OF_MEMORY = 5.0  # seconds


class Household:
    """Keeps so many children that `size` messages run at once, each for about `runs` messages."""

    def __init__(
        self, handler: str, *, size: int, runs: int, timeout: timedelta, loop: Loop, memory: Memory | None
    ) -> None:
        self.size = size
        self.seats: dict[int, Seat] = {}
        self.departing: dict[int, tuple[int, float]] = {}  # the pid of each, and when it is to be gone
        self.crew = Crew()
        self._runs = runs
        self._loop = loop
        self._memory = memory
        self._kills = memory.count_kills() if memory else 0
        self._killed_at = float("-inf")
        self._nursery = Nursery(handler, timeout=timeout, loop=loop, family=self)
        self._numbers = itertools.count()
        self._misfortunes = 0
        self._hiring: Timer | None = None
        self._report: Report = _ignore
        self._fail: Callable[[str], None] = _ignore

    def start(self, report: Report, fail: Callable[[str], None]) -> None:
        self._nursery.start()
        self.crew.whole = self._nursery.takes_message
        self._report, self._fail = report, fail
        self.open()

    def stop(self) -> None:
        """Kill who works, and let go who does not. Nothing is told any more."""
        self._report, self._fail = _ignore, _ignore
        self._cancel_hiring()
        kill_families(seat.pid for seat in self.seats.values() if seat.jobs)
        for seat in self.seats.values():
            self._close(seat)
        self.seats.clear()
        self.departing.clear()
        self._nursery.stop()

    @property
    def is_quiet(self) -> bool:
        return not (self.crew.waiting or self.departing or any(seat.jobs for seat in self.seats.values()))

    def hear(self, seat: Seat) -> None:
        """Take what a child answered, give it more, and report."""
        if self.seats.get(seat.number) is not seat:
            return  # it has gone since the loop saw that there was something
        now = self._loop.now()
        ended = seat.hear(now)
        if ended:
            self._misfortunes = 0
            self.crew.tempo.note(ended)
        if seat.garbled:
            self.end(seat, unheard())
        elif seat.untaken is not None:
            self.crew.leave(seat)  # it goes by itself, at once, and is accounted for then
        elif not seat.leaving:
            if ended:
                self.crew.feed(seat, now)
        elif not seat.jobs and seat.ended_at is None:
            self.retire(seat)
        self.tell(ended)

    def tell(self, ended: list[Ended]) -> None:
        """Report what has ended, and with it what could not even begin."""
        if self.crew.unsendable:
            ended = ended + self.crew.unsendable
            self.crew.unsendable = []
        if ended:
            self._report(ended)

    def take_back(self) -> list[Job]:
        """Have again all that has not begun. Behind a condemned job there is none, only what condemns it."""
        seats = [seat for seat in self.seats.values() if seat.condemned_at is None]
        back = [job for seat in seats for job in self._take_back(seat)]
        back.extend(self.crew.waiting)
        self.crew.waiting.clear()
        return back

    def unload(self, seat: Seat) -> None:
        """Have what a child has not begun wait with the others."""
        self.crew.put_back(self._take_back(seat))

    def relieve(self, seat: Seat) -> None:
        """Have others do what waits behind the job of this one."""
        self.unload(seat)
        self.crew.spread(self._loop.now())

    def dismiss(self, seat: Seat) -> None:
        """Let a child go as soon as it is done with what it does."""
        self.crew.leave(seat)
        self.relieve(seat)

    def retire(self, seat: Seat) -> None:
        """Let a child go that has nothing to do, and have another in its place."""
        del self.seats[seat.number]
        self.crew.leave(seat)
        self._close(seat)
        self.departing[seat.number] = seat.pid, self._loop.now() + LEAVE
        self._hire()

    def end(self, seat: Seat, verdict: Result | None = None) -> None:
        """Kill a child. When it is dead, the verdict is what came of the job that it ran."""
        self.crew.leave(seat)
        seat.end(self._loop.now(), verdict)
        self.relieve(seat)

    def give_up(self, seat: Seat) -> None:
        """Go on without a child that was killed and does not die, because it hangs in the kernel."""
        del self.seats[seat.number]
        ended = self._account(seat, how="does not end", guilty=False)
        self.departing[seat.number] = seat.pid, float("inf")
        self._hire()
        self.tell(ended)

    def open(self) -> None:
        while len(self.seats) < self.size and self._hire():
            pass

    def born(self, number: int, pid: int) -> None:
        seat = self.seats[number]
        seat.pid = pid
        if self._memory:
            seat.newborn_size = self._nursery.measure()
        self._loop.watch(seat.channel.answers.descriptor, partial(self.hear, seat))
        self.crew.join(seat, self._loop.now())

    def unborn(self, number: int, reason: str) -> None:
        self.seats.pop(number).channel.close()
        self._hire_later(_unmakeable(reason))

    def died(self, number: int, status: int) -> None:
        seat = self.seats.pop(number, None)
        if seat is None:
            self.departing.pop(number, None)
            return
        short = status == -signal.SIGKILL and self._is_out_of_memory()
        how = describe_exit(status) + (": the container was out of memory" if short else "")
        ended = self._account(seat, how=how, guilty=not short)
        if ended or seat.answered or seat.ended_at is not None:
            self._hire()
        else:
            self._hire_later(f"each process that is made to run handlers in {how} before it runs one")
        self.tell(ended)

    def bereaved(self, how: str) -> None:
        how = f"died with the process that it was made from, which {how}"
        for seat in self.seats.values():
            self.crew.leave(seat)
        ended = [one for seat in self.seats.values() for one in self._account(seat, how=how, guilty=False)]
        self._cancel_hiring()
        self.seats.clear()
        self.departing.clear()
        self.tell(ended)

    def barren(self, reason: str) -> None:
        self._cancel_hiring()
        fail, self._fail = self._fail, _ignore  # it is told once
        fail(reason)

    def _take_back(self, seat: Seat) -> list[Job]:
        """Have again what a child has not begun; if it was to go after that, it may go now."""
        back = self.crew.take_back(seat, self._loop.now())
        if seat.leaving and not seat.jobs and seat.ended_at is None:
            self.retire(seat)
        return back

    def _hire(self) -> bool:
        """Have one more child, and say whether that could be asked for; if not, it is tried again."""
        try:
            seat = Seat(next(self._numbers), runs=round(self._runs * random.uniform(0.9, 1.1)))  # noqa: S311
        except OSError as error:  # no more files
            self._hire_later(_unmakeable(str(error)))
            return False
        self.seats[seat.number] = seat
        self._nursery.ask(seat.number, seat.channel)
        return True

    def _hire_later(self, problem: str) -> None:
        pause = min(LONGEST_PAUSE, SHORTEST_PAUSE * 2**self._misfortunes)
        self._misfortunes += 1
        self._cancel_hiring()
        self._hiring = self._loop.later(pause, self.open)
        if self._misfortunes > MOST_MISFORTUNES and not any(seat.answered for seat in self.seats.values()):
            self.barren(problem)

    def _cancel_hiring(self) -> None:
        if self._hiring:
            self._hiring.cancel()
            self._hiring = None

    def _account(self, seat: Seat, *, how: str, guilty: bool) -> list[Ended]:
        """Say what came of each job of a child that is no more, or must not be heard any more."""
        now = self._loop.now()
        self.crew.leave(seat)
        back, ended = seat.take_back(now), seat.hear(now)
        back = seat.take_untaken() + back
        for job in seat.jobs.values():
            result = judge_end(job, how=how, guilty=guilty, verdict=seat.verdict)
            ended.append(Ended(job, result, now - seat.began))
        seat.jobs.clear()
        self._close(seat)
        self.crew.put_back(back)
        self.crew.spread(now)
        return ended

    def _close(self, seat: Seat) -> None:
        if seat.pid:
            self._loop.unwatch(seat.channel.answers.descriptor)
        seat.channel.close()

    def _is_out_of_memory(self) -> bool:
        """Say whether the kernel has killed for want of memory, just now or a moment ago: several die of one cause."""
        kills = self._memory.count_kills() if self._memory else 0
        if kills > self._kills:
            self._killed_at = self._loop.now()
        self._kills = kills
        return self._loop.now() - self._killed_at < OUT_OF_MEMORY


def _unmakeable(reason: str) -> str:
    return f"no process can be made to run handlers in: {reason}"


def _ignore(_: object) -> None:
    pass
