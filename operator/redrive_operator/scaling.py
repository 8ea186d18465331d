"""How many workers a consumer should have, by the readings of its queue.

More are asked for at once: a worker too many costs little. Fewer only when fewer have sufficed for a whole delay, and
never by a single reading, since what is read may be some seconds old. Who is taken away may be busy, so what is in
flight counts like what waits.

How fast a worker is can be measured only while there is always work. A queue that the right number of workers keeps
empty measures nothing, and so does not change that number.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil, exp, inf, sqrt
from typing import Self

from redrive.spec import Scaling, format_duration
from redrive_operator.wording import count

# All times are in seconds. What is read was counted up to so long ago, and what is read so far apart not at one moment.
LAG, APART = 5.0, 6.0

# What lies further apart says little of the time between; what lies closer together, little of anything.
FARTHEST, CLOSEST = 120.0, 0.1

# So many acks make a rate that can be trusted. They are kept however old they are: slow workers have no newer ones.
ENOUGH_ACKS = 10.0

# How long the acks beyond those count, and how long arrivals do, at the least and at the most.
BRIEFLY, LONG = 60.0, 300.0

# New workers are given so much time, at the most, to come to their first acks before the rate is measured again.
LONGEST_SETTLING = 600.0

# A measured rate is never exact: a number that is wrong by no more than this is right.
TOLERANCE = 1.1

# What was needed is remembered by slots, so that a window of a day costs no more than one of a minute.
SLOTS = 60


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of a queue, at a moment of a clock that never goes back. None is what the broker did not say.

    `acked` counts since the broker began to, and begins anew when it restarts.
    """

    at: float
    ready: int | None
    unacked: int | None
    acked: int | None

    @property
    def backlog(self) -> int:
        return (self.ready or 0) + (self.unacked or 0)


@dataclass(frozen=True, slots=True)
class Crew:
    """The workers: how many are asked for now, how many of them work, and how many have no place."""

    replicas: int
    available: int
    unplaced: int


@dataclass(frozen=True, slots=True)
class _Interval:
    """What two readings say of the time between them."""

    seconds: float
    acked: int
    grown: int  # the backlog; below zero it shrank
    always_work: bool  # whether or not anything arrived


@dataclass(frozen=True, slots=True)
class _Pace:
    """How fast a worker is: acks, and the seconds that workers took for them."""

    acked: float = 0.0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Acks a second; 0 where it is unknown."""
        return self.acked / self.seconds if self.acked else 0.0

    def learn(self, interval: _Interval, workers: int) -> Self:
        kept = 1.0
        if self.acked > ENOUGH_ACKS:
            kept = max(exp(-interval.seconds / BRIEFLY), ENOUGH_ACKS / self.acked)
        return type(self)(kept * self.acked + interval.acked, kept * self.seconds + workers * interval.seconds)


@dataclass(frozen=True, slots=True)
class _Flow:
    """How many messages arrive a second: of late, over a drain time, and by the last two readings."""

    lately: float = 0.0
    long: float = 0.0
    last: float | None = None

    @property
    def rate(self) -> float:
        return min(self.lately, self.long)

    def learn(self, interval: _Interval, drain_time: float) -> Self:
        """Learn what arrived; but what came in one heap is no stream, and counts as backlog only."""
        seconds, arrived = interval.seconds, (interval.grown + interval.acked) / interval.seconds
        stream = min(arrived, max(2 * (self.last or 0.0), max(interval.acked, ENOUGH_ACKS) / seconds))
        if self.last is None:
            return type(self)(max(0.0, stream), max(0.0, stream), arrived)
        span = max(drain_time, BRIEFLY)
        lately = _smooth(self.lately, stream, seconds / min(span, LONG))
        return type(self)(max(0.0, lately), max(0.0, _smooth(self.long, stream, seconds / span)), arrived)


@dataclass(frozen=True, slots=True)
class _Window:
    """The highest numbers that were needed, each with the end of its slot, without those that a later one outdoes."""

    span: float = 0.0
    peaks: tuple[tuple[float, int], ...] = ()
    readings: tuple[float, ...] = ()  # the last two that lie apart

    def add(self, at: float, needed: int, *, there: int, span: float) -> Self:
        """Add what is needed. Of a time that nobody remembers, what is there was needed."""
        slot = max(span, APART) / SLOTS
        end = (at // slot + 1) * slot
        remembered = bool(self.readings) and at - self.readings[-1] <= FARTHEST and span <= self.span
        peak = needed if remembered else max(needed, there)
        agreeing = next((reading for reading in reversed(self.readings) if at - reading >= APART), -inf)
        peaks = tuple(known for known in self.peaks if known[0] >= min(at - span, agreeing) and known[1] > peak)
        if not peaks or peaks[-1][0] < end:
            peaks = (*peaks, (end, peak))
        apart = not self.readings or at - self.readings[-1] >= APART
        return type(self)(span, peaks, (*self.readings[-1:], at) if apart else self.readings)

    @property
    def highest(self) -> int:
        return self.peaks[0][1]


@dataclass(frozen=True, slots=True)
class _Need:
    """So many workers, and why."""

    replicas: int
    why: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of one consumer. It is empty at the start, and its fields are nobody else's business."""

    last: Sample | None = None
    available: int = 0
    unchanged_since: float = 0.0  # the number of those available
    in_flight: float = 0.0  # on average, of late
    waiting: int = 0  # at the most, since nothing was ready
    pace: _Pace = _Pace()
    flow: _Flow = _Flow()
    window: _Window = _Window()
    wanted: _Need | None = None  # if there were no bounds, and a place for everybody


