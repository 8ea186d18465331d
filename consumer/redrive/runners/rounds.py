"""What is looked after from time to time while jobs run: their time, and the memory.

There is one timer for all, so that a job costs none of its own. A job whose time is over is told to end, and its child
is killed if it does not; one that is merely slow holds up nobody that was sent ahead behind it. As long as jobs stand
behind others there is a second timer, which is quicker: a child that is free is not to be so for long.
"""

from datetime import timedelta

from redrive.memory import Memory, Reading, resident, resident_by_family
from redrive.runners.attempts import time_out
from redrive.runners.crew import HOLDING, SLOW
from redrive.runners.household import Household
from redrive.runners.lineage import kill_family
from redrive.runners.pressure import is_short, is_swollen, is_tight, is_worth_ending, next_look
from redrive.runners.seat import Seat
from redrive.runners.verdicts import too_big, unheard
from redrive.runtime.ports import Loop, Timer

GRACE = 2.0  # seconds for a handler to clean up when its time is over
TIME_TO_DIE = 5.0  # seconds after SIGKILL

PACE = 0.05  # seconds between looks, at most
LAST_LOOKS = 5  # when nothing runs any more: who has done his work may be big still


class Rounds:
    """Looks, again and again, as long as anything runs. `begin` whenever something may."""

    def __init__(self, household: Household, *, timeout: timedelta, loop: Loop, memory: Memory | None) -> None:
        self._household = household
        self._timeout = timeout
        self._seconds = timeout.total_seconds()
        self._loop = loop
        self._memory = memory
        self._memory_due = 0.0
        self._pace = min(PACE, self._seconds / 4)
        self._timer: Timer | None = None
        self._quick: Timer | None = None
        self._quiet_looks = 0
        self._turn = 0
        household.crew.stacked = self._look_soon

    def begin(self) -> None:
        self._quiet_looks = 0
        if self._timer is None:
            self._timer = self._loop.later(self._pace, self._look)

    def stop(self) -> None:
        for timer in (self._timer, self._quick):
            if timer:
                timer.cancel()
        self._timer = self._quick = None

    def _look_soon(self) -> None:
        if self._quick is None:
            self._quick = self._loop.later(HOLDING / 2, self._look_quickly)

    def _look_quickly(self) -> None:
        """Have those who are free run what stands behind a job that is slow."""
        self._quick = None
        stacked = [seat for seat in self._household.seats.values() if len(seat.jobs) > 1]
        if stacked:
            self._look_soon()
        for seat in stacked:
            if self._holds_up(seat):
                self._household.hear(seat)  # it may have answered some before the slow one, and not rung for them
            if self._holds_up(seat) and self._household.crew.has_idle:
                self._household.crew.tempo.hesitate()
                self._household.relieve(seat)

    def _holds_up(self, seat: Seat) -> bool:
        """Say whether jobs stand behind one that is slow."""
        is_slow = self._is_here(seat) and len(seat.jobs) > 1 and self._loop.now() - seat.began > HOLDING
        return is_slow and seat.condemned_at is None

    def _look(self) -> None:
        now = self._loop.now()
        self._timer = None
        self._quiet_looks = self._quiet_looks + 1 if self._household.is_quiet else 0
        if self._quiet_looks < LAST_LOOKS:
            self._timer = self._loop.later(self._pace, self._look)
        for seat in list(self._household.seats.values()):
            if seat.pid and self._is_here(seat):
                self._see_to(seat, now)
        self._see_off(now)
        self._household.crew.spread(self._loop.now())  # what there was no room for
        self._household.tell([])  # what no child can be given
        if self._memory and now >= self._memory_due:
            self._look_at_memory(self._memory.read(), now)

    def _see_to(self, seat: Seat, now: float) -> None:
        """See that a child's job keeps to its time."""
        if seat.ended_at is not None:
            if now - seat.ended_at > TIME_TO_DIE:
                self._household.give_up(seat)
        elif seat.garbled:
            self._household.end(seat, unheard())
        elif seat.jobs:
            if now - seat.began > SLOW:
                # Whether it rings or not, and heard us or not: a handler may have spoilt the bells.
                seat.channel.jobs.ring()
                self._household.hear(seat)
            if self._is_here(seat) and seat.jobs:
                self._see_to_job(seat, now)

    def _see_to_job(self, seat: Seat, now: float) -> None:
        if seat.condemned_at is not None:
            if now - seat.condemned_at >= GRACE:
                self._household.end(seat, seat.verdict)
        elif self._is_overdue(seat, now):
            self._condemn(seat, now)
        elif now - seat.began > SLOW and len(seat.jobs) > 1:
            self._household.relieve(seat)

    def _condemn(self, seat: Seat, now: float) -> None:
        """Tell a child to end its job, unless the answer is there. It is to have no other that this could hit."""
        self._household.hear(seat)
        if not self._is_overdue(seat, now):
            return
        self._household.unload(seat)
        if self._is_overdue(seat, now):
            seat.condemn(now, time_out(self._timeout))
        elif self._is_here(seat) and not seat.jobs:
            # The job was taken back: in all this time the child has not begun it. It was stopped, say, and is no use.
            # It must not be sent the same again: woken just now, it would begin, and its end be put down to the job.
            self._household.end(seat)
        self._household.crew.spread(self._loop.now())

    def _is_overdue(self, seat: Seat, now: float) -> bool:
        return self._is_here(seat) and bool(seat.jobs) and now - seat.began >= self._seconds

    def _is_here(self, seat: Seat) -> bool:
        """Say whether it still has its place: whatever is reported or taken back may lead to its leaving."""
        return self._household.seats.get(seat.number) is seat

    def _see_off(self, now: float) -> None:
        for pid, deadline in self._household.departing.values():
            if now > deadline:
                kill_family(pid)

    def _look_at_memory(self, reading: Reading | None, now: float) -> None:
        if reading is None:
            return
        pause = next_look(reading)
        self._pace = min(PACE, pause, self._seconds / 4)
        self._memory_due = now + pause
        if is_short(reading):
            self._end_biggest(reading)
        else:
            self._look_at_one(reading)

    def _end_biggest(self, reading: Reading) -> None:
        """End the biggest child, with all that it has started; one at a time, for memory takes a while to come free."""
        seats = [seat for seat in self._household.seats.values() if seat.pid]
        if any(seat.ended_at is not None for seat in seats):
            return
        sizes = resident_by_family(seat.pid for seat in seats)
        biggest = max(seats, key=lambda seat: sizes.get(seat.pid, 0), default=None)
        size = sizes.get(biggest.pid, 0) if biggest else 0
        if biggest and is_worth_ending(size, newborn=biggest.newborn_size, limit=reading.limit):
            verdict = too_big(used=reading.used, limit=reading.limit, size=size)
            self._household.end(biggest, verdict)

    def _look_at_one(self, reading: Reading) -> None:
        """Let a child go that has grown far beyond its share: an idle one, or any when memory is scarce."""
        seats = list(self._household.seats.values())
        self._turn += 1
        seat = seats[self._turn % len(seats)] if seats else None
        if seat is None or not seat.pid or seat.leaving or (seat.jobs and not is_tight(reading)):
            return
        size, children = resident(seat.pid), self._household.size
        if is_swollen(size, newborn=seat.newborn_size, limit=reading.limit, children=children):
            self._household.dismiss(seat)
