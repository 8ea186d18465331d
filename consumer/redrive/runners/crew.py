"""Which child gets which job.

A child that has nothing to do comes first. What is left is sent ahead, behind jobs that run, but only so much as keeps
a child busy while the loop is: nothing when a job takes longer than a turn of the loop, some dozens when it takes no
time. So a fast handler never waits for the loop, and hardly a job waits behind a slow one; what does is taken back and
given to another child. Jobs begin in the order in which they came, as far as that can be said of several children.
"""

from collections import deque
from collections.abc import Iterable

from redrive.outcome import Failed, type_names
from redrive.runners import Ended, Job
from redrive.runners.channel import LARGEST_INLINE
from redrive.runners.parcel import pack_head
from redrive.runners.seat import Seat

AHEAD = 0.005  # seconds' worth of jobs sent to a child: longer than a turn of the loop takes
DEEPEST = 32
SLOW = 0.05  # seconds after which a job is one that others should not wait behind

# How much one run counts in the average. A slow one counts as barely slow, or the fast ones behind it would be taken
# for slow for a long time.
_WEIGHT = 0.05
_SLOWEST = 4 * AHEAD

_FASTEST = AHEAD / DEEPEST

_MOST_TRIED = 16  # children looked at for room, for one submission


class Crew:
    """The jobs that wait, and the children that are there for them.

    `unsendable` are jobs that no child can be given, with what came of them; whoever reports takes them from there.
    """

    def __init__(self) -> None:
        self.waiting: deque[Job] = deque()
        self.unsendable: list[Ended] = []
        self.whole = True  # whether the handler is given the message, or its body alone
        self.depth = 1
        self._seats: deque[Seat] = deque()  # in turn
        self._idle: list[Seat] = []  # the last to have worked is the first to work: the others' memory stays shared
        self._pace = AHEAD

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

    def take_back(self, seat: Seat) -> list[Job]:
        """Have again what a child has not begun. If that was all that it had, it has nothing to do."""
        back = seat.take_back()
        if back and not seat.jobs and not seat.leaving:
            self._idle.append(seat)
        return back

    def put_back(self, jobs: list[Job]) -> None:
        """Have jobs wait that were sent already: before all others, for they came before them."""
        self.waiting.extendleft(reversed(jobs))

    def spread(self, now: float) -> None:
        """Send what waits, to those who have nothing first."""
        waiting, idle = self.waiting, self._idle
        while waiting and idle:
            seat = idle[-1]
            room = self._send(seat, now)
            if seat.jobs and not seat.leaving:
                idle.pop()
            if not room:
                break
        if waiting and self.depth > 1:
            self._send_ahead(now)

    def feed(self, seat: Seat, now: float) -> None:
        """Give a child that is new, or has just answered, more, if there is more."""
        while self.waiting and self._has_room(seat, now) and self._send(seat, now):
            pass
        if not seat.jobs and not seat.leaving:
            self._idle.append(seat)

    def learn(self, ended: list[Ended]) -> None:
        """Set how much is sent ahead by how long jobs take."""
        pace = self._pace
        for one in ended:
            seconds = one.seconds
            pace += ((seconds if seconds < _SLOWEST else _SLOWEST) - pace) * _WEIGHT
        self._pace = pace
        self.depth = max(1, min(DEEPEST, int(AHEAD / max(pace, _FASTEST))))

    def _send_ahead(self, now: float) -> None:
        seats = self._seats
        each = -(-len(self.waiting) // max(1, len(seats)))
        for _ in range(min(len(seats), _MOST_TRIED)):
            seat = seats[0]
            seats.rotate(-1)
            for _ in range(each):
                if not (self.waiting and self._has_room(seat, now) and self._send(seat, now)):
                    break

    def _has_room(self, seat: Seat, now: float) -> bool:
        """Say whether to send one more; a child whose job is slow gets none behind it."""
        if seat.leaving or seat.ended_at is not None:
            return False
        if not seat.jobs:
            return True
        return len(seat.jobs) < self.depth and now - seat.began < SLOW and seat.condemned_at is None

    def _send(self, seat: Seat, now: float) -> bool:
        """Send the first job that waits, unless there is no room for it. It is gone from those that wait, or stays."""
        job = self.waiting[0]
        try:
            head = pack_head(job.message) if self.whole else b""
        except Exception as error:  # a header that is nothing AMQP knows
            self._drop(job, error)
            return True
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