@dataclass(frozen=True, slots=True)
class Scale:
    """How many workers there should be, and why, in a sentence for people."""

    replicas: int
    memory: Memory
    why: str


def plan_scale(scaling: Scaling, sample: Sample, crew: Crew, memory: Memory) -> Scale:
    """Say how many workers there should be. A reading that was seen before gives the same answer again."""
    if sample.ready is None:
        wanted = _hold(crew.replicas, "the broker did not say how many messages there are")
    elif memory.wanted is None or memory.last is None or sample.at > memory.last.at:
        memory, wanted = _decide(scaling, sample, crew, memory)
    else:
        wanted = memory.wanted
    restrained = _restrain(scaling, crew, wanted)
    return Scale(restrained.replicas, memory, restrained.why)


def _decide(scaling: Scaling, sample: Sample, crew: Crew, memory: Memory) -> tuple[Memory, _Need]:
    interval = _between(memory.last, sample)
    memory = _learn(scaling, sample, crew, memory, interval)
    # What came and went between two readings was in flight, too.
    busy = sample.backlog > 0 or (interval is not None and interval.acked > 0)
    span = format_duration(max(scaling.scale_down_delay, timedelta(seconds=APART)))
    idle = _Need(0, f"nothing has been ready or in flight for {span}")
    needed = _count_needed(scaling, sample, crew, memory) if busy else idle
    if sample.unacked is None and needed.replicas < crew.replicas:
        needed = _hold(crew.replicas, "nobody counts the messages in flight")
    seconds = scaling.scale_down_delay.total_seconds()
    window = memory.window.add(sample.at, needed.replicas, there=crew.replicas, span=seconds)
    kept = min(crew.replicas, window.highest)
    if kept > needed.replicas:
        needed = _Need(kept, f"as many were needed within the last {span}")
    return replace(memory, window=window, wanted=needed), needed


def _between(before: Sample | None, now: Sample) -> _Interval | None:
    """Say what happened between two readings; None where one of them does not say all, or the broker counts anew."""
    if before is None or before.ready is None or before.unacked is None or before.acked is None:
        return None
    if now.ready is None or now.unacked is None or now.acked is None or now.acked < before.acked:
        return None
    acked = now.acked - before.acked
    taken = acked + now.unacked - before.unacked
    always_work = min(before.unacked, now.unacked, now.ready) > 0 and before.ready >= max(1, taken)
    return _Interval(now.at - before.at, acked, now.backlog - before.backlog, always_work)


def _learn(scaling: Scaling, sample: Sample, crew: Crew, memory: Memory, interval: _Interval | None) -> Memory:
    begun = min(sample.unacked or 0, crew.available)  # each worker at least one, and no other can speed that up
    # What once waited is worked off by as many until nothing does: fewer and fewer would never come to an end.
    waiting = max(sample.backlog - begun, memory.waiting if sample.ready else 0)
    before, here = memory.last, replace(memory, last=sample, available=crew.available, waiting=waiting)
    if before is None or memory.available != crew.available:
        here = replace(here, unchanged_since=sample.at)
    if sample.unacked is not None:
        age = inf if before is None or before.unacked is None else (sample.at - before.at) / LONG
        here = replace(here, in_flight=_smooth(memory.in_flight, sample.unacked, age))
    if before is None or interval is None or not CLOSEST <= interval.seconds <= FARTHEST:
        return here
    drain_time = scaling.target_drain_time or timedelta()
    here = replace(here, flow=memory.flow.learn(interval, drain_time.total_seconds()))
    settled = before.at >= here.unchanged_since + _settling_time(sample, crew, memory.pace)
    if interval.always_work and settled and crew.available > 0:
        here = replace(here, pace=memory.pace.learn(interval, crew.available))
    return here


