"""Which child gets which job.

Jobs that take no time go together: waking a child costs more than such a job, so one is given a millisecond's worth
before the next is woken. When jobs take longer, a child that has nothing to do comes first. What is left is sent
ahead, behind jobs that run, but only so much as keeps a child busy while the loop is: nothing when a job takes longer
than a turn of the loop, some dozens when it takes no time. So a fast handler never waits for the loop, and hardly a job
waits behind a slow one; what does is taken back and given to another child, very soon if one is free. Jobs begin in the
order in which they came, as far as that can be said of several children.
"""

from collections import deque
from collections.abc import Callable, Iterable

from redrive.outcome import Failed, type_names
from redrive.runners import Ended, Job
from redrive.runners.channel import LARGEST_INLINE
from redrive.runners.parcel import pack_head
from redrive.runners.seat import Seat
from redrive.runners.tempo import Tempo

SLOW = 0.05  # seconds after which a job is one that others should not wait behind
HOLDING = 0.01  # the same where a child is free to run them: longer than a busy machine keeps a process waiting

_MOST_TRIED = 16  # children looked at for room, for one submission


class Crew:
    """The jobs that wait, and the children that are there for them.

    `unsendable` are jobs that no child can be given, with what came of them; whoever reports takes them from there.
    `stacked` is called when a job was sent behind another.
    """

    def __init__(self) -> None:
        self.waiting: deque[Job] = deque()
        self.unsendable: list[Ended] = []
        self.whole = True  # whether the handler is given the message, or its body alone
        self.tempo = Tempo()
        self.stacked: Callable[[], None] = _nothing
        self._seats: deque[Seat] = deque()  # in turn
        self._idle: list[Seat] = []  # the last to have worked is the first to work: the others' memory stays shared
        self._latest: Seat | None = None  # to be given a job, or to answer one: it is awake

    @property
    def has_idle(self) -> bool:
        return bool(self._idle)

    def join(self, seat: Seat, now: float) -> None:
        self._seats.append(seat)
        self.feed(seat, now)

    def leave(self, seat: Seat) -> None:
        """Send this one nothing more."""
        seat.leaving = True
        if seat in self._seats:
            self._seats.remove(seat)
        if seat in self._idle:
            self._idle.remove(seat)

    def put(self, jobs: Iterable[Job], now: float) -> None:
        self.waiting.extend(jobs)
        self.spread(now)

    def take_back(self, seat: Seat, now: float) -> list[Job]:
        """Have again what a child has not begun. If that was all that it had, it has nothing to do."""
        back = seat.take_back(now)
        if back and not seat.jobs and not seat.leaving:
            self._idle.append(seat)
        return back

    def put_back(self, jobs: list[Job]) -> None:
        """Have jobs wait that were sent already: before all others, for they came before them."""
        self.waiting.extendleft(reversed(jobs))

    def spread(self, now: float) -> None:
        """Send what waits: with what another has just been sent, as long as that is little; then to the idle."""
        latest = self._latest
        if latest is not None and latest.jobs and now - latest.began < HOLDING:
            self._fill(latest, self.tempo.together, now)
        while self.waiting and self._idle:
            seat = self._idle[-1]
            self._fill(seat, self.tempo.together, now)
            if not seat.jobs and not seat.leaving:
                return  # there is no room for it anywhere, and who is idle must not be sent any of it unnoticed
            if not seat.leaving:
                self._idle.pop()
            self._latest = seat
        if self.waiting and self.tempo.depth > 1:
            self._send_ahead(now)

    def feed(self, seat: Seat, now: float) -> None:
        """Give a child that is new, or has just answered, more, if there is more."""
        self._latest = seat
        self._fill(seat, self.tempo.depth, now)
        if not seat.jobs and not seat.leaving:
            self._idle.append(seat)

    def _send_ahead(self, now: float) -> None:
        seats = self._seats
        each = -(-len(self.waiting) // max(1, len(seats)))
        for _ in range(min(len(seats), _MOST_TRIED)):
            seat = seats[0]
            seats.rotate(-1)
            self._fill(seat, min(self.tempo.depth, len(seat.jobs) + each), now)

    def _fill(self, seat: Seat, most: int, now: float) -> None:
        """Send what waits until this child has so many, or there is no room."""
        if not self._may_have_more(seat, now):
            return
        jobs, first = seat.jobs, seat.next
        while self.waiting and len(jobs) < most and not seat.leaving and self._send(seat, now):
            pass
        if seat.next > first:
            seat.channel.jobs.ring()
            if len(jobs) > 1:
                self.stacked()

    def _may_have_more(self, seat: Seat, now: float) -> bool:
        """Say whether to send more at all; a child whose job is slow gets none behind it."""
        if seat.leaving or seat.ended_at is not None:
            return False
        return not seat.jobs or (now - seat.began < SLOW and seat.condemned_at is None)

    def _send(self, seat: Seat, now: float) -> bool:
        """Send the first job that waits, unless there is no room for it. It is gone from those that wait, or stays."""
        job = self.waiting[0]
        head = pack_head(job) if self.whole else b""
        if seat.jobs and len(head) + len(job.message.body) > LARGEST_INLINE:
            return False  # large ones are not sent ahead: all that is would be twice in memory
        try:
            if not seat.send(job, head, now):
                return False
        except ConnectionError:
            seat.garbled = True
        except OSError as error:  # it is large, and a file of that size cannot be made here
            self._drop(job, error)
        else:
            self.waiting.popleft()
        if seat.garbled or seat.runs_left <= 0:
            self.leave(seat)
        return True

    def _drop(self, job: Job, error: Exception) -> None:
        self.waiting.popleft()
        self.unsendable.append(Ended(job, _unpackable(error), 0.0))


def _unpackable(error: Exception) -> Failed:
    problem = f"the message cannot be handed to another process: {type(error).__name__}: {error}"
    return Failed(problem, error_types=type_names(type(error)))


def _nothing() -> None:
    pass