def _settling_time(sample: Sample, crew: Crew, pace: _Pace) -> float:
    """Say how long after a change of their number the acks are not yet those of so many workers: one round."""
    if not pace.rate or not crew.available:
        return LAG
    return max(LAG, min(LONGEST_SETTLING, (sample.unacked or 0) / crew.available / pace.rate))


def _count_needed(scaling: Scaling, sample: Sample, crew: Crew, memory: Memory) -> _Need:
    """Count the workers that this reading asks for, at least one."""
    if scaling.target_drain_time is not None:
        return _count_for_drain(scaling.target_drain_time, sample, crew, memory)
    if not sample.backlog:
        return _Need(1, "messages have come and gone since the last reading")
    each, be = scaling.messages_per_replica or 1, "is" if sample.backlog == 1 else "are"
    why = f"{count(sample.backlog, 'message')} {be} ready or in flight, {each} for a worker"
    return _Need(-(-sample.backlog // each), why)


def _count_for_drain(drain_time: timedelta, sample: Sample, crew: Crew, memory: Memory) -> _Need:
    """Count the workers that empty the queue in time, as fast as they are known to be."""
    there, seconds, arrivals = max(1, crew.replicas), drain_time.total_seconds(), memory.flow.rate
    # On average so many are busy (Little's law), and with this reserve hardly anything waits, whatever was measured.
    enough = memory.in_flight + 2 * sqrt(memory.in_flight)
    if not memory.pace.rate:
        if sample.ready == 0 and enough < there:
            return _Need(max(1, ceil(enough)), f"nothing waits, and {memory.in_flight:.1f} messages are in flight")
        unknown = "how fast a worker is has not been measured yet"
        return _hold(there, unknown) if crew.replicas else _Need(there, f"one to begin with: {unknown}")
    # Where a message takes longer than the drain time, one worker for each is all that helps.
    rate = max(memory.pace.rate, 1 / seconds)
    ideal = max(memory.waiting / seconds / rate + min(arrivals / rate, enough), sample.backlog / seconds / rate)
    fewest, most = ceil(ideal / TOLERANCE), ceil(ideal * TOLERANCE)
    if memory.pace.acked < ENOUGH_ACKS:
        fewest = min(fewest, 2 * there)  # at each reading; meanwhile more acks are counted
    more = f" and {_say_rate(arrivals, ' more')}" if arrivals * seconds >= 1 else ""
    why = f"{count(sample.backlog, 'message')}{more} at {_say_rate(memory.pace.rate)} for a worker"
    return _Need(max(1, fewest, min(there, most)), f"{why}, to be gone within {format_duration(drain_time)}")


def _restrain(scaling: Scaling, crew: Crew, wanted: _Need) -> _Need:
    """Ask for nobody else while somebody has no place. The bounds come before everything."""
    there = max(crew.replicas, min(1, wanted.replicas))
    if crew.unplaced > 0 and wanted.replicas > there:
        have = "has" if crew.unplaced == 1 else "have"
        wanted = _hold(there, f"{count(crew.unplaced, 'worker')} {have} no place")
    if wanted.replicas < scaling.min_replicas:
        return _Need(scaling.min_replicas, f"{wanted.why}; minReplicas is {scaling.min_replicas}")
    if wanted.replicas > scaling.max_replicas:
        return _Need(scaling.max_replicas, f"{wanted.why}; maxReplicas is {scaling.max_replicas}")
    return wanted


def _hold(replicas: int, why: str) -> _Need:
    return _Need(replicas, f"held at {replicas}: {why}")


def _smooth(old: float, new: float, age: float) -> float:
    return old + (1 - exp(-age)) * (new - old)


def _say_rate(rate: float, more: str = "") -> str:
    """Say it by the second, or by the hour where that would be a tiny number."""
    number, unit = (rate, "a second") if rate >= 0.1 else (rate * 3600, "an hour")
    return f"{number:.2g}{more} {unit}" if number < 10 else f"{number:.0f}{more} {unit}"
